//! More audits of a contributor's chunks: after a failure, after drift, after a quarantine.

use jiff::Timestamp;
use rookery_common::ids::{Seed, UserId};
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::audits::{self, Cause, NewAudit};
use crate::trust::rate::{HIGHEST_SAMPLING_KEY, MOST_SCRUTINISED, scrutinised};

/// Opens audits on a contributor's recent chunks that have none, or whose audit was given up: what
/// nobody could look at in time is not excused by that.
pub(crate) async fn open_recent(
    conn: &mut AnyConnection,
    run: i64,
    user: i64,
    cause: Cause,
    now: Timestamp,
) -> Result<()> {
    let unaudited: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT c.sequence, c.positions FROM chunks c WHERE c.user_id = $1 AND c.run_id = $2
           AND c.kind <> 'audit' AND NOT EXISTS (SELECT 1 FROM audits a
             WHERE a.chunk = c.sequence AND a.state <> 'void')
         ORDER BY c.sequence DESC LIMIT $3",
    )
    .bind(user)
    .bind(run)
    .bind(MOST_SCRUTINISED as i64)
    .fetch_all(&mut *conn)
    .await?;
    open_first(conn, (run, user), cause, unaudited, now).await
}

/// Opens audits of some chunks of a contributor that came in while the quarantine stood and were
/// not drawn for that: of as many as are scrutinised after a failure, chosen by chance, for the
/// newest are those of which somebody knows beforehand that they will be looked at.
pub(crate) async fn sample_since(
    conn: &mut AnyConnection,
    user: UserId,
    quarantined_at: i64,
    chance: Seed,
    now: Timestamp,
) -> Result<()> {
    let runs: Vec<i64> = sqlx::query_scalar(
        "SELECT DISTINCT run_id FROM chunks WHERE user_id = $1 AND accepted_at >= $2",
    )
    .bind(user.0)
    .bind(quarantined_at)
    .fetch_all(&mut *conn)
    .await?;
    for run in runs {
        let unaudited: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT c.sequence, c.positions FROM chunks c
             WHERE c.user_id = $1 AND c.run_id = $2 AND c.accepted_at >= $3 AND c.kind <> 'audit'
               AND NOT EXISTS (SELECT 1 FROM audits a WHERE a.chunk = c.sequence)
             ORDER BY c.sequence",
        )
        .bind(user.0)
        .bind(run)
        .bind(quarantined_at)
        .fetch_all(&mut *conn)
        .await?;
        let mut drawn: Vec<_> = (0..).map(|n| chance.of_game(n).0).zip(unaudited).collect();
        drawn.sort_unstable();
        let drawn = drawn.into_iter().map(|(_, chunk)| chunk).collect();
        open_first(conn, (run, user.0), Cause::Cleared, drawn, now).await?;
    }
    Ok(())
}

/// Opens audits of the first of these chunks, given with their positions, as far as scrutiny goes.
async fn open_first(
    conn: &mut AnyConnection,
    (run, user): (i64, i64),
    cause: Cause,
    unaudited: Vec<(i64, i64)>,
    now: Timestamp,
) -> Result<()> {
    let positions = unaudited.iter().map(|(_, positions)| *positions);
    let scrutinised = scrutinised(positions);
    let drawn: Vec<NewAudit> = unaudited
        .into_iter()
        .take(scrutinised)
        .map(|(chunk, _)| NewAudit {
            run,
            chunk,
            user,
            cause,
            sampling_key: HIGHEST_SAMPLING_KEY,
            at: now,
        })
        .collect();
    audits::open(conn, &drawn).await
}
