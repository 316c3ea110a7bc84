//! What trainers report.

use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::MetricPoint;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{count, from_json, time, to_json};
use crate::db::types::MetricRecord;

impl Ledger {
    /// Adds a trainer's metrics; a step that was reported before is replaced.
    pub async fn add_metrics(
        &self,
        run: &RunName,
        points: Vec<MetricPoint>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        transact!(self, "metrics", |conn| {
            let run = runs::id_of(conn, &run).await?;
            if let Some(last) = points.iter().map(|point| point.step).max() {
                sqlx::query("UPDATE runs SET reported_step = $2, reported_at = $3 WHERE id = $1")
                    .bind(run)
                    .bind(count(last))
                    .bind(now.as_millisecond())
                    .execute(&mut *conn)
                    .await?;
            }
            for point in points {
                sqlx::query(
                    "INSERT INTO metrics (run_id, step, content, reported_at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (run_id, step)
                     DO UPDATE SET content = excluded.content, reported_at = excluded.reported_at",
                )
                .bind(run)
                .bind(count(point.step))
                .bind(to_json(&point)?)
                .bind(now.as_millisecond())
                .execute(&mut *conn)
                .await?;
            }
            Ok(())
        })
    }

    /// Metrics of a run after a step, in order.
    pub async fn metrics(
        &self,
        run: &RunName,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Vec<MetricPoint>> {
        read!(self, "metrics", |conn| async {
            let rows: Vec<String> = sqlx::query_scalar(
                "SELECT content FROM metrics WHERE run_id = $1 AND step > $2 ORDER BY step LIMIT $3",
            )
            .bind(runs::id_of(conn, run).await?)
            .bind(after.map_or(-1, count))
            .bind(i64::from(limit))
            .fetch_all(conn)
            .await?;
            rows.iter().map(|json| from_json("metrics", json)).collect()
        })
    }

    /// Metrics of a run in order, from its beginning to the last one: at most so many, and of those
    /// whose steps lie closer than that many do in all, only some.
    pub async fn metrics_throughout(&self, run: &RunName, most: u32) -> Result<Vec<MetricRecord>> {
        read!(self, "metrics", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let ends: (Option<i64>, Option<i64>) = sqlx::query_as(
                "SELECT (SELECT min(step) FROM metrics WHERE run_id = $1),
                   (SELECT max(step) FROM metrics WHERE run_id = $1)",
            )
            .bind(run)
            .fetch_one(&mut *conn)
            .await?;
            let (Some(first), Some(last)) = ends else {
                return Ok(Vec::new());
            };
            let most = i64::from(most.max(1));
            // Marks with equal gaps, made shorter where they find few because steps lie far from all others.
            let mut gap = ((last - first) / most).saturating_add(1);
            loop {
                let rows = at_marks(conn, run, last, gap).await?;
                let found = rows.len() as i64;
                if gap == 1 || 4 * found >= most {
                    return rows.into_iter().map(into_record).collect();
                }
                // A gap that holds a report holds at most two more of the shorter ones than fit into it.
                gap = gap * found / (most - 2 * found) + 1;
            }
        })
    }
}

fn into_record((json, reported_at): (String, i64)) -> Result<MetricRecord> {
    Ok(MetricRecord {
        point: from_json("metrics", &json)?,
        reported_at: time(reported_at)?,
    })
}

/// The last report before each mark, the marks going down from a step; where there is none between
/// two marks, none. No report is read but those in the answer: each is found by its step.
async fn at_marks(
    conn: &mut AnyConnection,
    run: i64,
    last: i64,
    gap: i64,
) -> Result<Vec<(String, i64)>> {
    let rows = sqlx::query_as(
        "WITH RECURSIVE found (step) AS (
           SELECT CAST($2 AS BIGINT) UNION ALL
           SELECT (SELECT max(m.step) FROM metrics m WHERE m.run_id = $1
               AND m.step <= found.step - CAST($3 AS BIGINT) + ($2 - found.step) % $3)
           FROM found WHERE found.step IS NOT NULL)
         SELECT content, reported_at FROM metrics WHERE run_id = $1 AND step IN (SELECT step FROM found)
         ORDER BY step",
    )
    .bind(run)
    .bind(last)
    .bind(gap)
    .fetch_all(conn)
    .await?;
    Ok(rows)
}
