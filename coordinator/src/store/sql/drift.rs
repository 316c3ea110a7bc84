//! What drift is measured from, and the audits that follow from it.

use jiff::Timestamp;
use rookery_common::ids::{RunName, UserId};
use sqlx::{AnyConnection, FromRow};

use super::opinions::scrutinise;
use super::runs;
use crate::store::error::Result;
use crate::trust::drift::Sample;

/// Chunks that are looked at.
const CHUNKS: i64 = 400;

#[derive(FromRow)]
struct Row {
    user_id: i64,
    backend: String,
    games: i64,
    plies: i64,
    draws: i64,
    white_wins: i64,
}

/// The last self-play chunks of a run's best network, in numbers.
pub(super) async fn samples(conn: &mut AnyConnection, run: &RunName) -> Result<Vec<Sample>> {
    let run = runs::load(conn, run).await?;
    let Some(best) = run.best else {
        return Ok(Vec::new());
    };
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT c.user_id, c.backend, count(*) AS games, CAST(sum(g.plies) AS BIGINT) AS plies,
           sum(CASE WHEN g.result = 'draw' THEN 1 ELSE 0 END) AS draws,
           sum(CASE WHEN g.result = 'white-wins' THEN 1 ELSE 0 END) AS white_wins
         FROM (SELECT sequence, job_id, user_id, backend FROM chunks
           WHERE run_id = $1 AND kind = 'self-play' AND network = $2 AND held = 0
           ORDER BY sequence DESC LIMIT $3) AS c
         JOIN games g ON g.job_id = c.job_id AND g.chunk = c.sequence
         GROUP BY c.sequence, c.user_id, c.backend ORDER BY c.sequence",
    )
    .bind(run.id)
    .bind(i64::from(best.0))
    .bind(CHUNKS)
    .fetch_all(conn)
    .await?;
    let sample = |row: Row| {
        let games = row.games.max(1) as f64;
        Sample {
            user: UserId(row.user_id),
            backend: row.backend,
            features: [
                row.plies as f64 / games,
                row.draws as f64 / games,
                row.white_wins as f64 / games,
            ],
        }
    };
    Ok(rows.into_iter().map(sample).collect())
}

/// Brings a contributor's recent chunks before the auditors.
pub(super) async fn suspect(
    conn: &mut AnyConnection,
    run: RunName,
    user: UserId,
    now: Timestamp,
) -> Result<()> {
    let run = runs::id_of(conn, &run).await?;
    scrutinise(conn, run, user.0, "drift", now).await
}
