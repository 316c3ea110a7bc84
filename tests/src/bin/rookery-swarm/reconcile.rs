//! The coordinator against the book: what was acknowledged is there, once, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use hyper::Method;
use hyper::body::Bytes;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{ChunkPage, ChunkReceipt, ChunkRow, HeartbeatReply, WorkKind};
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::rating::GateDecision;
use rookery_tests::client::Client;
use tokio::task::JoinSet;

use crate::book::{Accounts, Fate};
use crate::phases::Swarm;
use crate::phases::calls::Ground;

/// Connections of the check.
const LANES: usize = 8;
/// Chunks of a ledger's page.
const PAGE: u32 = 1000;

/// What the comparison found.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) acknowledged_chunks: u64,
    pub(crate) ledger_chunks: u64,
    /// Acknowledged chunks that the ledger does not have, or whose file is missing or another.
    pub(crate) lost: u64,
    /// Chunks or games that stand in the ledger, or were added to the sums, more than once.
    pub(crate) double_counted: u64,
    /// Chunks in the ledger whose acknowledgement never arrived.
    pub(crate) unheard: u64,
    /// Jobs that were handed out.
    pub(crate) leases: u64,
    /// Jobs that a worker held and the coordinator no longer knows as its own, or gave out twice.
    pub(crate) leases_lost: u64,
    pub(crate) finished: u64,
    pub(crate) abandoned: u64,
    pub(crate) lies: u64,
    pub(crate) believed: u64,
    /// Honest chunks that were refused.
    pub(crate) refused: u64,
    /// What became of candidates, of an own coordinator.
    pub(crate) gates: Gates,
    /// What the coordinator's own check of its sums says, of an own coordinator.
    pub(crate) ledger_check: Option<Result<(), String>>,
}

/// What became of candidates.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    pub(crate) promotions: u64,
    pub(crate) rejections: u64,
    /// Gates that are open although their pairs, which are all in, decide them.
    pub(crate) overdue: u64,
    /// Candidates that were taken and are not there.
    pub(crate) lost: u64,
}

impl Outcome {
    /// Whether everything is as it should be.
    pub(crate) fn is_clean(&self) -> bool {
        let of_gates = self.gates.overdue + self.gates.lost;
        let wrong =
            self.lost + self.double_counted + self.leases_lost + self.believed + self.refused;
        wrong + of_gates == 0 && !matches!(self.ledger_check, Some(Err(_)))
    }
}

/// Compares the coordinator with the book.
///
/// # Errors
///
/// If the coordinator does not answer.
pub(crate) async fn reconcile(swarm: &Swarm) -> anyhow::Result<Outcome> {
    let rows = ledger(swarm).await?;
    let run = swarm.target.trainer.run(swarm.target.run.as_str()).await?;
    let mut seen: HashMap<ContentHash, u64> = HashMap::new();
    rows.iter()
        .for_each(|row| *seen.entry(row.hash).or_default() += 1);
    let repeated: u64 = seen.values().map(|count| count - 1).sum();
    let mut outcome = swarm.ground.book.with(|accounts| {
        let fate = |fate| accounts.leases.values().filter(|l| l.fate == fate).count() as u64;
        Outcome {
            acknowledged_chunks: accounts.acknowledged.len() as u64,
            double_counted: repeated + accounts.counted_twice,
            unheard: unheard(accounts, &seen),
            leases: accounts.leases.len() as u64,
            leases_lost: accounts.leased_twice + accounts.leases_lost.len() as u64,
            finished: fate(Fate::Finished),
            abandoned: fate(Fate::Abandoned),
            lies: accounts.lies,
            believed: accounts.believed,
            refused: accounts.refused.values().sum(),
            ..Outcome::default()
        }
    });
    outcome.ledger_chunks = rows.len() as u64;
    outcome.lost = missing(swarm, &rows) + damaged(swarm, &rows).await?;
    if let Some(site) = &swarm.target.site {
        // What an audit searches again is no game of its own.
        let played = rows.iter().filter(|row| row.kind != WorkKind::Audit);
        let counted: u64 = played.map(|row| u64::from(row.games)).sum();
        outcome.double_counted += (run.games - swarm.target.before.games).abs_diff(counted);
        outcome.gates = gates(swarm).await?;
        outcome.ledger_check = Some(site.check_ledger().map(drop).map_err(|e| format!("{e:#}")));
    }
    outcome.leases_lost += forgotten(swarm).await?;
    Ok(outcome)
}

/// Chunks of the ledger without an acknowledgement.
fn unheard(accounts: &Accounts, ledger: &HashMap<ContentHash, u64>) -> u64 {
    let sent = accounts.unanswered.iter();
    let unheard =
        sent.filter(|hash| ledger.contains_key(hash) && !accounts.acknowledged.contains_key(hash));
    unheard.count() as u64
}

