//! How many leases a contributor and a worker may hold at once. What was given back unplayed counts
//! until its lease would have ended.

use std::time::Duration;

use sqlx::{AnyConnection, FromRow};

use crate::store::error::{Result, StoreError};
use crate::store::model::{LeaseQuotas, LeaseRequest};

/// Longest wait that is asked for, in milliseconds: a chunk may end a lease at any time.
const LONGEST_WAIT_MS: i64 = 60_000;

/// Leases that are out, and when the first of them ends.
#[derive(FromRow)]
struct Held {
    contributor: i64,
    worker: i64,
    first: Option<i64>,
}

/// Refuses who holds too many leases already.
pub(super) async fn check(
    conn: &mut AnyConnection,
    request: &LeaseRequest,
    now: i64,
) -> Result<()> {
    let LeaseQuotas {
        contributor,
        worker,
    } = request.quotas;
    if contributor.is_none() && worker.is_none() {
        return Ok(());
    }
    let held: Held = sqlx::query_as(
        "SELECT count(*) AS contributor,
           CAST(coalesce(sum(CASE WHEN worker = $2 THEN 1 ELSE 0 END), 0) AS BIGINT) AS worker,
           min(expires_at) AS first
         FROM jobs WHERE user_id = $1 AND state <> 'done' AND expires_at > $3
           AND (state = 'open' OR games_counted = 0)",
    )
    .bind(request.user.0)
    .bind(&request.request.worker)
    .bind(now)
    .fetch_one(conn)
    .await?;
    let over = |held: i64, most: Option<u32>| most.filter(|most| held >= i64::from(*most));
    let refused = over(held.contributor, contributor)
        .map(|most| ("contributor", most))
        .or_else(|| over(held.worker, worker).map(|most| ("worker", most)));
    let Some((holder, most)) = refused else {
        return Ok(());
    };
    let first = held.first.unwrap_or(now) - now;
    let wait = first.clamp(0, LONGEST_WAIT_MS).unsigned_abs();
    Err(StoreError::TooManyLeases {
        holder,
        most,
        wait: Duration::from_millis(wait),
    })
}
