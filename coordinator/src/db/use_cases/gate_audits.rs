//! Gates wait for audits of the chunks that decide them.
//!
//! What becomes best is not taken back when a chunk fails its audit later. So a gate that its pairs decide stays open
//! while one of their chunks is about to be audited, for a quarter of an hour at most, and only where there is somebody
//! who can audit it.

use jiff::{SignedDuration, Timestamp};
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::matches::Match;
use crate::db::models::{audit_draws, newcomers};

/// How long after it came in a chunk keeps a gate open, or a newcomer's is kept from training.
pub(crate) const AWAITED_FOR: SignedDuration = SignedDuration::from_mins(15);

/// Whether an open gate waits for audits of chunks with games of its first `pairs`, which decide it.
pub(crate) async fn are_awaited(
    conn: &mut AnyConnection,
    m: &Match,
    pairs: u32,
    now: Timestamp,
) -> Result<bool> {
    let authors = authors_on_trial(conn, m, pairs, now).await?;
    if authors.is_empty() {
        return Ok(false);
    }
    if newcomers::are_enough_proven(conn, m.run_id, now.as_millisecond()).await? {
        return Ok(true);
    }
    for author in authors {
        if audit_draws::is_auditor_at_work(conn, author, now).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whose chunks with games of these pairs are recent, count, and wait for an audit.
async fn authors_on_trial(
    conn: &mut AnyConnection,
    m: &Match,
    pairs: u32,
    now: Timestamp,
) -> Result<Vec<i64>> {
    let authors = sqlx::query_scalar(
        "SELECT DISTINCT c.user_id FROM audits a
         JOIN chunks c ON c.sequence = a.chunk AND c.kind = 'match' AND c.held = 0
         WHERE a.run_id = $1 AND a.state = 'open' AND c.accepted_at > $2
           AND EXISTS (SELECT 1 FROM games g
             JOIN match_pairs p ON p.match_id = g.match_id AND p.pair = g.pair AND p.job_id = g.job_id
             WHERE g.job_id = c.job_id AND g.chunk = c.sequence AND g.match_id = $3 AND g.pair < $4)",
    )
    .bind(m.run_id)
    .bind((now - AWAITED_FOR).as_millisecond())
    .bind(m.id)
    .bind(i64::from(pairs))
    .fetch_all(conn)
    .await?;
    Ok(authors)
}
