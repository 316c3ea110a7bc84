//! Leases that are entered, and what their workers said of themselves, many at a time.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::ids::{JobId, NetworkNumber, Seed};
use rookery_common::protocol::jobs::WorkKind;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::lease_work::{self, Named, WorkReference};
use crate::db::models::states::JobState;
use crate::db::sql::rows::{job_bytes, seed_column, to_json};
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::LeaseRequest;

/// A request for a job, and when it came.
#[derive(Clone)]
pub(crate) struct PendingLease {
    pub(crate) request: LeaseRequest,
    pub(crate) now: Timestamp,
}

impl PendingLease {
    pub(crate) fn milliseconds(&self) -> i64 {
        self.now.as_millisecond()
    }
}

/// A job that was handed out.
pub(crate) struct NewLease {
    pub(crate) run: i64,
    pub(crate) match_id: Option<i64>,
    pub(crate) asked: PendingLease,
    pub(crate) id: JobId,
    pub(crate) kind: WorkKind,
    pub(crate) games: u32,
    pub(crate) lease_seconds: u32,
    pub(crate) seed: Seed,
    /// Of its networks the first.
    pub(crate) network: Option<NetworkNumber>,
    /// Its work as the ledger keeps it, and what that names.
    pub(crate) reference: WorkReference,
    pub(crate) named: Named,
}

/// Enters these leases, and forgets them.
pub(crate) async fn enter(conn: &mut AnyConnection, entries: &mut Vec<NewLease>) -> Result<()> {
    let named = entries.iter_mut().flat_map(|entry| entry.named.drain(..));
    let named: HashMap<_, _> = named.collect();
    lease_work::enter(conn, &named).await?;
    for part in parts(entries) {
        enter_jobs(conn, part).await?;
    }
    // A worker that asked twice has one row: what it said last.
    let mut last = HashMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let request = &entry.asked.request;
        last.insert((request.user.0, &request.request.worker), place);
    }
    let mut last: Vec<usize> = last.into_values().collect();
    last.sort_unstable();
    let last: Vec<&NewLease> = last.into_iter().filter_map(|at| entries.get(at)).collect();
    for part in parts(&last) {
        enter_workers(conn, part).await?;
    }
    entries.clear();
    Ok(())
}

async fn enter_jobs(conn: &mut AnyConnection, entries: &[NewLease]) -> Result<()> {
    let mut query = Statement::new(
        "INSERT INTO jobs (id, run_id, user_id, worker, kind, network, match_id, seed, work,
           games, lease_ms, leased_at, expires_at, protocol, state)",
    );
    query.rows(entries, |row, entry| {
        let request = &entry.asked.request;
        let lease_ms = i64::from(entry.lease_seconds) * 1000;
        let now = entry.asked.milliseconds();
        row.bind(job_bytes(entry.id))?
            .bind(entry.run)?
            .bind(request.user.0)?
            .bind(request.request.worker.clone())?
            .bind(entry.kind.name())?
            .bind(entry.network.map(|network| i64::from(network.0)))?
            .bind(entry.match_id)?
            .bind(seed_column(entry.seed))?
            .bind(to_json(&entry.reference)?)?
            .bind(i64::from(entry.games))?
            .bind(lease_ms)?
            .bind(now)?
            .bind(now + lease_ms)?
            .bind(i64::from(request.request.protocol))?
            .bind(JobState::Open.name())?;
        Ok(())
    })?;
    query.execute(conn).await
}

async fn enter_workers(conn: &mut AnyConnection, entries: &[&NewLease]) -> Result<()> {
    let mut query = Statement::new(
        "INSERT INTO workers (user_id, name, backend, version, evals_per_second, job_kind,
           last_seen, block, run_id)",
    );
    query.rows(entries, |row, entry| {
        let (user, asked) = (entry.asked.request.user, &entry.asked.request.request);
        row.bind(user.0)?
            .bind(asked.worker.clone())?
            .bind(asked.backend.name())?
            .bind(asked.version.clone())?
            .bind(speed(asked.evals_per_second))?
            .bind(entry.kind.name())?
            .bind(entry.asked.milliseconds())?
            .bind(entry.asked.request.block)?
            .bind(entry.run)?;
        Ok(())
    })?;
    query.push(
        " ON CONFLICT (user_id, name) DO UPDATE SET backend = excluded.backend,
           version = excluded.version, evals_per_second = excluded.evals_per_second,
           job_kind = excluded.job_kind, last_seen = excluded.last_seen,
           block = excluded.block, run_id = excluded.run_id",
    );
    query.execute(conn).await
}

/// More evaluations a second than any worker makes.
const IMPOSSIBLE: f64 = 1e9;

/// A reported speed, or 0, which is unknown, if it can be none: pages show the sum of all.
pub(crate) fn speed(reported: f32) -> f64 {
    let speed = f64::from(reported);
    if (0.0..IMPOSSIBLE).contains(&speed) {
        speed
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_no_speed_does_not_count() {
        assert_eq!([0.0, 12.5, 3e6].map(speed), [0.0, 12.5, 3e6]);
        for absurd in [f32::NAN, f32::INFINITY, -1.0, -f32::MAX, f32::MAX] {
            assert_eq!(speed(absurd), 0.0, "{absurd}");
        }
    }
}
