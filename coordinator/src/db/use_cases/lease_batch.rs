//! A batch of requests for jobs: rows that are read once for all of them, what each job changes of that,
//! and the new leases until they are inserted.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::jobs::{NetworkRef, WorkKind};
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::lease_work::LeaseValues;
use crate::db::models::matches::{self, Match};
use crate::db::models::runs::{self, Run};
use crate::db::models::scheduling_stats::{self, SchedulingStats};
use crate::db::models::{audit_draws, audits, networks, newcomers, puzzles};
use crate::db::rollout::RolloutTarget;
use crate::db::types::LeaseRequest;
use crate::db::use_cases::new_leases::{self, NewLease, PendingLease};
use crate::db::use_cases::quarantine;
use crate::db::use_cases::quotas::OpenLeases;
use crate::trust::verdict::Auditor;

/// The ledger as the requests of one batch see it. Rows are cached by run.
pub(crate) struct LeaseBatch {
    open_leases: OpenLeases,
    quarantined: HashSet<i64>,
    past_probation: HashSet<i64>,
    /// Auditors of the operator's at work, at most two, once they were looked for.
    auditors: Option<Vec<i64>>,
    /// Whether enough proven contributors are at work.
    proven: HashMap<i64, bool>,
    runs: HashMap<Option<RunName>, Arc<[Run]>>,
    stats: HashMap<i64, SchedulingStats>,
    /// What was best before the best network.
    formers: HashMap<i64, Option<NetworkRef>>,
    matches: HashMap<i64, Arc<[Match]>>,
    audits: HashMap<i64, bool>,
    networks: HashMap<(i64, NetworkNumber), NetworkRef>,
    /// Whether one of two networks is a program.
    programs: HashMap<(i64, [NetworkNumber; 2]), bool>,
    puzzles: HashMap<i64, u32>,
    /// The runs' opening books, among others.
    values: Arc<LeaseValues>,
    /// Jobs that were handed out and are not in the ledger yet.
    entries: Vec<NewLease>,
}

impl LeaseBatch {
    pub(crate) async fn open(
        conn: &mut AnyConnection,
        asked: &[PendingLease],
        values: Arc<LeaseValues>,
    ) -> Result<Self> {
        let mut users: Vec<i64> = asked.iter().map(|asked| asked.request.user.0).collect();
        users.sort_unstable();
        users.dedup();
        Ok(Self {
            open_leases: OpenLeases::by(conn, asked).await?,
            quarantined: quarantine::list_quarantined(conn, &users).await?,
            past_probation: newcomers::past_probation(conn, &users).await?,
            auditors: None,
            proven: HashMap::new(),
            runs: HashMap::new(),
            stats: HashMap::new(),
            formers: HashMap::new(),
            matches: HashMap::new(),
            audits: HashMap::new(),
            networks: HashMap::new(),
            programs: HashMap::new(),
            puzzles: HashMap::new(),
            values,
            entries: Vec::with_capacity(asked.len()),
        })
    }

    /// Why somebody gets nothing.
    pub(crate) fn refusal(&self, asked: &PendingLease) -> Option<DbError> {
        self.open_leases
            .refusal(&asked.request, asked.milliseconds())
    }

    /// Whether the last order on the contributor was a quarantine.
    pub(crate) fn is_quarantined(&self, request: &LeaseRequest) -> bool {
        self.quarantined.contains(&request.user.0)
    }

    /// Whether the contributor is on probation in a run in which somebody is at work who can end that.
    pub(crate) async fn is_newcomer(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
        asked: &PendingLease,
    ) -> Result<bool> {
        let request = &asked.request;
        if request.auditor == Auditor::Trusted || self.past_probation.contains(&request.user.0) {
            return Ok(false);
        }
        if self.auditors.is_none() {
            self.auditors = Some(audit_draws::auditors_at_work(conn, asked.now).await?);
        }
        let mut auditors = self.auditors.iter().flatten();
        if auditors.any(|auditor| *auditor != request.user.0) {
            return Ok(true);
        }
        let find = newcomers::are_enough_proven(conn, run, asked.milliseconds());
        cached(&mut self.proven, run, find).await
    }

    /// The run of this name, if there is one, or all that are open, the newest first.
    pub(crate) async fn runs(
        &mut self,
        conn: &mut AnyConnection,
        name: Option<&RunName>,
    ) -> Result<Arc<[Run]>> {
        let find = async {
            Ok(match name {
                Some(name) => runs::find(conn, name).await?.into_iter().collect(),
                None => runs::open(conn).await?.into(),
            })
        };
        cached(&mut self.runs, name.cloned(), find).await
    }

