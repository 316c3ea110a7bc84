//! Audits: opened on accepted chunks, planned, handed to others.

use jiff::Timestamp;
use rookery_common::ids::{JobId, MatchId, NetworkNumber, UserId};
use rookery_common::protocol::jobs::{NetworkRef, Work};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use super::rows::{from_json, hash, job_bytes, to_json, to_u32};
use super::runs::Run;
use super::statement::{Statement, parts};
use super::{backlog, matches, networks};
use crate::store::error::{Result, StoreError};
use crate::store::model::LeaseRequest;
use crate::store::trust::{AuditPlan, AuditedChunk};
use crate::trust::rate::TrackRecord;
use crate::trust::verdict::Auditor;

pub(super) async fn track_record(conn: &mut AnyConnection, user: i64) -> Result<TrackRecord> {
    let row: Option<(i64, i64, i64)> =
        sqlx::query_as("SELECT passed, vouched, failed FROM track_records WHERE user_id = $1")
            .bind(user)
            .fetch_optional(conn)
            .await?;
    let (passed, vouched, failed) = row.unwrap_or_default();
    record_of(passed, vouched, failed)
}

/// A track record from its columns.
pub(super) fn record_of(passed: i64, vouched: i64, failed: i64) -> Result<TrackRecord> {
    Ok(TrackRecord {
        passed: to_u32("number of audits", passed)?,
        vouched: to_u32("number of audits", vouched)?,
        failed: to_u32("number of audits", failed)?,
    })
}

/// An audit to be opened; a chunk has one at most.
pub(super) struct Opening {
    pub(super) run: i64,
    pub(super) chunk: i64,
    /// Whose chunk it is.
    pub(super) user: i64,
    pub(super) cause: Cause,
    /// How likely it stays open where there are too many.
    pub(super) luck: f64,
    pub(super) at: Timestamp,
}

/// Why a chunk is audited.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cause {
    /// It was drawn at random.
    Sampled,
    /// Another audit of the same contributor failed.
    Scrutiny,
    /// The contributor's games drift away from everybody else's.
    Drift,
    /// It came in while the contributor was in quarantine, and was cleared.
    Cleared,
}

impl Cause {
    /// The name in the ledger.
    const fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Scrutiny => "scrutiny",
            Self::Drift => "drift",
            Self::Cleared => "cleared",
        }
    }
}

/// Opens audits of chunks that have none, or whose audit was given up.
pub(super) async fn open(conn: &mut AnyConnection, openings: &[Opening]) -> Result<()> {
    for part in parts(openings) {
        let mut query = Statement::new(
            "INSERT INTO audits (run_id, chunk, user_id, cause, luck, opened_at, state)",
        );
        query.rows(part, |row, opening| {
            row.bind(opening.run)?
                .bind(opening.chunk)?
                .bind(opening.user)?
                .bind(opening.cause.name())?
                .bind(opening.luck)?
                .bind(opening.at.as_millisecond())?
                .bind("open")?;
            Ok(())
        })?;
        query.push(
            " ON CONFLICT (chunk) DO UPDATE SET state = 'open', cause = excluded.cause,
               luck = excluded.luck, opened_at = excluded.opened_at, job_id = NULL
             WHERE audits.state = 'void'",
        );
        query.execute(conn).await?;
    }
    Ok(())
}

/// Lets the open audits of a run that goes on wait anew: while it was paused nobody was given any.
pub(super) async fn resume(conn: &mut AnyConnection, run: i64, now: Timestamp) -> Result<()> {
    sqlx::query("UPDATE audits SET opened_at = $2 WHERE run_id = $1 AND state = 'open'")
        .bind(run)
        .bind(now.as_millisecond())
        .execute(conn)
        .await?;
    Ok(())
}

