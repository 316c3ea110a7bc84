//! What auditors say, and what follows: an audit is decided, a contributor trusted more or less.

use jiff::{SignedDuration, Timestamp};
use rookery_common::audit::{Disagreement, Finding, Tolerance};
use rookery_common::ids::UserId;
use rookery_common::protocol::jobs::Backend;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::audit_history::{Part, backend};
use crate::db::models::audits::{AuditRow, Cause, of_job, record_of};
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::conditions::{is_unassigned, quarantined};
use crate::db::models::extra_audits::open_recent;
use crate::db::models::leases::JobRow;
use crate::db::models::states::AuditState;
use crate::db::models::{audit_draws, audit_history, audits, chunks, tokens};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{job_bytes, parse, unreadable};
use crate::db::types::ChunkDraft;
use crate::db::types::{Actor, AuditOpinion, ChunkStatus, ExclusionEffects, ExclusionOrder};
use crate::db::use_cases::{exclusions, match_results, quarantine};
use crate::trust::pool::{Pooled, together};
use crate::trust::rate::{FAILURES, PASS_POSITIONS, Streak, streaks};
use crate::trust::verdict::{Auditor, Opinion, Verdict, overrules, verdict};

/// How long after its beginning an audit that fails by volunteers' word waits for one of the operator's auditors, if one
/// is at work.
const CONFIRMED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// Overdue audits that are looked at together.
const OVERDUE: i64 = 64;

impl Ledger {
    /// Decides an audit that has waited for an auditor of the operator's for long enough, if there is one; no more than
    /// one for each chunk that comes in.
    pub async fn decide_overdue_audit(&self, now: Timestamp) -> Result<ExclusionEffects> {
        let overdue = read!(self, "audit_results", |conn| overdue(conn, now))?;
        match overdue.first().copied() {
            Some(audit) => {
                transact!(self, "audit_results", |conn| decide_overdue(
                    conn, audit, now
                )
                .await)
            }
            None => Ok(ExclusionEffects::default()),
        }
    }
}

/// Enters what an auditor's chunk says, and decides the audit if its job is complete.
pub(crate) async fn answer(
    conn: &mut AnyConnection,
    job: &JobRow,
    chunk: &ChunkDraft,
    sequence: i64,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let audit = of_job(conn, chunk.job).await?;
    let opinion = chunk
        .opinion
        .ok_or_else(|| unreadable("audit", &"an audit's chunk was not compared"))?;
    check_backend(conn, chunk).await?;
    enter_part(conn, chunk, sequence, &opinion).await?;
    if job.games_counted + (chunk.games.len() as i64) < job.games {
        return Ok(ExclusionEffects::default());
    }
    if job.quarantined == 0 {
        give_opinion(conn, &audit, chunk, opinion.backends, now).await?;
    }
    sqlx::query("UPDATE audits SET job_id = NULL WHERE id = $1")
        .bind(audit.id)
        .execute(&mut *conn)
        .await?;
    decide(conn, &audit, sequence, now).await
}

/// Refuses a part of an audit that another backend computed than the first: by the backend an opinion is judged.
async fn check_backend(conn: &mut AnyConnection, chunk: &ChunkDraft) -> Result<()> {
    let first: Option<String> = sqlx::query_scalar(
        "SELECT c.backend FROM audit_parts p JOIN chunks c ON c.sequence = p.chunk
         WHERE p.job_id = $1 ORDER BY p.chunk LIMIT 1",
    )
    .bind(job_bytes(chunk.job))
    .fetch_optional(conn)
    .await?;
    match first {
        Some(first) if first != chunk.backend => Err(DbError::Conflict(format!(
            "the first part of this audit was computed by {first}, and this one by {}: an audit is of one backend",
            chunk.backend
        ))),
        _ => Ok(()),
    }
}

async fn enter_part(
    conn: &mut AnyConnection,
    chunk: &ChunkDraft,
    sequence: i64,
    opinion: &AuditOpinion,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit_parts (chunk, job_id, plies, policy, visits, value, best, choice)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(sequence)
    .bind(job_bytes(chunk.job))
    .bind(i64::from(opinion.found.plies))
    .bind(opinion.found.policy)
    .bind(opinion.found.visits)
    .bind(opinion.found.value)
    .bind(opinion.found.best)
    .bind(opinion.found.choice)
    .execute(conn)
    .await?;
    Ok(())
}

