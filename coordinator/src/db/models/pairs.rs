//! Pairs of a match: who plays them, and when both games are in.

use jiff::Timestamp;
use rookery_common::chunk::Side;
use rookery_common::ids::{JobId, MatchId, UserId};
use rookery_common::rating::pentanomial::{GameScore, Tally};
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::gate_decision::PairScore;
use crate::db::models::conditions::{is_over, is_unfinished};
use crate::db::models::matches::Match;
use crate::db::scheduling::{self, Company};
use crate::db::sql::rows::{job_bytes, to_count, to_u32, unreadable};
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::{GameFact, GameFactDetail};

/// Who asks for pairs of a match.
pub(crate) struct Taker {
    pub(crate) user: UserId,
    pub(crate) job: JobId,
    /// Pairs that would keep the worker busy.
    pub(crate) wanted: u32,
    /// Pairs of a job of the run's own size.
    pub(crate) least: u32,
}

/// Takes pairs of a match for a job, one after the other without a gap, as many as are wanted or
/// are the contributor's [share](scheduling::share_of_pairs): first those whose lease is over or was
/// given back, then new ones, never more than the rule can need. Who has left a job of the match unplayed has to
/// [wait](has_to_wait).
pub(crate) async fn take(
    conn: &mut AnyConnection,
    m: &Match,
    taker: &Taker,
    now: i64,
) -> Result<Vec<u32>> {
    shorten(conn, m.id, now).await?;
    let (wanted, company) = share(conn, m, taker, now).await?;
    let mut free = abandoned(conn, m.id, taker.user, (wanted, company), now).await?;
    free.extend((m.next_pair..m.pair_limit).take(wanted as usize));
    let pairs = in_a_row(&free, wanted);
    for part in parts(pairs) {
        hand_to(conn, m.id, taker.job, part).await?;
    }
    let next = pairs.last().map_or(0, |last| last + 1).max(m.next_pair);
    sqlx::query("UPDATE matches SET next_pair = $2 WHERE id = $1")
        .bind(m.id)
        .bind(i64::from(next))
        .execute(conn)
        .await?;
    Ok(pairs.to_vec())
}

/// Notes that a job plays these pairs now.
async fn hand_to(conn: &mut AnyConnection, match_id: i64, job: JobId, pairs: &[u32]) -> Result<()> {
    let mut query = Statement::new("INSERT INTO match_pairs (match_id, pair, job_id)");
    query.rows(pairs, |row, pair| {
        row.bind(match_id)?
            .bind(i64::from(*pair))?
            .bind(job_bytes(job))?;
        Ok(())
    })?;
    query.push(
        " ON CONFLICT (match_id, pair)
         DO UPDATE SET job_id = excluded.job_id, white_score = NULL, black_score = NULL",
    );
    query.execute(conn).await
}

/// The first of these pairs and those that follow it without a gap, at most `wanted`.
fn in_a_row(pairs: &[u32], wanted: u32) -> &[u32] {
    let first = pairs.first().copied().unwrap_or_default();
    let row = (first..)
        .zip(pairs)
        .take_while(|(next, pair)| next == *pair);
    &pairs[..row.take(wanted as usize).count()]
}

/// Others are at work in a run who have a lease, or sent a chunk so lately: between two jobs they
/// have none.
pub(crate) const LATELY_MS: i64 = 600_000;

/// How many pairs the contributor may take now, and whether others are at work.
async fn share(
    conn: &mut AnyConnection,
    m: &Match,
    taker: &Taker,
    now: i64,
) -> Result<(u32, Company)> {
    let (in_hand, others): (i64, i64) = sqlx::query_as(concat!(
        "SELECT (SELECT count(*) FROM match_pairs p JOIN jobs j ON j.id = p.job_id
             WHERE p.match_id = $1 AND ",
        is_unfinished!("p"),
        "
               AND j.user_id = $2 AND j.state <> 'returned' AND NOT ",
        is_over!("j", "$3"),
        "),
           (SELECT count(*) FROM (SELECT 1 FROM jobs
             WHERE run_id = $4 AND state = 'open' AND expires_at > $3 AND user_id <> $2
             LIMIT 1) AS working)
           + (SELECT count(*) FROM (SELECT 1 FROM chunks
             WHERE run_id = $4 AND accepted_at > $5 AND user_id <> $2 LIMIT 1) AS sent)"
    ))
    .bind(m.id)
    .bind(taker.user.0)
    .bind(now)
    .bind(m.run_id)
    .bind(now - LATELY_MS)
    .fetch_one(&mut *conn)
    .await?;
    let company = if others > 0 {
        Company::Others
    } else {
        Company::Alone
    };
    if company == Company::Others && has_to_wait(conn, m.id, taker.user, now).await? {
        return Ok((0, company));
    }
    let played = u32::try_from(m.tally.pairs.pairs()).unwrap_or(u32::MAX);
    let wanted = scheduling::share_of_pairs(
        taker.wanted,
        to_u32("number of pairs", in_hand)?,
        m.pair_limit.saturating_sub(played),
        taker.least,
        company,
    );
    Ok((wanted, company))
}

