//! Audits: opened on accepted chunks, planned, handed to others.

use jiff::Timestamp;
use rookery_common::ids::{JobId, UserId};
use rookery_common::names;
use rookery_common::protocol::jobs::Work;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::states::AuditState;
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::rows::{from_json, hash, job_bytes, to_json, to_u32};
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::{AuditPlan, AuditedChunk};
use crate::trust::rate::TrackRecord;

/// After so long an audit that nobody could make is given up.
pub(crate) const VOID_AFTER_MS: i64 = 24 * 3_600_000;

impl Ledger {
    /// Keeps an audit's plan; without one the audit is given up.
    pub async fn plan_audit(&self, audit: i64, plan: Option<AuditPlan>) -> Result<()> {
        transact!(self, "audits", |conn| {
            let state = match plan {
                Some(_) => AuditState::Open,
                None => AuditState::Void,
            };
            let plan = plan.as_ref().map(to_json).transpose()?;
            sqlx::query(
                "UPDATE audits SET plan = $2, state = $3
                     WHERE id = $1 AND state = 'open' AND plan IS NULL",
            )
            .bind(audit)
            .bind(plan)
            .bind(state.name())
            .execute(conn)
            .await?;
            Ok(())
        })
    }
}

pub(crate) async fn track_record(conn: &mut AnyConnection, user: i64) -> Result<TrackRecord> {
    let row: Option<(i64, i64, i64)> =
        sqlx::query_as("SELECT passed, vouched, failed FROM track_records WHERE user_id = $1")
            .bind(user)
            .fetch_optional(conn)
            .await?;
    let (passed, vouched, failed) = row.unwrap_or_default();
    record_of(passed, vouched, failed)
}

pub(crate) fn record_of(passed: i64, vouched: i64, failed: i64) -> Result<TrackRecord> {
    Ok(TrackRecord {
        passed: to_u32("number of audits", passed)?,
        vouched: to_u32("number of audits", vouched)?,
        failed: to_u32("number of audits", failed)?,
    })
}

/// An audit to be opened; a chunk has one at most.
pub(crate) struct NewAudit {
    pub(crate) run: i64,
    pub(crate) chunk: i64,
    /// Whose chunk it is.
    pub(crate) user: i64,
    pub(crate) cause: Cause,
    /// How likely it stays open where there are too many.
    pub(crate) sampling_key: f64,
    pub(crate) at: Timestamp,
}

names! {
    /// Why a chunk is audited.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Cause {
        /// It was drawn at random.
        Sampled = "sampled",
        /// Another audit of the same contributor failed.
        Scrutiny = "scrutiny",
        /// The contributor's games drift away from everybody else's.
        Drift = "drift",
        /// It came in while the contributor was in quarantine, and was cleared.
        Cleared = "cleared",
    }
}

/// Opens audits of chunks that have none, or whose audit was given up.
pub(crate) async fn open(conn: &mut AnyConnection, drawn: &[NewAudit]) -> Result<()> {
    for part in parts(drawn) {
        let mut query = Statement::new(
            "INSERT INTO audits (run_id, chunk, user_id, cause, sampling_key, opened_at, state)",
        );
        query.rows(part, |row, opening| {
            row.bind(opening.run)?
                .bind(opening.chunk)?
                .bind(opening.user)?
                .bind(opening.cause.name())?
                .bind(opening.sampling_key)?
                .bind(opening.at.as_millisecond())?
                .bind(AuditState::Open.name())?;
            Ok(())
        })?;
        query.push(
            " ON CONFLICT (chunk) DO UPDATE SET state = 'open', cause = excluded.cause,
               sampling_key = excluded.sampling_key, opened_at = excluded.opened_at, job_id = NULL
             WHERE audits.state = 'void'",
        );
        query.execute(conn).await?;
    }
    Ok(())
}

/// Lets the open audits of a run that goes on wait anew: while it was paused nobody was given any.
pub(crate) async fn resume(conn: &mut AnyConnection, run: i64, now: Timestamp) -> Result<()> {
    sqlx::query("UPDATE audits SET opened_at = $2 WHERE run_id = $1 AND state = 'open'")
        .bind(run)
        .bind(now.as_millisecond())
        .execute(conn)
        .await?;
    Ok(())
}

