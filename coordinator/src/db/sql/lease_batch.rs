//! What is looked up once for all who ask for jobs together, what each of them changes of it, and the
//! jobs that they get, until these are entered.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::jobs::{NetworkRef, WorkKind};
use sqlx::AnyConnection;

use super::matches::{self, Match};
use super::new_leases::{self, NewLease, PendingLease};
use super::quotas::OpenLeases;
use super::runs::{self, Run};
use super::scheduling_stats::{self, SchedulingStats};
use super::{audits, quarantine};
use crate::db::error::{DbError, Result};
use crate::db::model::LeaseRequest;
use crate::db::rollout::RolloutTarget;

/// The ledger as those see it who ask together.
pub(super) struct LeaseBatch {
    held: OpenLeases,
    quarantined: HashSet<i64>,
    runs: HashMap<Option<RunName>, Arc<[Run]>>,
    outlooks: HashMap<i64, SchedulingStats>,
    /// What was best before.
    formers: HashMap<i64, Option<NetworkRef>>,
    matches: HashMap<i64, Arc<[Match]>>,
    audits: HashMap<i64, bool>,
    /// Jobs that were handed out and are not in the ledger yet.
    entries: Vec<NewLease>,
}

impl LeaseBatch {
    pub(super) async fn open(conn: &mut AnyConnection, asked: &[PendingLease]) -> Result<Self> {
        let mut users: Vec<i64> = asked.iter().map(|asked| asked.request.user.0).collect();
        users.sort_unstable();
        users.dedup();
        Ok(Self {
            held: OpenLeases::by(conn, asked).await?,
            quarantined: quarantine::among(conn, &users).await?,
            runs: HashMap::new(),
            outlooks: HashMap::new(),
            formers: HashMap::new(),
            matches: HashMap::new(),
            audits: HashMap::new(),
            entries: Vec::with_capacity(asked.len()),
        })
    }

    /// Why somebody gets nothing.
    pub(super) fn refusal(&self, asked: &PendingLease) -> Option<DbError> {
        self.held.refusal(&asked.request, asked.milliseconds())
    }

    /// Whether the last order on the contributor was a quarantine.
    pub(super) fn is_quarantined(&self, request: &LeaseRequest) -> bool {
        self.quarantined.contains(&request.user.0)
    }

    /// The run of this name, if there is one, or all that are open, the newest first.
    pub(super) async fn runs(
        &mut self,
        conn: &mut AnyConnection,
        name: Option<&RunName>,
    ) -> Result<Arc<[Run]>> {
        let key = name.cloned();
        if let Some(known) = self.runs.get(&key) {
            return Ok(known.clone());
        }
        let found: Arc<[Run]> = match name {
            Some(name) => runs::find(conn, name).await?.into_iter().collect(),
            None => runs::open(conn).await?.into(),
        };
        self.runs.insert(key, found.clone());
        Ok(found)
    }

    /// How things stand in a run.
    pub(super) async fn stats(
        &mut self,
        conn: &mut AnyConnection,
        run: &Run,
        best: NetworkNumber,
    ) -> Result<SchedulingStats> {
        if let Some(known) = self.outlooks.get(&run.id) {
            return Ok(known.clone());
        }
        let puzzles = run.params.scheduling.puzzle_share > 0.0;
        let stats = scheduling_stats::stats(conn, run.id, best, puzzles).await?;
        self.outlooks.insert(run.id, stats.clone());
        Ok(stats)
    }

    /// The network for a worker's training games, and whether puzzles were begun with it: best, or for a
    /// while what was best before.
    pub(super) async fn for_training(
        &mut self,
        conn: &mut AnyConnection,
        run: &Run,
        best: NetworkNumber,
        asked: &PendingLease,
    ) -> Result<(NetworkRef, bool)> {
        let SchedulingStats {
            puzzles_begun,
            network,
            since,
            ..
        } = self.stats(conn, run, best).await?;
        let request = &asked.request;
        let target = RolloutTarget {
            user: request.user,
            worker: &request.request.worker,
            fleet: request.fleet,
        };
        let age = asked.milliseconds().saturating_sub(since);
        // Nothing was best before the first network of a run.
        if best == NetworkNumber(0) || !target.waits_for(&network.hash, age) {
            return Ok((network, puzzles_begun));
        }
        let former = self.former(conn, run.id, best).await?;
        // Its puzzles were begun when it became best.
        Ok(former.map_or((network, puzzles_begun), |former| (former, true)))
    }

    /// The network that was best before, as [`scheduling_stats::before`] finds it.
    async fn former(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
        best: NetworkNumber,
    ) -> Result<Option<NetworkRef>> {
        if let Some(known) = self.formers.get(&run) {
            return Ok(known.clone());
        }
        let former = scheduling_stats::before(conn, run, best).await?;
        self.formers.insert(run, former.clone());
        Ok(former)
    }

    /// Whether audits of a run's chunks wait for somebody, or are being made.
    pub(super) async fn any_audit(&mut self, conn: &mut AnyConnection, run: i64) -> Result<bool> {
        if let Some(known) = self.audits.get(&run) {
            return Ok(*known);
        }
        let any = audits::any_planned(conn, run).await?;
        self.audits.insert(run, any);
        Ok(any)
    }

    /// Open matches of a run, gates first, then the oldest.
    pub(super) async fn matches(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
    ) -> Result<Arc<[Match]>> {
        if let Some(known) = self.matches.get(&run) {
            return Ok(known.clone());
        }
        let open: Arc<[Match]> = matches::open_in(conn, run).await?.into();
        self.matches.insert(run, open.clone());
        Ok(open)
    }

    /// Takes a job that was handed out, and lets the next one see what it has changed.
    pub(super) fn take(&mut self, entry: NewLease) {
        let asked = &entry.asked;
        let lease_ms = i64::from(entry.job.lease_seconds) * 1000;
        let (user, worker) = (asked.request.user.0, asked.request.request.worker.clone());
        self.held
            .add(user, worker, 1, asked.milliseconds() + lease_ms);
        match entry.job.work.kind() {
            WorkKind::Match => {
                self.matches.remove(&entry.run);
            }
            WorkKind::Puzzles => {
                if let Some(stats) = self.outlooks.get_mut(&entry.run)
                    && entry.job.networks.contains(&stats.network)
                {
                    stats.puzzles_begun = true;
                }
            }
            WorkKind::SelfPlay | WorkKind::Audit => {}
        }
        self.entries.push(entry);
    }

    /// Enters the jobs that were handed out so far.
    pub(super) async fn enter(&mut self, conn: &mut AnyConnection) -> Result<()> {
        new_leases::enter(conn, &mut self.entries).await
    }
}
