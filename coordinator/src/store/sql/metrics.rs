//! What trainers report.

use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::MetricPoint;
use sqlx::AnyConnection;

use super::rows::{count, from_json, to_json};
use super::runs;
use crate::store::error::Result;

pub(super) async fn add(
    conn: &mut AnyConnection,
    run: RunName,
    points: Vec<MetricPoint>,
    now: Timestamp,
) -> Result<()> {
    let run = runs::id_of(conn, &run).await?;
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
}

pub(super) async fn list(
    conn: &mut AnyConnection,
    run: &RunName,
    after: Option<u64>,
    limit: u32,
) -> Result<Vec<MetricPoint>> {
    let rows: Vec<String> = sqlx::query_scalar(
        "SELECT content FROM metrics WHERE run_id = $1 AND step > $2 ORDER BY step LIMIT $3",
    )
    .bind(runs::id_of(conn, run).await?)
    .bind(after.map_or(-1, count))
    .bind(i64::from(limit))
    .fetch_all(conn)
    .await?;
    rows.iter().map(|json| from_json("metrics", json)).collect()
}

/// No report is read but those in the answer, however many there are: each is found by its step.
pub(super) async fn throughout(
    conn: &mut AnyConnection,
    run: &RunName,
    most: u32,
) -> Result<Vec<MetricPoint>> {
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
    let gap = (last - first) / i64::from(most.max(1)) + 1;
    let rows: Vec<String> = sqlx::query_scalar(
        "WITH RECURSIVE marks (mark) AS (
           SELECT CAST($2 AS BIGINT) UNION ALL
           SELECT mark - CAST($3 AS BIGINT) FROM marks WHERE mark - $3 >= $4)
         SELECT content FROM metrics WHERE run_id = $1 AND step IN (
           SELECT (SELECT max(m.step) FROM metrics m WHERE m.run_id = $1 AND m.step <= mark)
           FROM marks)
         ORDER BY step",
    )
    .bind(run)
    .bind(last)
    .bind(gap)
    .bind(first)
    .fetch_all(conn)
    .await?;
    rows.iter().map(|json| from_json("metrics", json)).collect()
}
