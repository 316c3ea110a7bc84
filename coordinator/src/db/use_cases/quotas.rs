//! How many leases a contributor and a worker may hold at once. What was given back unplayed counts
//! until its lease would have ended.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::sql::statement::Statement;
use crate::db::types::{LeaseQuotas, LeaseRequest};
use crate::db::use_cases::new_leases::PendingLease;

/// Longest wait that is asked for, in milliseconds: a chunk may end a lease at any time.
const LONGEST_WAIT_MS: i64 = 60_000;

/// Leases that are out, of contributors who ask for more.
#[derive(Default)]
pub(crate) struct OpenLeases(HashMap<i64, Contributor>);

#[derive(Default)]
struct Contributor {
    leases: i64,
    /// By the worker's name.
    of_workers: HashMap<String, i64>,
    /// When the first of them ends.
    first: Option<i64>,
}

impl OpenLeases {
    /// What those who ask hold, as far as quotas limit it.
    pub(crate) async fn by(conn: &mut AnyConnection, asked: &[PendingLease]) -> Result<Self> {
        let mut users: Vec<i64> = asked
            .iter()
            .filter(|asked| asked.request.quotas != LeaseQuotas::default())
            .map(|asked| asked.request.user.0)
            .collect();
        users.sort_unstable();
        users.dedup();
        let mut held = Self::default();
        let Some(now) = asked.iter().map(PendingLease::milliseconds).max() else {
            return Ok(held);
        };
        if users.is_empty() {
            return Ok(held);
        }
        let mut query = Statement::new(
            "SELECT user_id, worker, count(*) AS leases, min(expires_at) AS first FROM jobs
             WHERE state <> 'done' AND (state = 'open' OR games_counted = 0) AND expires_at > ",
        );
        query.bind(now)?.push(" AND user_id IN (");
        query.bind_all(&users)?.push(") GROUP BY user_id, worker");
        let rows: Vec<(i64, String, i64, i64)> = query.fetch_all(conn).await?;
        for (user, worker, leases, first) in rows {
            held.add(user, worker, leases, first);
        }
        Ok(held)
    }

    /// Counts leases of one worker more, the first of which ends at `first`.
    pub(crate) fn add(&mut self, user: i64, worker: String, leases: i64, first: i64) {
        let contributor = self.0.entry(user).or_default();
        contributor.leases += leases;
        *contributor.of_workers.entry(worker).or_default() += leases;
        contributor.first = Some(contributor.first.map_or(first, |known| known.min(first)));
    }

    /// Refuses who holds too many leases already.
    pub(crate) fn refusal(&self, request: &LeaseRequest, now: i64) -> Option<DbError> {
        let held = self.0.get(&request.user.0)?;
        let worker = held.of_workers.get(&request.request.worker);
        let over = |held: i64, most: Option<u32>| most.filter(|most| held >= i64::from(*most));
        let LeaseQuotas {
            contributor: most,
            worker: most_of_worker,
        } = request.quotas;
        let (most, holder) = over(held.leases, most)
            .map(|most| (most, "contributor"))
            .or_else(|| {
                over(worker.copied().unwrap_or_default(), most_of_worker)
                    .map(|most| (most, "worker"))
            })?;
        let first = held.first.unwrap_or(now) - now;
        let wait = first.clamp(0, LONGEST_WAIT_MS).unsigned_abs();
        Some(DbError::TooManyLeases {
            holder,
            most,
            wait: Duration::from_millis(wait),
        })
    }
}
