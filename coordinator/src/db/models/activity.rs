//! What goes on: the workers that were heard of, and the coordinator's pulse.

use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::{ActiveWorkers, WorkerInfo};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::runs;
use crate::db::sql::dialect::Dialect;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{time_text, to_count};
use crate::db::sql::statement::Statement;
use crate::db::types::{ACTIVE, Pulse};

impl Ledger {
    /// How many workers there are, and how many jobs are out.
    pub async fn pulse(&self, now: Timestamp) -> Result<Pulse> {
        read!(self, "activity", |conn| pulse(conn, now))
    }

    /// Workers that were heard since `since`, of all or those whose last job was of a run, at most `limit` of them one by
    /// one.
    pub async fn workers(
        &self,
        run: Option<&RunName>,
        since: Timestamp,
        limit: u32,
    ) -> Result<ActiveWorkers> {
        read!(self, "activity", |conn| async {
            let run = match run {
                Some(run) => Some(runs::id_of(conn, run).await?),
                None => None,
            };
            let mut query = Statement::new(
                "SELECT count(*) AS workers,
                   CAST(coalesce(sum(evals_per_second), 0) AS DOUBLE PRECISION) AS evals_per_second
                 FROM workers w WHERE w.last_seen >= ",
            );
            query.bind(since.as_millisecond())?;
            if let Some(run) = run {
                query.push(" AND w.run_id = ").bind(run)?;
            }
            let (workers, evals_per_second): (i64, f64) = query.fetch_one(&mut *conn).await?;
            Ok(ActiveWorkers {
                all: to_count(workers),
                evals_per_second,
                last_heard: list_last_heard(conn, (None, run), since, limit).await?,
            })
        })
    }
}

async fn pulse(conn: &mut AnyConnection, now: Timestamp) -> Result<Pulse> {
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
    let ledger_bytes: i64 = sqlx::query_scalar(match Dialect::of_connection(conn) {
        Dialect::Postgres => "SELECT pg_database_size(current_database())",
        Dialect::Sqlite => {
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

/// Workers, of one contributor or of one run if they are given, those last heard first.
pub(crate) async fn list_last_heard(
    conn: &mut AnyConnection,
    (user, run): (Option<i64>, Option<i64>),
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
    if let Some(run) = run {
        query.push(" AND w.run_id = ").bind(run)?;
    }
    query.push(" ORDER BY w.last_seen DESC, w.name LIMIT ");
    query.bind(i64::from(limit))?;
    let rows: Vec<WorkerRow> = query.fetch_all(conn).await?;
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