/// How many unfinished pairs of a match are leased to workers that were heard lately: one that plays sends three heartbeats
/// a lease. The lease alone does not tell: what a backup holds is renewed when the coordinator starts again.
pub(crate) async fn playing(conn: &mut AnyConnection, id: MatchId, now: Timestamp) -> Result<u64> {
    let playing: i64 = sqlx::query_scalar(concat!(
        "SELECT count(*) FROM match_pairs p JOIN jobs j ON j.id = p.job_id
         WHERE p.match_id = $1 AND ",
        is_unfinished!("p"),
        "
           AND j.state = 'open' AND j.expires_at - j.lease_ms / 3 >= $2
           AND EXISTS (SELECT 1 FROM workers w WHERE w.user_id = j.user_id AND w.name = j.worker
             AND w.last_seen + 2 * j.lease_ms / 3 >= $2)",
    ))
    .bind(id.0)
    .bind(now.as_millisecond())
    .fetch_one(conn)
    .await?;
    Ok(to_count(playing))
}

/// For how much longer a pair whose lease is over waits for somebody else than who had it, and who had it for any pair of
/// the match: as long as others count as at work.
const OTHERS_FIRST_MS: i64 = LATELY_MS;
/// How much longer it is for each further job of the match that was left unplayed: accounts that pass pairs to each other
/// keep them from the others for a while only.
const EACH_FURTHER_MS: i64 = 3_600_000;

