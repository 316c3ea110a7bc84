//! Contributors on probation. Names cost nothing, and what becomes best is often decided before
//! anybody has searched a newcomer's games again: where others are at work, that is left to them.

use std::collections::HashSet;

use rookery_common::protocol::matches::MatchPurpose;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::audits;
use crate::db::models::matches::Match;
use crate::db::models::pairs::LATELY_MS;
use crate::db::models::runs::Run;
use crate::db::sql::statement::Statement;
use crate::db::types::LeaseRequest;
use crate::trust::rate::PROBATION;
use crate::trust::verdict::{Auditor, ENOUGH_VOLUNTEERS};

pub(crate) async fn past_probation(
    conn: &mut AnyConnection,
    users: &[i64],
) -> Result<HashSet<i64>> {
    if users.is_empty() {
        return Ok(HashSet::new());
    }
    let mut query = Statement::new("SELECT user_id FROM track_records WHERE passed >= ");
    query.bind(i64::from(PROBATION))?.push(" AND user_id IN (");
    query.bind_all(users)?.push(")");
    let users: Vec<(i64,)> = query.fetch_all(conn).await?;
    Ok(users.into_iter().map(|(user,)| user).collect())
}

/// Whether somebody may be given pairs of a match. Those of one that may change which network is
/// best (a gate, or any match of a run that rolls back by ratings) are for contributors who are
/// [proven](crate::trust::rate::TrackRecord::is_proven) or have the operator's trust, and for everybody as long as too
/// few others have sent a chunk of the run lately.
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
    let record = audits::track_record(conn, request.user.0).await?;
    Ok(record.is_proven() || !are_enough_proven(conn, run.id, now).await?)
}

/// Whether as many [proven](crate::trust::rate::TrackRecord::is_proven) contributors are at work in a run as decide
/// audits without newcomers.
///
/// Held chunks do not count: who is in quarantine plays no match.
pub(crate) async fn are_enough_proven(
    conn: &mut AnyConnection,
    run: i64,
    now: i64,
) -> Result<bool> {
    // An index leads to each contributor's last chunk, which says whether it is at work here.
    let proven: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM track_records t WHERE t.vouched >= $1 * (1 + t.failed)
           AND (SELECT CASE WHEN c.run_id = $2 AND c.accepted_at > $3 AND c.held = 0
                 THEN 1 ELSE 0 END
               FROM chunks c WHERE c.user_id = t.user_id ORDER BY c.sequence DESC LIMIT 1) = 1
           LIMIT $4) AS proven",
    )
    .bind(i64::from(PROBATION))
    .bind(run)
    .bind(now - LATELY_MS)
    .bind(ENOUGH_VOLUNTEERS)
    .fetch_one(conn)
    .await?;
    Ok(proven >= ENOUGH_VOLUNTEERS)
}
