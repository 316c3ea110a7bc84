//! Training waits for audits of newcomers' chunks.
//!
//! Names cost nothing, so contributors on probation could fill a window with made-up games before the first audit. While
//! an auditor of the operator's is at work, trainers leave each of their chunks out until its audit has passed, for a
//! quarter of an hour at most. They see that in the list of holds. All else counts the chunk at once.
//!
//! The list of chunks does not end before such a chunk: a newcomer would delay everybody's. Nor is a chunk released because
//! its audit was given up: a flood has more audits than are kept open.

use jiff::Timestamp;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::accepted_chunk::AcceptedChunk;
use crate::db::models::audit_backlog::AT_ONCE;
use crate::db::models::audit_draws;
use crate::db::models::chunks::ChunkSelection;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::statement::Statement;
use crate::db::types::ChunkStatus;
use crate::db::use_cases::gate_audits::AWAITED_FOR;
use crate::trust::rate::PROBATION;

impl Ledger {
    /// Lets trainers have the newcomers' chunks whose audit has passed, or was awaited for long enough.
    pub async fn release_audited(&self, now: Timestamp) -> Result<()> {
        let chunks = read!(self, "training_audits", |conn| awaited_enough(conn, now))?;
        for part in chunks.chunks(AT_ONCE) {
            let part = part.to_vec();
            transact!(self, "training_audits", |conn| {
                set_awaited(conn, &part, ChunkStatus::Counted, now).await
            })?;
        }
        Ok(())
    }
}

/// Lets training wait for the audits of newcomers' chunks that came in.
pub(crate) async fn await_newcomers(
    conn: &mut AnyConnection,
    entered: &[&AcceptedChunk<'_>],
) -> Result<()> {
    let mut newcomers = Vec::new();
    for e in entered {
        let counts = e.kind.is_training() && e.state == ChunkStatus::Counted;
        if counts && e.job.track_record()?.passed < PROBATION {
            newcomers.push(e);
        }
    }
    let Some(now) = newcomers.first().map(|e| e.now) else {
        return Ok(());
    };
    let auditors = audit_draws::auditors_at_work(conn, now).await?;
    newcomers.retain(|e| auditors.iter().any(|auditor| *auditor != e.job.user_id));
    let chunks: Vec<i64> = newcomers.iter().map(|e| e.sequence).collect();
    set_awaited(conn, &chunks, ChunkStatus::Excluded, now).await
}

/// Ends the wait for audits of chunks that are about to be held: their hold takes its place.
pub(crate) async fn await_no_more(conn: &mut AnyConnection, which: ChunkSelection) -> Result<()> {
    let mut end = Statement::new(
        "UPDATE audits SET awaited = 0 WHERE awaited <> 0
           AND chunk IN (SELECT c.sequence FROM chunks c WHERE ",
    );
    which.write(&mut end, ChunkStatus::Excluded)?;
    end.push(")");
    end.execute(conn).await
}

/// Chunks whose audit has passed while training waited for it, or that have waited for long enough.
async fn awaited_enough(conn: &mut AnyConnection, now: Timestamp) -> Result<Vec<i64>> {
    let chunks = sqlx::query_scalar(
        "SELECT a.chunk FROM audits a JOIN chunks c ON c.sequence = a.chunk
         WHERE a.awaited <> 0 AND (a.state = 'passed' OR c.accepted_at <= $1) ORDER BY a.chunk",
    )
    .bind((now - AWAITED_FOR).as_millisecond())
    .fetch_all(conn)
    .await?;
    Ok(chunks)
}

/// Tells trainers to leave chunks out or to take them; those that are so already stay.
async fn set_awaited(
    conn: &mut AnyConnection,
    chunks: &[i64],
    state: ChunkStatus,
    now: Timestamp,
) -> Result<()> {
    if chunks.is_empty() {
        return Ok(());
    }
    let reason = match state {
        ChunkStatus::Excluded => "training waits for the audit of a newcomer's chunk",
        ChunkStatus::Counted => "training no longer waits for its audit",
    };
    let mut entry = Statement::new(
        "INSERT INTO holds (run_id, chunk, held, reason, at) SELECT run_id, chunk, ",
    );
    entry.bind(state.column())?.push(", ");
    entry.bind(reason)?.push(", ");
    entry
        .bind(now.as_millisecond())?
        .push(" FROM audits WHERE awaited <> ");
    entry.bind(state.column())?.push(" AND chunk IN (");
    entry.bind_all(chunks)?.push(") ORDER BY chunk");
    entry.execute(&mut *conn).await?;
    let mut mark = Statement::new("UPDATE audits SET awaited = ");
    mark.bind(state.column())?.push(" WHERE chunk IN (");
    mark.bind_all(chunks)?.push(")");
    mark.execute(conn).await
}