/// Leaves an outage, in which no worker was heard, out of the time that audits have waited.
pub(crate) async fn extend_waits(conn: &mut AnyConnection, heard: i64, now: i64) -> Result<()> {
    sqlx::query(
        "UPDATE audits SET opened_at = CASE WHEN opened_at > $1 THEN $2
           ELSE opened_at + $3 END
         WHERE state = 'open'",
    )
    .bind(heard)
    .bind(now)
    .bind(now - heard)
    .execute(conn)
    .await?;
    Ok(())
}

/// Gives up the open audits of a contributor whose chunks are all held: auditors have better things
/// to do, however many chunks a liar has sent. [`reopen`] takes it back.
pub(crate) async fn give_up(conn: &mut AnyConnection, user: UserId) -> Result<()> {
    sqlx::query(
        "UPDATE audits SET state = 'void', plan = NULL WHERE user_id = $1 AND state = 'open'",
    )
    .bind(user.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// Begins those audits anew that a contributor's quarantine has ended: all that were not too old by
/// then. What was said of them already still counts.
pub(crate) async fn reopen(
    conn: &mut AnyConnection,
    user: UserId,
    quarantined_at: i64,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "UPDATE audits SET state = 'open', opened_at = $3, job_id = NULL
         WHERE user_id = $1 AND state = 'void' AND opened_at >= $2",
    )
    .bind(user.0)
    .bind(quarantined_at - VOID_AFTER_MS)
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a run has audits that somebody may be given, or is at work on.
pub(crate) async fn any_planned(conn: &mut AnyConnection, run: i64) -> Result<bool> {
    let planned: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM audits
           WHERE run_id = $1 AND state = 'open' AND plan IS NOT NULL LIMIT 1) AS planned",
    )
    .bind(run)
    .fetch_one(conn)
    .await?;
    Ok(planned > 0)
}

#[derive(FromRow)]
pub(crate) struct AuditRow {
    pub(crate) id: i64,
    pub(crate) run_id: i64,
    pub(crate) chunk: i64,
    pub(crate) user_id: i64,
    pub(crate) opened_at: i64,
    plan: Option<String>,
}

/// The open audit that a job makes.
pub(crate) async fn of_job(conn: &mut AnyConnection, job: JobId) -> Result<AuditRow> {
    sqlx::query_as(
        "SELECT id, run_id, chunk, user_id, opened_at, plan FROM audits
         WHERE job_id = $1 AND state = 'open'",
    )
    .bind(job_bytes(job))
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| over(job))
}

/// The audit with this number, if it is open.
pub(crate) async fn open_with(conn: &mut AnyConnection, id: i64) -> Result<Option<AuditRow>> {
    let row = sqlx::query_as(
        "SELECT id, run_id, chunk, user_id, opened_at, plan FROM audits
         WHERE id = $1 AND state = 'open'",
    )
    .bind(id)
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// What an audit job asks for, and what it is about.
pub(crate) async fn audited(conn: &mut AnyConnection, job: JobId) -> Result<(Work, AuditedChunk)> {
    let audit = of_job(conn, job).await?;
    let plan: AuditPlan = from_json("audit", audit.plan.as_deref().unwrap_or_default())?;
    let bytes: Vec<u8> = sqlx::query_scalar("SELECT hash FROM chunks WHERE sequence = $1")
        .bind(audit.chunk)
        .fetch_one(conn)
        .await?;
    let work = Work::Audit {
        rules: plan.rules,
        tasks: plan.tasks,
    };
    let chunk = AuditedChunk {
        hash: hash(&bytes)?,
        spans: plan.spans,
    };
    Ok((work, chunk))
}

/// Says that an audit is no longer a job's.
pub(crate) fn over(job: JobId) -> DbError {
    let detail = format!("the lease of job {job} is over and its audit was given to another");
    DbError::LeaseEnded(detail)
}
