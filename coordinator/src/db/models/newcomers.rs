//! Contributors on probation. Names cost nothing, and what becomes best is often decided before
//! anybody has searched a newcomer's games again: where others are at work, that is left to them.

use rookery_common::protocol::matches::MatchPurpose;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::matches::Match;
use crate::db::models::pairs::LATELY_MS;
use crate::db::models::runs::Run;
use crate::db::types::LeaseRequest;
use crate::trust::rate::PROBATION;
use crate::trust::verdict::{Auditor, ENOUGH_VOLUNTEERS};

/// Whether somebody may be given pairs of a match. Those of one that may change which network is
/// best (a gate, or any match of a run that rolls back by ratings) are for who is past probation or
/// has the operator's trust, and for everybody as long as too few others have sent a chunk of the
/// run lately.
///
/// Held chunks do not count: who is in quarantine plays no match.
pub(crate) async fn may_play(
    conn: &mut AnyConnection,
    run: &Run,
    m: &Match,
    request: &LeaseRequest,
    now: i64,
) -> Result<bool> {
    let decides = m.purpose == MatchPurpose::Gate || run.params.rollback.is_some();
    if !decides || request.auditor == Auditor::Trusted {
        return Ok(true);
    }
    // An index leads to each contributor's last chunk, which says whether it is at work here.
    let others: i64 = sqlx::query_scalar(
        "SELECT CASE WHEN coalesce((SELECT passed FROM track_records WHERE user_id = $1), 0) >= $2
           THEN 0
           ELSE (SELECT count(*) FROM (SELECT 1 FROM track_records t WHERE t.passed >= $2
             AND (SELECT CASE WHEN c.run_id = $3 AND c.accepted_at > $4 AND c.held = 0
                   THEN 1 ELSE 0 END
                 FROM chunks c WHERE c.user_id = t.user_id ORDER BY c.sequence DESC LIMIT 1) = 1
             LIMIT $5) AS proven) END",
    )
    .bind(request.user.0)
    .bind(i64::from(PROBATION))
    .bind(run.id)
    .bind(now - LATELY_MS)
    .bind(ENOUGH_VOLUNTEERS)
    .fetch_one(conn)
    .await?;
    Ok(others < ENOUGH_VOLUNTEERS)
}