    /// How things stand in a run for one worker: for a while after a promotion its network for
    /// training is what was best before.
    pub(crate) async fn stats(
        &mut self,
        conn: &mut AnyConnection,
        run: &Run,
        best: NetworkNumber,
        asked: &PendingLease,
    ) -> Result<SchedulingStats> {
        let puzzles = run.params.scheduling.puzzle_share > 0.0;
        let find = scheduling_stats::of_run(conn, run.id, best, puzzles);
        let mut stats = cached(&mut self.stats, run.id, find).await?;
        let request = &asked.request;
        let target = RolloutTarget {
            user: request.user,
            worker: &request.request.worker,
            fleet: request.fleet,
        };
        let age = asked.milliseconds().saturating_sub(stats.since);
        // Nothing was best before the first network of a run.
        if best != NetworkNumber(0) && target.waits_for(&stats.network.hash, age) {
            let find = scheduling_stats::load_predecessor(conn, run.id, best);
            if let Some(former) = cached(&mut self.formers, run.id, find).await? {
                stats.network = former;
                // They were begun when it became best.
                stats.puzzles_begun = true;
            }
        }
        Ok(stats)
    }

    /// Whether audits of a run's chunks wait for somebody, or are being made.
    pub(crate) async fn any_audit(&mut self, conn: &mut AnyConnection, run: i64) -> Result<bool> {
        cached(&mut self.audits, run, audits::any_planned(conn, run)).await
    }

    /// Open matches of a run, gates first, then the oldest.
    pub(crate) async fn matches(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
    ) -> Result<Arc<[Match]>> {
        let find = async { Ok(matches::open_in(conn, run).await?.into()) };
        cached(&mut self.matches, run, find).await
    }

    /// What a job says of a network of a run.
    pub(crate) async fn network(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
        number: NetworkNumber,
    ) -> Result<NetworkRef> {
        let find = networks::reference(conn, run, number);
        cached(&mut self.networks, (run, number), find).await
    }

    /// Whether one of two networks of a run is a program.
    pub(crate) async fn any_program(
        &mut self,
        conn: &mut AnyConnection,
        run: i64,
        networks: [NetworkNumber; 2],
    ) -> Result<bool> {
        let find = networks::any_program(conn, run, networks);
        cached(&mut self.programs, (run, networks), find).await
    }

    pub(crate) async fn puzzles(&mut self, conn: &mut AnyConnection, run: i64) -> Result<u32> {
        cached(&mut self.puzzles, run, puzzles::count_in(conn, run)).await
    }

    /// The openings of a run: its own book, or the coordinator's.
    pub(crate) async fn book(
        &self,
        conn: &mut AnyConnection,
        run: &Run,
        request: &LeaseRequest,
    ) -> Result<Arc<OpeningBook>> {
        match run.book {
            Some(name) => self.values.book(conn, name).await,
            None => Ok(request.book.clone()),
        }
    }

    /// Takes a job that was handed out, and lets the next one see what it has changed.
    pub(crate) fn take(&mut self, entry: NewLease) {
        let asked = &entry.asked;
        let lease_ms = i64::from(entry.lease_seconds) * 1000;
        let (user, worker) = (asked.request.user.0, asked.request.request.worker.clone());
        self.open_leases
            .add(user, worker, 1, asked.milliseconds() + lease_ms);
        match entry.kind {
            WorkKind::Match => {
                self.matches.remove(&entry.run);
            }
            WorkKind::Puzzles => {
                if let Some(stats) = self.stats.get_mut(&entry.run)
                    && entry.network == Some(stats.network.number)
                {
                    stats.puzzles_begun = true;
                }
            }
            WorkKind::SelfPlay | WorkKind::Audit => {}
        }
        self.entries.push(entry);
    }

    /// Enters the jobs that were handed out so far.
    pub(crate) async fn enter(&mut self, conn: &mut AnyConnection) -> Result<()> {
        new_leases::enter(conn, &mut self.entries).await
    }
}

/// The value that was found for this key before, or finds it.
async fn cached<K: Eq + Hash, V: Clone>(
    found: &mut HashMap<K, V>,
    key: K,
    find: impl Future<Output = Result<V>>,
) -> Result<V> {
    if let Some(value) = found.get(&key) {
        return Ok(value.clone());
    }
    let value = find.await?;
    found.insert(key, value.clone());
    Ok(value)
}
