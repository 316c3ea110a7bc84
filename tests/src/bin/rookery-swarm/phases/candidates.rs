//! Candidates that are submitted while the load runs, so that there are gates to play.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Method;
use rookery_common::params::RunParams;
use rookery_common::protocol::networks::NetworkReceipt;
use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::runs::{RunInfo, RunPatch};
use rookery_common::rating::GateRule;
use rookery_tests::client::{Answer, Client};
use rookery_tests::network;
use rookery_tests::site::RUN;

use super::Swarm;
use super::calls::Ground;

/// Games of a gate.
const GAMES: u64 = 48;
/// Match games of a job: two pairs, so that a chunk may complete the deciding one and another.
pub(crate) const JOB_GAMES: u32 = 4;
/// What candidates have to score, in turn. Both sides play the same, so that they score about one
/// half: the first gate promotes and the next rejects, as long as less than half of the pairs, those
/// of workers that went away, are missing.
const THRESHOLDS: [f64; 2] = [0.25, 0.75];
/// Between two attempts at something that did not succeed.
const PAUSE: Duration = Duration::from_millis(200);

/// The rule of a candidate's gate.
pub(crate) fn rule(candidate: u64) -> GateRule {
    GateRule::Fixed {
        games: GAMES,
        threshold: THRESHOLDS[candidate as usize % THRESHOLDS.len()],
    }
}

/// Who submits candidates.
pub(super) struct Submitter {
    every: Duration,
    trainer: Client,
    operator: Client,
    params: RunParams,
}

impl Submitter {
    /// The one of `--gate-every`.
    ///
    /// # Errors
    ///
    /// If the coordinator is not an own one.
    pub(super) fn of(swarm: &Swarm) -> anyhow::Result<Option<Self>> {
        let Some(every) = swarm.cli.gate_every else {
            return Ok(None);
        };
        let site = swarm.target.site.as_ref();
        let site = site.context("candidates are submitted to an own coordinator only")?;
        Ok(Some(Self {
            every: Duration::from_secs_f64(every),
            trainer: site.trainer.clone(),
            operator: site.operator.clone(),
            params: swarm.target.before.params.clone(),
        }))
    }

    /// Submits one candidate after the other, until one is refused.
    pub(super) async fn submit_now_and_then(self, ground: &Ground) -> anyhow::Error {
        loop {
            if let Err(error) = self.submit(ground).await {
                return error;
            }
            tokio::time::sleep(self.every).await;
        }
    }

    async fn submit(&self, ground: &Ground) -> anyhow::Result<()> {
        let taken = ground.book.with(|accounts| accounts.submitted.len());
        let candidate = taken as u64;
        let params = RunParams {
            gate: rule(candidate),
            ..self.params.clone()
        };
        let patch = RunPatch {
            params: Some(params),
            ..RunPatch::default()
        };
        let path = format!("/runs/{RUN}");
        let patched: Answer<RunInfo> =
            insist(async || self.operator.json(Method::PATCH, &path, Some(&patch)).await).await;
        patched.map_err(|problem| anyhow::anyhow!("the gate was not changed: {problem}"))?;
        // The run's first network is of step 0.
        let file = network::file("rookery-swarm", candidate + 1)?;
        let receipt: Answer<NetworkReceipt> =
            insist(async || self.trainer.submit(RUN, &file).await).await;
        let receipt =
            receipt.map_err(|problem| anyhow::anyhow!("a candidate was refused: {problem}"))?;
        ground
            .book
            .with(|accounts| accounts.submitted.insert(receipt.hash));
        Ok(())
    }
}

/// Asks until there is an answer that will be no other later: the coordinator may be down, or have
/// no room for a candidate yet.
async fn insist<T>(ask: impl AsyncFn() -> anyhow::Result<Answer<T>>) -> Answer<T> {
    loop {
        match ask().await {
            Ok(Err(problem)) if problem.remedy() == Remedy::Retry => {}
            Ok(answer) => return answer,
            Err(_) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}
