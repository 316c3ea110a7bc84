//! What goes on: the workers that were heard of, and the coordinator's pulse.

use std::collections::HashMap;

use jiff::Timestamp;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::{ActiveWorkers, WorkerInfo};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use super::rows::{time_text, to_count};
use super::spans::{HOUR, hour_of};
use super::statement::Statement;
use crate::store::error::Result;
use crate::store::model::{ACTIVE, Pulse};

pub(super) async fn pulse(conn: &mut AnyConnection, now: Timestamp) -> Result<Pulse> {
    // Run by run the index leads past all jobs that were begun and never finished. A cross join
    // is what keeps SQLite to that order.
    let open_leases: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM runs r CROSS JOIN jobs j
         WHERE j.run_id = r.id AND j.state = 'open' AND j.expires_at > $1",
    )
    .bind(now.as_millisecond())
    .fetch_one(&mut *conn)
    .await?;
    let (open_audits, quarantined, pairs_wanted): (i64, i64, i64) = sqlx::query_as(
        "SELECT
             (SELECT count(*) FROM audits WHERE state = 'open'),
             (SELECT count(*) FROM quarantines q WHERE quarantined <> 0 AND id =
                 (SELECT max(id) FROM quarantines WHERE user_id = q.user_id)),
             (SELECT CAST(coalesce(sum(pair_limit - pairs_0 - pairs_1 - pairs_2 - pairs_3 - pairs_4), 0) AS BIGINT)
                 FROM matches WHERE status = 'open')",
    )
    .fetch_one(&mut *conn)
    .await?;
    let workers: Vec<(String, i64)> = sqlx::query_as(
        "SELECT backend, count(*) FROM workers WHERE last_seen >= $1 GROUP BY backend",
    )
    .bind((now - ACTIVE).as_millisecond())
    .fetch_all(&mut *conn)
    .await?;
    let ledger_bytes: i64 = sqlx::query_scalar(match conn.backend_name() {
        "PostgreSQL" => "SELECT pg_database_size(current_database())",
        _ => {
            "SELECT page_count * page_size FROM pragma_page_count AS pages, pragma_page_size AS bytes"
        }
    })
    .fetch_one(conn)
    .await?;
    Ok(Pulse {
        ledger_bytes: to_count(ledger_bytes),
        open_leases: to_count(open_leases),
        workers: workers
            .into_iter()
            .map(|(backend, count)| (backend, to_count(count)))
            .collect(),
        open_audits: to_count(open_audits),
        quarantined: to_count(quarantined),
        pairs_wanted: to_count(pairs_wanted),
    })
}

#[derive(FromRow)]
struct WorkerRow {
    contributor: String,
    name: String,
    backend: String,
    version: String,
    evals_per_second: f64,
    job_kind: Option<String>,
    last_seen: i64,
}

/// Workers of a contributor that are counted before games have come.
const UNPROVEN_WORKERS: i64 = 64;
/// Evaluations a second of a contributor that are counted before games have come: those of a fast GPU.
const UNPROVEN_SPEED: f64 = 50_000.0;
/// Evaluations that a position may have taken.
const EVALUATIONS: f64 = 1_000.0;
/// What came in lately may have been played within so many seconds: an ordinary job's.
const PLAYED_WITHIN: f64 = 300.0;

/// What came in of a contributor within this hour and the one before. Workers say themselves how many and how
/// fast they are; what is shown of that is no more than games bear out.
#[derive(Debug, Clone, Copy, Default)]
struct Played {
    games: i64,
    positions: i64,
}

impl Played {
    fn workers(self, claimed: i64) -> i64 {
        claimed.min(UNPROVEN_WORKERS.saturating_add(self.games.max(0)))
    }

    fn speed(self, claimed: f64) -> f64 {
        let positions = self.positions.max(0) as f64;
        claimed.min(UNPROVEN_SPEED + positions * EVALUATIONS / PLAYED_WITHIN)
    }
}

pub(super) async fn workers(
    conn: &mut AnyConnection,
    since: Timestamp,
    limit: u32,
) -> Result<ActiveWorkers> {
    let claims: Vec<(i64, i64, f64)> = sqlx::query_as(
        "SELECT user_id, count(*), CAST(sum(evals_per_second) AS DOUBLE PRECISION)
         FROM workers WHERE last_seen >= $1 GROUP BY user_id",
    )
    .bind(since.as_millisecond())
    .fetch_all(&mut *conn)
    .await?;
    let lately: Vec<(i64, i64, i64)> = sqlx::query_as(
        "SELECT s.user_id, CAST(sum(s.games) AS BIGINT), CAST(sum(s.positions) AS BIGINT)
         FROM runs r CROSS JOIN credit_spans s
         WHERE s.run_id = r.id AND s.length = $1 AND s.begins >= $2 GROUP BY s.user_id",
    )
    .bind(HOUR)
    .bind(hour_of(since) - HOUR)
    .fetch_all(&mut *conn)
    .await?;
    let lately: HashMap<i64, Played> = lately
        .into_iter()
        .map(|(user, games, positions)| (user, Played { games, positions }))
        .collect();
    let (mut all, mut evals_per_second) = (0, 0.0);
    for (user, workers, speed) in claims {
        let played = lately.get(&user).copied().unwrap_or_default();
        all += played.workers(workers);
        evals_per_second += played.speed(speed);
    }
    let last_heard = last_heard(conn, None, since, limit).await?;
    Ok(ActiveWorkers {
        all: to_count(all),
        evals_per_second,
        last_heard,
    })
}

/// Workers, of one contributor or of all, those last heard first.
pub(super) async fn last_heard(
    conn: &mut AnyConnection,
    user: Option<i64>,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<WorkerInfo>> {
    let mut query = Statement::new(
        "SELECT u.name AS contributor, w.name, w.backend, w.version, w.evals_per_second,
           w.job_kind, w.last_seen
         FROM workers w JOIN users u ON u.id = w.user_id WHERE w.last_seen >= ",
    );
    query.bind(since.as_millisecond())?;
    if let Some(user) = user {
        query.push(" AND w.user_id = ").bind(user)?;
    }
    query.push(" ORDER BY w.last_seen DESC, w.name LIMIT ");
    query.bind(i64::from(limit))?;
    let (sql, arguments) = query.finish();
    let rows: Vec<WorkerRow> = sqlx::query_as_with(sql, arguments).fetch_all(conn).await?;
    rows.into_iter()
        .map(|row| {
            Ok(WorkerInfo {
                contributor: row.contributor,
                name: row.name,
                backend: row.backend,
                version: row.version,
                evals_per_second: row.evals_per_second as f32,
                job_kind: row.job_kind.and_then(|kind| WorkKind::from_name(&kind)),
                last_seen: time_text(row.last_seen)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_shown_of_a_fleet_than_its_games_bear_out() {
        let idle = Played::default();
        assert_eq!((idle.workers(3), idle.workers(1_000_000)), (3, 64));
        assert_eq!((idle.speed(900.0), idle.speed(1e9)), (900.0, 50_000.0));
        // A thousand machines, each of which has sent a job of 3,200 positions.
        let fleet = Played {
            games: 32_000,
            positions: 3_200_000,
        };
        assert_eq!(fleet.workers(1000), 1000);
        assert_eq!(fleet.speed(5e6), 5e6);
    }
}
