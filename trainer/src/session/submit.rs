//! Handing a candidate in, and waiting for its gate match.

use std::ops::ControlFlow;

use anyhow::Context as _;
use rookery_common::ids::{ContentHash, MatchId};
use rookery_common::network::{NetworkSpec, SpecError};
use rookery_common::protocol::networks::{NetworkInfo, NetworkName, NetworkStatus};
use rookery_model::Weights;

use super::begin::fetch_best;
use super::state::Phase;
use super::{OnRejection, Session};
use crate::exports;
use crate::learner::Learner;
use crate::metrics::{MetricKind, values};

impl Session {
    /// Sends the candidate's file and returns its hash. The same file twice counts once, so it does not matter when
    /// the trainer was interrupted.
    pub(super) async fn submit(&mut self, hash: ContentHash) -> anyhow::Result<ContentHash> {
        let (hash, bytes) = self.candidate(hash)?;
        let (_, weights) = Weights::from_bytes(&bytes)?;
        let receipt = self.context.client.submit(bytes).await;
        let path = self.candidate_path(hash);
        let receipt = receipt.with_context(|| format!("cannot submit {}", path.display()))?;
        tracing::info!(
            "submitted the candidate as network {}: {}",
            receipt.number,
            hash.short()
        );
        exports::offer(&self.context.client, hash, &weights).await?;
        exports::catch_up(&self.context.client, receipt.number).await?;
        self.enter(Phase::Await { hash })?;
        Ok(hash)
    }

    /// The candidate's file. One that is missing or damaged is exported again, because the learner takes no step before
    /// the verdict; another version of this program gives it another hash.
    fn candidate(&mut self, hash: ContentHash) -> anyhow::Result<(ContentHash, Vec<u8>)> {
        let path = self.candidate_path(hash);
        let kept = std::fs::read(&path).ok();
        if let Some(bytes) = kept.filter(|bytes| ContentHash::of(bytes) == hash) {
            return Ok((hash, bytes));
        }
        tracing::warn!(
            "{} is missing or damaged; the candidate is exported again",
            path.display()
        );
        self.write_candidate()
    }

    /// Waits until the gate has decided; games go on arriving meanwhile.
    pub(super) async fn wait_for_verdict(
        &mut self,
        mut hash: ContentHash,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut task = self.context.screen.task("gate match", 0);
        let mut again = false;
        let info = loop {
            let info = match self.context.client.network(NetworkName::Hash(hash)).await {
                Err(error) if error.is_missing() && !again => {
                    tracing::warn!(
                        "RK-0717: the coordinator no longer knows the candidate, as if its ledger was restored from \
                         a backup: it is submitted again"
                    );
                    again = true;
                    hash = self.submit(hash).await?;
                    continue;
                }
                info => info?,
            };
            if info.status != NetworkStatus::Candidate {
                break info;
            }
            if let Some(gate) = info.gate {
                self.show_gate(&mut task, gate).await?;
            }
            self.take_in().await?;
            tokio::select! {
                () = self.context.shutdown.requested() => return Ok(ControlFlow::Break(())),
                () = tokio::time::sleep(self.settings.poll_every) => {}
            }
        };
        drop(task);
        self.follow_verdict(&info).await?;
        Ok(ControlFlow::Continue(()))
    }

    async fn show_gate(&self, task: &mut rookery_cli::Task, gate: MatchId) -> anyhow::Result<()> {
        let info = self.context.client.match_info(gate).await?;
        task.tell(&info.standing());
        Ok(())
    }

    async fn follow_verdict(&mut self, info: &NetworkInfo) -> anyhow::Result<()> {
        use NetworkStatus::{Initial, Promoted};
        let promoted = matches!(info.status, Initial | Promoted);
        let verdict = info.status.name();
        let elo = info
            .rating
            .map_or_else(String::new, |r| format!(", rating {:.0}", r.elo));
        tracing::info!("network {} is {verdict}{elo}", info.number);
        let number = f64::from(info.number.0);
        let point = [
            ("network", number),
            ("promoted", f64::from(u8::from(promoted))),
        ];
        self.note(MetricKind::Verdict, values(point))?;
        self.state.parent = info.hash;
        if !promoted && self.settings.on_rejection == OnRejection::Best {
            self.follow_rejection().await?;
        }
        self.state.candidate += 1;
        self.enter(Phase::Gather)
    }

    /// Trains on from best, if it is wanted, where the coordinator has found since that the network
    /// in training is no better than an earlier one.
    pub(super) async fn follow_rollback(&mut self) -> anyhow::Result<()> {
        if self.settings.on_rejection != OnRejection::Best {
            return Ok(());
        }
        let parent = NetworkName::Hash(self.state.parent);
        let info = match self.context.client.network(parent).await {
            Ok(info) => info,
            // The ledger was restored from a backup that is older than it: no match has found it weaker.
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if info.status == NetworkStatus::Demoted {
            tracing::info!("network {} was demoted", info.number);
            let (hash, weights) = fetch_best(&self.context.client).await?;
            self.go_on_from(hash, &weights)?;
        }
        Ok(())
    }

    /// Trains on from best, unless the network in training has grown larger than it. The larger one
    /// may need several candidates to pass, and would lose what it has learnt since.
    async fn follow_rejection(&mut self) -> anyhow::Result<()> {
        let (hash, weights) = fetch_best(&self.context.client).await?;
        let (trained, best) = (self.learner.trainer.spec(), weights.spec());
        if is_larger(trained, best)? {
            tracing::info!(
                "training goes on with the {} network, which has grown from the best one of {}",
                trained.shape(),
                best.shape()
            );
            return Ok(());
        }
        self.go_on_from(hash, &weights)
    }

    fn go_on_from(&mut self, best: ContentHash, weights: &Weights) -> anyhow::Result<()> {
        let (params, compute) = (&self.state.params, self.settings.compute);
        self.learner = Learner::new(weights, params, compute)?;
        self.state.parent = best;
        tracing::info!("training goes on from the best network, {}", best.short());
        Ok(())
    }
}

fn is_larger(network: &NetworkSpec, other: &NetworkSpec) -> Result<bool, SpecError> {
    let (network, other) = (network.body()?, other.body()?);
    Ok(network.blocks > other.blocks || network.filters > other.filters)
}
