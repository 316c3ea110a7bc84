//! What drift is measured from, what was found, and the audits that follow.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rookery_common::chunk::SearchSums;
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::trust::DriftFinding;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::audits::Cause;
use crate::db::models::extra_audits::open_recent;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{from_json, time_text, to_u32};
use crate::trust::drift::{GameSums, Sample, Suspicion};

/// Chunks that are looked at.
const CHUNKS: i64 = 1000;

impl Ledger {
    /// The last self-play chunks of a run's best network, in numbers, in the ledger's order.
    pub async fn samples(&self, run: &RunName) -> Result<Vec<Sample>> {
        read!(self, "drift", |conn| async {
            let run = runs::load(conn, run).await?;
            let Some(best) = run.best else {
                return Ok(Vec::new());
            };
            let rows: Vec<Row> = sqlx::query_as(
                "SELECT c.user_id, j.worker, c.backend, c.searches, count(*) AS games,
                   CAST(sum(g.plies) AS BIGINT) AS plies,
                   CAST(sum(CASE WHEN g.result = 'draw' THEN 1 ELSE 0 END) AS BIGINT) AS draws,
                   CAST(sum(CASE WHEN g.result = 'white-wins' THEN 1 ELSE 0 END) AS BIGINT)
                     AS white_wins
                 FROM (SELECT sequence, job_id, user_id, backend, searches FROM chunks
                   WHERE run_id = $1 AND kind = 'self-play' AND network = $2 AND held = 0
                     AND searches IS NOT NULL
                   ORDER BY sequence DESC LIMIT $3) AS c
                 JOIN jobs j ON j.id = c.job_id
                 JOIN games g ON g.job_id = c.job_id AND g.chunk = c.sequence
                 GROUP BY c.sequence, c.user_id, j.worker, c.backend, c.searches ORDER BY c.sequence",
            )
            .bind(run.id)
            .bind(i64::from(best.0))
            .bind(CHUNKS)
            .fetch_all(conn)
            .await?;
            rows.into_iter().map(Row::into_sample).collect()
        })
    }

    /// Keeps who stands out, and brings the recent chunks of those contributors before the auditors.
    pub async fn suspect(
        &self,
        run: &RunName,
        found: Vec<Suspicion>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        transact!(self, "drift", |conn| {
            let run = runs::id_of(conn, &run).await?;
            for suspicion in &found {
                store_finding(conn, run, suspicion, now).await?;
            }
            let users: BTreeSet<i64> = found.iter().map(|suspicion| suspicion.user.0).collect();
            for user in users {
                open_recent(conn, run, user, Cause::Drift, now).await?;
            }
            Ok(())
        })
    }
}

#[derive(FromRow)]
struct Row {
    user_id: i64,
    worker: String,
    backend: String,
    searches: String,
    games: i64,
    plies: i64,
    draws: i64,
    white_wins: i64,
}

impl Row {
    fn into_sample(self) -> Result<Sample> {
        let searches: SearchSums = from_json("sums of searches", &self.searches)?;
        Ok(Sample {
            user: UserId(self.user_id),
            worker: self.worker,
            backend: self.backend,
            sums: GameSums {
                games: to_u32("number of games", self.games)?,
                plies: u64::from(to_u32("number of plies", self.plies)?),
                draws: to_u32("number of games", self.draws)?,
                white_wins: to_u32("number of games", self.white_wins)?,
                searches,
            },
        })
    }
}

async fn store_finding(
    conn: &mut AnyConnection,
    run: i64,
    suspicion: &Suspicion,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO drift_findings (run_id, user_id, worker, backend, feature, z, found_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (run_id, user_id, worker, backend, feature)
           DO UPDATE SET z = excluded.z, found_at = excluded.found_at",
    )
    .bind(run)
    .bind(suspicion.user.0)
    .bind(&suspicion.worker)
    .bind(&suspicion.backend)
    .bind(suspicion.feature)
    .bind(suspicion.z)
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct FindingRow {
    run: String,
    worker: String,
    backend: String,
    feature: String,
    z: f64,
    found_at: i64,
}

/// In what a contributor's games looked unlike everybody else's, newest first.
pub(crate) async fn findings(conn: &mut AnyConnection, user: UserId) -> Result<Vec<DriftFinding>> {
    let rows: Vec<FindingRow> = sqlx::query_as(
        "SELECT r.name AS run, d.worker, d.backend, d.feature, d.z, d.found_at
         FROM drift_findings d JOIN runs r ON r.id = d.run_id
         WHERE d.user_id = $1 ORDER BY d.found_at DESC, d.worker, d.feature",
    )
    .bind(user.0)
    .fetch_all(conn)
    .await?;
    let finding = |row: FindingRow| {
        Ok(DriftFinding {
            run: row.run,
            worker: row.worker,
            backend: row.backend,
            feature: row.feature,
            z: row.z,
            at: time_text(row.found_at)?,
        })
    };
    rows.into_iter().map(finding).collect()
}