/// Pools the parts of an auditor's job.
async fn give_opinion(
    conn: &mut AnyConnection,
    audit: &AuditRow,
    chunk: &ChunkDraft,
    (a, b): (Backend, Backend),
    now: Timestamp,
) -> Result<()> {
    let parts: Vec<Part> = sqlx::query_as(
        "SELECT plies, policy, visits, value, best, choice FROM audit_parts WHERE job_id = $1
         ORDER BY chunk",
    )
    .bind(job_bytes(chunk.job))
    .fetch_all(&mut *conn)
    .await?;
    let mut found = Disagreement::default();
    for part in parts {
        found = found.and(part.into_disagreement()?);
    }
    let trusted = chunk.auditor == Auditor::Trusted && tokens::may_audit(conn, chunk.user).await?;
    sqlx::query(
        "INSERT INTO audit_opinions (job_id, audit_id, user_id, trusted, plies, policy, visits,
           value, best, choice, finding, given_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(job_bytes(chunk.job))
    .bind(audit.id)
    .bind(chunk.user.0)
    .bind(i64::from(trusted))
    .bind(i64::from(found.plies))
    .bind(found.policy)
    .bind(found.visits)
    .bind(found.value)
    .bind(found.best)
    .bind(found.choice)
    .bind(Tolerance::between(a, b).judge(&found).name())
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct OpinionRow {
    user_id: i64,
    trusted: i64,
    finding: String,
    passed: i64,
    vouched: i64,
    theirs: String,
    ours: String,
}

impl OpinionRow {
    fn into_opinion(self) -> Result<(i64, Opinion)> {
        let auditor = if self.trusted != 0 {
            Auditor::Trusted
        } else {
            Auditor::Volunteer.with(record_of(self.passed, self.vouched, 0)?)
        };
        let opinion = Opinion {
            finding: parse("finding", &self.finding)?,
            auditor,
            tolerance: Tolerance::between(backend(&self.theirs)?, backend(&self.ours)?),
        };
        Ok((self.user_id, opinion))
    }
}

/// The opinions on an audit with their auditors, who weigh as much as their records do now, and
/// nothing in quarantine.
async fn opinions(conn: &mut AnyConnection, audit: i64) -> Result<Vec<(i64, Opinion)>> {
    let rows: Vec<OpinionRow> = sqlx::query_as(concat!(
        "SELECT o.user_id, o.trusted, o.finding, COALESCE(t.passed, 0) AS passed,
           COALESCE(t.vouched, 0) AS vouched, c.backend AS theirs, k.backend AS ours
         FROM audit_opinions o JOIN audits a ON a.id = o.audit_id
         JOIN chunks c ON c.sequence = a.chunk
         JOIN chunks k
           ON k.sequence = (SELECT min(p.chunk) FROM audit_parts p WHERE p.job_id = o.job_id)
         LEFT JOIN track_records t ON t.user_id = o.user_id
         WHERE o.audit_id = $1 AND ",
        quarantined!("o.user_id"),
        " = 0
         ORDER BY o.given_at, o.user_id",
    ))
    .bind(audit)
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(OpinionRow::into_opinion).collect()
}

async fn decide(
    conn: &mut AnyConnection,
    audit: &AuditRow,
    sequence: i64,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let opinions = opinions(conn, audit.id).await?;
    let plain: Vec<Opinion> = opinions.iter().map(|(_, opinion)| *opinion).collect();
    let verdict = verdict(&plain);
    let has_auditor_spoken = plain
        .iter()
        .any(|opinion| opinion.auditor == Auditor::Trusted);
    // What a single audit lets pass may be too much in many.
    let mut found = match verdict {
        Verdict::Open => return Ok(ExclusionEffects::default()),
        Verdict::Passed => together(&audit_history::since_last_failure(conn, audit).await?),
        Verdict::Failed if has_auditor_spoken => Pooled::Differs,
        Verdict::Failed => Pooled::DiffersByVolunteers,
    };
    if found == Pooled::DiffersByVolunteers {
        if has_auditor_spoken {
            found = Pooled::Agrees;
        } else if waits_for_auditor(conn, audit, now).await? {
            return Ok(ExclusionEffects::default());
        }
    }
    let found = match found {
        Pooled::Agrees => Finding::Agrees,
        Pooled::Differs | Pooled::DiffersByVolunteers => Finding::Differs,
    };
    let (state, in_many) = match found {
        Finding::Agrees => (AuditState::Passed, false),
        Finding::Differs => (AuditState::Failed, verdict == Verdict::Passed),
    };
    sqlx::query("UPDATE audits SET state = $2, decided_by = $3, plan = NULL WHERE id = $1")
        .bind(audit.id)
        .bind(state.name())
        .bind(sequence)
        .execute(&mut *conn)
        .await?;
    let vouched = opinions.iter().any(|(_, opinion)| {
        opinion.finding == Finding::Agrees && opinion.auditor != Auditor::Newcomer
    });
    for (auditor, opinion) in opinions {
        if !in_many && overrules(&plain, verdict, opinion) {
            count(conn, auditor, Count::Overruled).await?;
        }
    }
    if found == Finding::Agrees {
        let positions: i64 = sqlx::query_scalar("SELECT positions FROM chunks WHERE sequence = $1")
            .bind(audit.chunk)
            .fetch_one(&mut *conn)
            .await?;
        count(conn, audit.user_id, Count::Passed { positions, vouched }).await?;
        return match_results::settle_gate_of(conn, audit.chunk, now).await;
    }
    count(conn, audit.user_id, Count::Failed).await?;
    fail_audit(conn, audit, now).await
}

/// Whether volunteers have convicted whom an auditor of the operator's can look at: records can be earned for that.
async fn waits_for_auditor(
    conn: &mut AnyConnection,
    audit: &AuditRow,
    now: Timestamp,
) -> Result<bool> {
    let until = audit.opened_at + CONFIRMED_WITHIN.as_millis() as i64;
    Ok(now.as_millisecond() < until
        && audit_draws::is_auditor_at_work(conn, audit.user_id, now).await?)
}

/// Open audits that have waited for an auditor of the operator's for long enough, that nobody makes, and that what was
/// said of them decides.
async fn overdue(conn: &mut AnyConnection, now: Timestamp) -> Result<Vec<i64>> {
    let audits: Vec<i64> = sqlx::query_scalar(concat!(
        "SELECT a.id FROM audits a LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.state = 'open' AND a.opened_at <= $1
           AND ",
        is_unassigned!("h", "$2"),
        "
           AND EXISTS (SELECT 1 FROM audit_opinions o WHERE o.audit_id = a.id)
         ORDER BY a.id LIMIT $3"
    ))
    .bind((now - CONFIRMED_WITHIN).as_millisecond())
    .bind(now.as_millisecond())
    .bind(OVERDUE)
    .fetch_all(&mut *conn)
    .await?;
    let mut decided = Vec::new();
    for audit in audits {
        let opinions = opinions(conn, audit).await?;
        let opinions: Vec<Opinion> = opinions.into_iter().map(|(_, one)| one).collect();
        if verdict(&opinions) != Verdict::Open {
            decided.push(audit);
        }
    }
    Ok(decided)
}

/// Decides an overdue audit, if it is still open and no other was decided since the last chunk came: those that decide
/// tell in which order.
async fn decide_overdue(
    conn: &mut AnyConnection,
    audit: i64,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let last = chunks::last(conn).await?;
    let decided: i64 = sqlx::query_scalar("SELECT count(*) FROM audits WHERE decided_by = $1")
        .bind(last)
        .fetch_one(&mut *conn)
        .await?;
    match audits::open_with(conn, audit).await? {
        Some(audit) if decided == 0 => decide(conn, &audit, last, now).await,
        _ => Ok(ExclusionEffects::default()),
    }
}

/// What is added to a track record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// A chunk of so many positions is what it claims to be.
    Passed {
        positions: i64,
        /// Whether somebody says so who can be believed.
        vouched: bool,
    },
    Failed,
    /// The contributor's own opinion of another was wrong: trust is to be earned again.
    Overruled,
}

/// Small chunks make a pass together, once they have [`PASS_POSITIONS`].
async fn count(conn: &mut AnyConnection, user: i64, what: Count) -> Result<()> {
    let whole = i64::from(PASS_POSITIONS);
    let (kept, positions, failed, vouched) = match what {
        Count::Passed { positions, vouched } => (1, positions.min(whole), 0, vouched),
        Count::Failed => (0, 0, 1, false),
        Count::Overruled => (0, 0, 0, false),
    };
    sqlx::query(
        "INSERT INTO track_records (user_id, passed, part, failed, vouched)
         VALUES ($1, $3 / $5, $3 % $5, $4, $6 * ($3 / $5))
         ON CONFLICT (user_id) DO UPDATE SET
           passed = track_records.passed * $2 + (track_records.part * $2 + $3) / $5,
           part = (track_records.part * $2 + $3) % $5,
           vouched = track_records.vouched * $2 + $6 * ((track_records.part * $2 + $3) / $5),
           failed = track_records.failed + $4",
    )
    .bind(user)
    .bind(i64::from(kept))
    .bind(positions)
    .bind(i64::from(failed))
    .bind(whole)
    .bind(i64::from(vouched))
    .execute(conn)
    .await?;
    Ok(())
}

/// Holds the chunk that failed, and looks at the contributor's others or holds them all.
async fn fail_audit(
    conn: &mut AnyConnection,
    audit: &AuditRow,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    let reason = format!("audit {} found other searches than were claimed", audit.id);
    if is_no_accident(conn, audit).await? {
        let user = UserId(audit.user_id);
        let order = ExclusionOrder {
            state: ChunkStatus::Excluded,
            reason,
        };
        let by = Actor::new(quarantine::AUDITS, now);
        return quarantine::order(conn, user, order, &by).await;
    }
    open_recent(conn, audit.run_id, audit.user_id, Cause::Scrutiny, now).await?;
    exclusions::set(
        conn,
        ChunkSelection::One(audit.chunk),
        ChunkStatus::Excluded,
        &reason,
        now,
    )
    .await
}

/// Whether the contributor's last failed audits, with this one, are more than what passed between them excuses.
async fn is_no_accident(conn: &mut AnyConnection, audit: &AuditRow) -> Result<bool> {
    let failed: Vec<(i64, i64)> = sqlx::query_as(
        // Chunks that failed before and are held no more were let go by an operator.
        "SELECT a.decided_by, c.positions FROM audits a JOIN chunks c ON c.sequence = a.chunk
         WHERE a.user_id = $1 AND a.decided_by IS NOT NULL AND a.state = 'failed'
           AND (a.id = $2 OR c.held <> 0)
         ORDER BY a.decided_by DESC LIMIT $3",
    )
    .bind(audit.user_id)
    .bind(audit.id)
    .bind(FAILURES as i64)
    .fetch_all(&mut *conn)
    .await?;
    let positions: Vec<i64> = failed.iter().map(|(_, positions)| *positions).collect();
    for streak in streaks(&positions) {
        let [(last, _), .., (first, _)] = failed[..streak.failures] else {
            continue;
        };
        if passed_between(conn, audit.user_id, (first, last), &streak).await? < streak.excused_by {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Positions of chunks that passed between the first and the last failure of a streak.
async fn passed_between(
    conn: &mut AnyConnection,
    user: i64,
    (first, last): (i64, i64),
    streak: &Streak,
) -> Result<i64> {
    let passed = sqlx::query_scalar(
        "SELECT CAST(COALESCE(sum(CASE WHEN c.positions < $4 THEN c.positions ELSE $4 END), 0)
           AS BIGINT)
         FROM audits a JOIN chunks c ON c.sequence = a.chunk
         WHERE a.user_id = $1 AND a.state = 'passed' AND a.decided_by > $2 AND a.decided_by < $3",
    )
    .bind(user)
    .bind(first)
    .bind(last)
    .bind(streak.largest)
    .fetch_one(conn)
    .await?;
    Ok(passed)
}