/// Whether a contributor is given no pairs of a match, because it has left a job of it unplayed: given back, or over.
async fn has_to_wait(
    conn: &mut AnyConnection,
    match_id: i64,
    user: UserId,
    now: i64,
) -> Result<bool> {
    let (left, over_at): (i64, Option<i64>) = sqlx::query_as(concat!(
        "SELECT count(*), CAST(max(expires_at + lease_ms) AS BIGINT) FROM jobs
         WHERE user_id = $1 AND state <> 'done' AND match_id = $2 AND games_counted < games
           AND (state = 'returned' OR ",
        is_over!("$3"),
        ")"
    ))
    .bind(user.0)
    .bind(match_id)
    .bind(now)
    .fetch_one(conn)
    .await?;
    let wait = OTHERS_FIRST_MS + (left - 1).saturating_mul(EACH_FURTHER_MS);
    Ok(over_at.is_some_and(|over_at| now <= over_at.saturating_add(wait)))
}

/// No user has this number.
const NOBODY: i64 = 0;

/// Pairs that were handed out, are not finished, and that nobody plays any more. Where others are
/// at work, those that the contributor had last are for them first.
async fn abandoned(
    conn: &mut AnyConnection,
    match_id: i64,
    taker: UserId,
    (wanted, company): (u32, Company),
    now: i64,
) -> Result<Vec<u32>> {
    let not_of = match company {
        Company::Others => taker.0,
        Company::Alone => NOBODY,
    };
    let pairs: Vec<i64> = sqlx::query_scalar(concat!(
        "SELECT p.pair FROM match_pairs p JOIN jobs j ON j.id = p.job_id
         WHERE p.match_id = $1 AND ",
        is_unfinished!("p"),
        "
           AND (j.state = 'returned' OR ",
        is_over!("j", "$2"),
        ")
           AND (j.user_id <> $4 OR $2 > j.expires_at + j.lease_ms + $5)
         ORDER BY p.pair LIMIT $3"
    ))
    .bind(match_id)
    .bind(now)
    .bind(i64::from(wanted))
    .bind(not_of)
    .bind(OTHERS_FIRST_MS)
    .fetch_all(conn)
    .await?;
    pairs.into_iter().map(|pair| to_u32("pair", pair)).collect()
}

/// Leases that end later than any lease can were given by a clock that was fast. They last from
/// now on as others do, so that pairs which nobody plays come back.
async fn shorten(conn: &mut AnyConnection, match_id: i64, now: i64) -> Result<()> {
    sqlx::query(concat!(
        "UPDATE jobs SET expires_at = $2 + lease_ms
         WHERE expires_at > $2 + lease_ms AND id IN (SELECT job_id FROM match_pairs
           WHERE match_id = $1 AND ",
        is_unfinished!("match_pairs"),
        ")",
    ))
    .bind(match_id)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Pairs whose last game came with one chunk.
pub(crate) struct Completed {
    /// The first of them.
    pub(crate) first: u32,
    /// What they add to the match's tally.
    pub(crate) tally: Tally,
}

/// Enters the scores of a chunk's games and returns the pairs that they complete, if there are any.
pub(crate) async fn enter(
    conn: &mut AnyConnection,
    match_id: i64,
    job: JobId,
    games: &[GameFact],
) -> Result<Option<Completed>> {
    let mut tally = Tally::default();
    let mut first: Option<u32> = None;
    for game in games {
        let GameFactDetail::Match { pair, candidate } = game.detail else {
            continue;
        };
        let score = GameScore::of(game.result, candidate.into());
        let (white, black) = enter_score(conn, match_id, job, pair, candidate, score).await?;
        if let (Some(white), Some(black)) = (white, black) {
            tally.add_pair(score_of(white)?, score_of(black)?);
            first = Some(first.map_or(pair, |first| first.min(pair)));
        }
    }
    Ok(first.map(|first| Completed { first, tally }))
}

/// The scores of all pairs of a match that were handed out, from pair 0 on.
pub(crate) async fn scores(conn: &mut AnyConnection, match_id: i64) -> Result<Vec<PairScore>> {
    let rows: Vec<(Option<i64>, Option<i64>)> = sqlx::query_as(
        "SELECT white_score, black_score FROM match_pairs WHERE match_id = $1 ORDER BY pair",
    )
    .bind(match_id)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| match row {
            (Some(white), Some(black)) => Ok(Some([score_of(white)?, score_of(black)?])),
            _ => Ok(None),
        })
        .collect()
}

/// What the pairs of a match say that count already: those before the first that was handed out and is not in.
pub(crate) async fn in_order(conn: &mut AnyConnection, id: MatchId) -> Result<Tally> {
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as(concat!(
        "SELECT white_score, black_score, count(*) FROM match_pairs
         WHERE match_id = $1 AND pair < coalesce((SELECT min(pair) FROM match_pairs
             WHERE match_id = $1 AND ",
        is_unfinished!("match_pairs"),
        "), $2)
         GROUP BY white_score, black_score",
    ))
    .bind(id.0)
    .bind(i64::MAX)
    .fetch_all(conn)
    .await?;
    let mut tally = Tally::default();
    for (white, black, pairs) in rows {
        let (white, black) = (score_of(white)?, score_of(black)?);
        for _ in 0..pairs {
            tally.add_pair(white, black);
        }
    }
    Ok(tally)
}

async fn enter_score(
    conn: &mut AnyConnection,
    match_id: i64,
    job: JobId,
    pair: u32,
    candidate: Side,
    score: GameScore,
) -> Result<(Option<i64>, Option<i64>)> {
    let half_points = score.half_points() as i64;
    let (white, black) = match candidate {
        Side::White => (Some(half_points), None),
        Side::Black => (None, Some(half_points)),
    };
    sqlx::query_as(
        "UPDATE match_pairs SET white_score = coalesce($4, white_score),
           black_score = coalesce($5, black_score)
         WHERE match_id = $1 AND pair = $2 AND job_id = $3
         RETURNING white_score, black_score",
    )
    .bind(match_id)
    .bind(i64::from(pair))
    .bind(job_bytes(job))
    .bind(white)
    .bind(black)
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| {
        let detail = format!("the lease is over and pair {pair} was given out again");
        DbError::LeaseEnded(detail)
    })
}

fn score_of(half_points: i64) -> Result<GameScore> {
    match half_points {
        0 => Ok(GameScore::Loss),
        1 => Ok(GameScore::Draw),
        2 => Ok(GameScore::Win),
        other => Err(unreadable("score", &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_pairs_without_a_gap_from_the_first_that_is_free() {
        assert_eq!(in_a_row(&[2, 3, 5, 6], 8), [2, 3]);
        assert_eq!(in_a_row(&[2, 3, 4, 5], 3), [2, 3, 4]);
        assert_eq!(in_a_row(&[7], 8), [7]);
        assert!(in_a_row(&[7, 8], 0).is_empty());
        assert!(in_a_row(&[], 8).is_empty());
    }
}