/// The ledger's rows that came with the load: all of an own coordinator, else those that the book
/// knows.
async fn ledger(swarm: &Swarm) -> anyhow::Result<Vec<ChunkRow>> {
    let mut rows = Vec::new();
    let mut after = 0;
    loop {
        let path = format!(
            "/chunks?run={}&after={after}&limit={PAGE}",
            swarm.target.run
        );
        let page: ChunkPage = swarm.target.trainer.get(&path).await?;
        ensure!(
            !page.more || page.next > after,
            "the ledger's pages do not go on"
        );
        after = page.next;
        rows.extend(page.chunks);
        if !page.more {
            break;
        }
    }
    if swarm.target.site.is_none() {
        swarm.ground.book.with(|accounts| {
            rows.retain(|row| {
                accounts.acknowledged.contains_key(&row.hash)
                    || accounts.unanswered.contains(&row.hash)
            });
        });
    }
    Ok(rows)
}

/// Acknowledged chunks that the ledger does not have as they were acknowledged.
fn missing(swarm: &Swarm, rows: &[ChunkRow]) -> u64 {
    let rows: HashMap<_, _> = rows.iter().map(|row| (row.hash, row)).collect();
    swarm.ground.book.with(|accounts| {
        let there = |(hash, receipt): &(&ContentHash, &ChunkReceipt)| {
            rows.get(*hash).is_some_and(|row| {
                (row.sequence, row.games, row.positions)
                    == (receipt.sequence, receipt.games, receipt.positions)
            })
        };
        accounts
            .acknowledged
            .iter()
            .filter(|entry| !there(entry))
            .count() as u64
    })
}

/// Chunks of the ledger whose file is missing or has other bytes. The coordinator may send the
/// caller on to the store.
async fn damaged(swarm: &Swarm, rows: &[ChunkRow]) -> anyhow::Result<u64> {
    let hashes: Arc<Vec<ContentHash>> = Arc::new(rows.iter().map(|row| row.hash).collect());
    lanes(&swarm.ground, |_, lane| {
        let (hashes, trainer) = (hashes.clone(), swarm.target.trainer.clone());
        async move {
            let mut damaged = 0;
            for hash in hashes.iter().skip(lane).step_by(LANES) {
                damaged += u64::from(file(&trainer, *hash).await?.is_none());
            }
            Ok(damaged)
        }
    })
    .await
}

/// What became of candidates. That each verdict follows from the games, the coordinator's own check says.
async fn gates(swarm: &Swarm) -> anyhow::Result<Gates> {
    let (trainer, run) = (&swarm.target.trainer, swarm.target.run.as_str());
    let mut gates = Gates::default();
    for m in trainer.matches(run).await? {
        let has_all_pairs = m.status == MatchStatus::Open && m.pairs_out == 0;
        if m.purpose == MatchPurpose::Gate && has_all_pairs {
            let decision = m.rule.decide(&m.tally)?.decision;
            gates.overdue += u64::from(decision != GateDecision::Continue);
        }
    }
    let networks = trainer.networks(run).await?;
    for network in &networks {
        match network.status {
            NetworkStatus::Promoted => gates.promotions += 1,
            NetworkStatus::Rejected => gates.rejections += 1,
            _ => {}
        }
    }
    let known: HashSet<ContentHash> = networks.iter().map(|network| network.hash).collect();
    gates.lost = swarm
        .ground
        .book
        .with(|accounts| accounts.submitted.difference(&known).count() as u64);
    Ok(gates)
}

/// A chunk's file; none if it is missing or has other bytes.
async fn file(trainer: &Client, hash: ContentHash) -> anyhow::Result<Option<Bytes>> {
    let path = format!("/chunks/{hash}");
    let answer = trainer.send(Method::GET, &path, Bytes::new()).await?;
    if !answer.status().is_success() {
        return Ok(None);
    }
    let bytes = answer.bytes().await?;
    Ok((ContentHash::of(&bytes) == hash).then_some(bytes))
}

/// Jobs that workers hold and whose heartbeats are refused; those of audits may be.
async fn forgotten(swarm: &Swarm) -> anyhow::Result<u64> {
    let held: Vec<(JobId, usize)> = swarm.ground.book.with(|accounts| {
        let known_lost = accounts.leases_lost.clone();
        let held = accounts
            .leases
            .iter()
            .filter(|(_, lease)| lease.fate == Fate::Held && lease.kind != WorkKind::Audit)
            .filter(|(job, _)| !known_lost.contains(*job));
        held.map(|(job, lease)| (*job, lease.contributor)).collect()
    });
    let held = Arc::new(held);
    lanes(&swarm.ground, |ground, lane| {
        let held = held.clone();
        async move {
            let mut connection = ground.connection()?;
            let mut forgotten = 0;
            for (job, contributor) in held.iter().skip(lane).step_by(LANES) {
                let call = ground.heartbeat_call(*contributor, *job);
                let beat = ground
                    .insist::<HeartbeatReply>(&mut connection, &call)
                    .await;
                forgotten += u64::from(beat.is_err());
            }
            Ok(forgotten)
        }
    })
    .await
}

/// Shares work among some connections and adds up what they find.
async fn lanes<F>(
    ground: &Arc<Ground>,
    task: impl Fn(Arc<Ground>, usize) -> F,
) -> anyhow::Result<u64>
where
    F: Future<Output = anyhow::Result<u64>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for lane in 0..LANES {
        tasks.spawn(task(ground.clone(), lane));
    }
    let mut sum = 0;
    while let Some(found) = tasks.join_next().await {
        sum += found.context("a task of the check broke")??;
    }
    Ok(sum)
}
