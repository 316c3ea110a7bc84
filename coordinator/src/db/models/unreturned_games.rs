//! Training games that a contributor was given and that did not come.
//!
//! Whoever plays honestly and sends only what it likes is not found by audits. But games that were
//! kept back are missing: no share of games (of draws, say) can lie further from what was played
//! than the share of games that is missing. So is what an honest worker had in hand when somebody
//! closed the lid, which is why operators are told of it and nothing follows by itself.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::UserId;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::conditions::{is_over, is_training};
use crate::db::sql::rows::to_count;

/// How far back is looked.
const LATELY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Chunks of a contributor that are looked at, the newest: large ones are known by less than a week.
const CHUNKS: i64 = 1000;
/// Games of a job that has been out for so long are missing whatever heartbeats say: jobs last minutes.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// Training games that a contributor was given lately.
pub(crate) struct UnreturnedGames {
    /// Those that came.
    pub(crate) came: u64,
    /// Those that did not, of jobs that were given back, whose lease is over, or that are out for long.
    pub(crate) missing: u64,
}

/// What a contributor was given lately.
pub(crate) async fn count_unreturned(
    conn: &mut AnyConnection,
    user: UserId,
    now: Timestamp,
) -> Result<UnreturnedGames> {
    let lately = (now - LATELY).as_millisecond();
    let (chunks, oldest, came): (i64, i64, i64) = sqlx::query_as(concat!(
        "SELECT count(*), coalesce(min(accepted_at), 0),
           CAST(coalesce(sum(CASE WHEN ",
        is_training!("kind"),
        " AND accepted_at > $2
             THEN games ELSE 0 END), 0) AS BIGINT)
         FROM (SELECT kind, games, accepted_at FROM chunks WHERE user_id = $1
           ORDER BY sequence DESC LIMIT $3) AS newest",
    ))
    .bind(user.0)
    .bind(lately)
    .bind(CHUNKS)
    .fetch_one(&mut *conn)
    .await?;
    let since = if chunks < CHUNKS {
        lately
    } else {
        oldest.max(lately)
    };
    let missing: i64 = sqlx::query_scalar(concat!(
        "SELECT CAST(coalesce(sum(games - games_counted), 0) AS BIGINT) FROM jobs
         WHERE user_id = $1 AND state <> 'done' AND ",
        is_training!("kind"),
        "
           AND expires_at > $2
           AND (state = 'returned' OR ",
        is_over!("$3"),
        " OR leased_at < $4)"
    ))
    .bind(user.0)
    .bind(since)
    .bind(now.as_millisecond())
    .bind((now - LONGEST).as_millisecond())
    .fetch_one(conn)
    .await?;
    Ok(UnreturnedGames {
        came: to_count(came),
        missing: to_count(missing),
    })
}
