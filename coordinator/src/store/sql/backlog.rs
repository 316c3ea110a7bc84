//! How many audits wait: so many of each contributor's chunks, however many it sends, and everybody
//! has a turn.

use sqlx::AnyConnection;

use crate::store::error::Result;

/// Sampled audits of one contributor that are open in a run at once. More would not be made in time
/// by anybody.
const OPEN: i64 = 200;
/// Audits of a run that are planned ahead.
const PLANNED: i64 = 256;
/// The same of one contributor: nobody's wait behind all of another's.
const PLANNED_OF_ONE: i64 = 16;

/// Gives up sampled audits where more of one contributor are open than can be, those with least luck:
/// each has its chance by the positions of its chunk, whenever it came.
pub(super) async fn keep_luckiest(conn: &mut AnyConnection) -> Result<()> {
    sqlx::query(
        "UPDATE audits SET state = 'void', plan = NULL WHERE id IN (SELECT id FROM (
           SELECT id,
             row_number() OVER (PARTITION BY user_id, run_id ORDER BY luck DESC, id) AS place
           FROM audits WHERE state = 'open' AND cause = 'sampled') AS ranked WHERE place > $1)",
    )
    .bind(OPEN)
    .execute(conn)
    .await?;
    Ok(())
}

/// An audit that is to be planned: its number, its chunk's hash and job, and the job's work.
pub(super) type Unplanned = (i64, Vec<u8>, Vec<u8>, String);

/// Open audits without a plan that are planned next. Each run has its own, as whoever audits may play
/// in no other, and one that is paused has none.
pub(super) async fn next(conn: &mut AnyConnection) -> Result<Vec<Unplanned>> {
    let runs: Vec<i64> = sqlx::query_scalar("SELECT id FROM runs WHERE status = 'open'")
        .fetch_all(&mut *conn)
        .await?;
    let mut audits = Vec::new();
    for run in runs {
        audits.extend(next_of(conn, run).await?);
    }
    Ok(audits)
}

/// Those of a run: everybody's first before anybody's second.
async fn next_of(conn: &mut AnyConnection, run: i64) -> Result<Vec<Unplanned>> {
    let planned: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM audits WHERE run_id = $1 AND state = 'open' AND plan IS NOT NULL",
    )
    .bind(run)
    .fetch_one(&mut *conn)
    .await?;
    let audits = sqlx::query_as(
        "SELECT a.id, c.hash, c.job_id, j.work FROM (
           SELECT id, chunk, CASE WHEN plan IS NULL THEN 1 ELSE 0 END AS waits,
             row_number() OVER (PARTITION BY user_id
               ORDER BY CASE WHEN plan IS NULL THEN 1 ELSE 0 END, id) AS turn
           FROM audits WHERE run_id = $1 AND state = 'open') AS a
         JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
         WHERE a.waits = 1 AND a.turn <= $2 ORDER BY a.turn, a.id LIMIT $3",
    )
    .bind(run)
    .bind(PLANNED_OF_ONE)
    .bind((PLANNED - planned).max(0))
    .fetch_all(conn)
    .await?;
    Ok(audits)
}