/// Leaves an outage, in which no worker was heard, out of the time that audits have waited.
pub(super) async fn outlast(conn: &mut AnyConnection, heard: i64, now: i64) -> Result<()> {
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
pub(super) async fn give_up(conn: &mut AnyConnection, user: UserId) -> Result<()> {
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
pub(super) async fn reopen(
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
    .bind(quarantined_at - backlog::VOID_AFTER_MS)
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}

/// Keeps an audit's plan; without one the audit is given up.
pub(super) async fn plan(
    conn: &mut AnyConnection,
    audit: i64,
    plan: Option<AuditPlan>,
) -> Result<()> {
    let state = if plan.is_some() { "open" } else { "void" };
    let plan = plan.as_ref().map(to_json).transpose()?;
    sqlx::query(
        "UPDATE audits SET plan = $2, state = $3
         WHERE id = $1 AND state = 'open' AND plan IS NULL",
    )
    .bind(audit)
    .bind(plan)
    .bind(state)
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether a run has audits that somebody may be given, or is at work on.
pub(super) async fn any_planned(conn: &mut AnyConnection, run: i64) -> Result<bool> {
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
struct WaitingRow {
    id: i64,
    plan: String,
    network: i64,
    match_id: Option<i64>,
}

/// The audit for which who asks was drawn; for an auditor whom the operator trusts the oldest that nobody is
/// at work on, or only a volunteer.
pub(super) async fn work(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    now: i64,
) -> Result<Option<(Work, Vec<NetworkRef>)>> {
    let row = match request.auditor {
        Auditor::Trusted => match waiting(conn, run, request, Held::ByNobody, now).await? {
            None => waiting(conn, run, request, Held::ByVolunteers, now).await?,
            row => row,
        },
        Auditor::Volunteer | Auditor::Newcomer => drawn(conn, run, request, now).await?,
    };
    let Some(row) = row else {
        return Ok(None);
    };
    let plan: AuditPlan = from_json("audit", &row.plan)?;
    // The run may have stopped to ask for the solver since these games were played.
    if plan.rules.search().solver && !request.request.solver {
        return Ok(None);
    }
    let numbers = match row.match_id {
        Some(id) => {
            let m = matches::load(conn, MatchId(id)).await?;
            vec![m.candidate, m.opponent]
        }
        None => vec![NetworkNumber(to_u32("network", row.network)?)],
    };
    let mut needed = Vec::new();
    for number in numbers {
        needed.push(networks::reference(conn, run.id, number).await?);
    }
    sqlx::query(
        "UPDATE audits SET job_id = $2, drawn_for = NULL, drawn_until = NULL WHERE id = $1",
    )
    .bind(row.id)
    .bind(job_bytes(request.chances.job))
    .execute(conn)
    .await?;
    let work = Work::Audit {
        rules: plan.rules,
        tasks: plan.tasks,
    };
    Ok(Some((work, needed)))
}

/// Who may be at work on an audit that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    ByNobody,
    /// Or somebody without a token of the scope `audit`.
    ByVolunteers,
}

/// The oldest audit that an auditor of the operator's may be given, and whose worker plays all that it needs.
async fn waiting(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    held: Held,
    now: i64,
) -> Result<Option<WaitingRow>> {
    // The condition on time is `decide::is_over`. Who had it before a long pause may be forgotten by now.
    let row = sqlx::query_as(
        "SELECT a.id, a.plan, c.network, j.match_id FROM audits a
         JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
         LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.run_id = $1 AND a.state = 'open' AND a.plan IS NOT NULL AND a.user_id <> $2
           AND (h.id IS NULL OR h.state = 'returned' OR $3 > h.expires_at + h.lease_ms
             OR ($4 = 1 AND NOT EXISTS (SELECT 1 FROM tokens t WHERE t.user_id = h.user_id
               AND t.revoked_at IS NULL AND t.scopes LIKE '%audit%')))
           AND NOT EXISTS (SELECT 1 FROM audit_opinions o
             WHERE o.audit_id = a.id AND o.user_id = $2)
           AND ($5 = 1 OR NOT EXISTS (SELECT 1 FROM matches m
             JOIN networks n ON n.run_id = m.run_id AND n.number IN (m.candidate, m.opponent)
             WHERE m.id = j.match_id AND n.program IS NOT NULL))
         ORDER BY a.id LIMIT 1",
    )
    .bind(run.id)
    .bind(request.user.0)
    .bind(now)
    .bind(i64::from(held == Held::ByVolunteers))
    .bind(i64::from(request.request.programs))
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// The oldest audit for which a contributor was [drawn](super::draws), and whose worker plays all that it needs.
async fn drawn(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    now: i64,
) -> Result<Option<WaitingRow>> {
    let row = sqlx::query_as(
        "SELECT a.id, a.plan, c.network, j.match_id FROM audits a
         JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
         LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.drawn_for = $2 AND a.drawn_until >= $3 AND a.state = 'open' AND a.run_id = $1
           AND a.plan IS NOT NULL
           AND (h.id IS NULL OR h.state = 'returned' OR $3 > h.expires_at + h.lease_ms)
           AND ($4 = 1 OR NOT EXISTS (SELECT 1 FROM matches m
             JOIN networks n ON n.run_id = m.run_id AND n.number IN (m.candidate, m.opponent)
             WHERE m.id = j.match_id AND n.program IS NOT NULL))
         ORDER BY a.id LIMIT 1",
    )
    .bind(run.id)
    .bind(request.user.0)
    .bind(now)
    .bind(i64::from(request.request.programs))
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// Whether a job's audit is still its own.
pub(super) async fn is_held(conn: &mut AnyConnection, job: JobId) -> Result<bool> {
    let held: i64 =
        sqlx::query_scalar("SELECT count(*) FROM audits WHERE job_id = $1 AND state = 'open'")
            .bind(job_bytes(job))
            .fetch_one(conn)
            .await?;
    Ok(held > 0)
}

/// Says that an audit is no longer a job's.
pub(super) fn over(job: JobId) -> StoreError {
    let detail = format!("the lease of job {job} is over and its audit was given to another");
    StoreError::LeaseEnded(detail)
}

/// An audit as operations need it.
#[derive(FromRow)]
pub(super) struct AuditRow {
    pub(super) id: i64,
    pub(super) run_id: i64,
    pub(super) chunk: i64,
    pub(super) user_id: i64,
    pub(super) opened_at: i64,
    plan: Option<String>,
}

/// The open audit that a job makes.
pub(super) async fn of_job(conn: &mut AnyConnection, job: JobId) -> Result<AuditRow> {
    sqlx::query_as(
        "SELECT id, run_id, chunk, user_id, opened_at, plan FROM audits
         WHERE job_id = $1 AND state = 'open'",
    )
    .bind(job_bytes(job))
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| over(job))
}

/// What an audit job asks for, and what it is about.
pub(super) async fn audited(conn: &mut AnyConnection, job: JobId) -> Result<(Work, AuditedChunk)> {
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
