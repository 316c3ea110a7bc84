//! Heartbeats. They are collected, and a batch costs three statements, however many there are in it.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::ids::{JobId, UserId};
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Instruction, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::runs::RunStatus;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::audits;
use crate::db::models::leases::unknown;
use crate::db::models::states::JobState;
use crate::db::scheduling;
use crate::db::sql::load::MOST;
use crate::db::sql::rows::{job_bytes, parse};
use crate::db::sql::statement::{Statement, filled};
use crate::db::use_cases::new_leases::speed;

#[derive(Debug, Clone)]
pub(crate) struct LeaseRenewal {
    pub(crate) user: UserId,
    pub(crate) job: JobId,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) now: Timestamp,
}

#[derive(FromRow)]
struct LeaseRow {
    id: Vec<u8>,
    user_id: i64,
    worker: String,
    kind: String,
    games: i64,
    lease_ms: i64,
    leased_at: i64,
    state: String,
    run_status: String,
    /// Whether the operator lets the worker have no jobs any more.
    blocked: i64,
    /// Of the match in which it plays.
    match_status: Option<String>,
    /// Pairs that it still holds: all that it leased, unless some went to another job.
    pairs_held: i64,
    /// Open audits that it makes: one, unless that went to another job.
    audits_held: i64,
}

impl LeaseRow {
    fn kind(&self) -> Result<WorkKind> {
        parse("kind of job", &self.kind)
    }

    fn state(&self) -> Result<JobState> {
        parse("state of a job", &self.state)
    }
}

/// Extends the leases for which these were sent.
pub(crate) async fn extend(
    conn: &mut AnyConnection,
    renewals: Arc<[LeaseRenewal]>,
) -> Result<Vec<Result<HeartbeatReply>>> {
    let leases = find(conn, &renewals).await?;
    let mut replies = Vec::with_capacity(renewals.len());
    let mut alive = Vec::with_capacity(renewals.len());
    for renewal in renewals.iter() {
        let lease = leases.get(&job_bytes(renewal.job));
        let own = lease.filter(|lease| lease.user_id == renewal.user.0);
        let reply = match own {
            Some(lease) => answer(renewal.job, lease),
            None => Err(unknown(renewal.job)),
        };
        if let (Ok(_), Some(lease)) = (&reply, own) {
            alive.push((renewal, lease));
        }
        replies.push(reply);
    }
    for part in alive.chunks(MOST) {
        renew_leases(conn, part).await?;
        remember(conn, part).await?;
    }
    Ok(replies)
}

/// Reads all that the replies depend on. The CASEs keep the heartbeats of self-play, which are most, from looking into the
/// indexes of pairs and of audits.
async fn find(
    conn: &mut AnyConnection,
    renewals: &[LeaseRenewal],
) -> Result<HashMap<Vec<u8>, LeaseRow>> {
    let mut query = Statement::new(
        "SELECT j.id, j.user_id, j.worker, j.kind, j.games, j.lease_ms,
           j.leased_at, j.state, r.status AS run_status,
           CAST(CASE WHEN b.at IS NULL THEN 0 ELSE 1 END AS BIGINT) AS blocked,
           m.status AS match_status,
           CASE WHEN j.match_id IS NULL THEN 0
             ELSE (SELECT count(*) FROM match_pairs p WHERE p.job_id = j.id) END AS pairs_held,
           CASE WHEN j.kind = 'audit' THEN (SELECT count(*) FROM audits a
             WHERE a.job_id = j.id AND a.state = 'open') ELSE 0 END AS audits_held
         FROM jobs j JOIN runs r ON r.id = j.run_id LEFT JOIN matches m ON m.id = j.match_id
           LEFT JOIN worker_blocks b ON b.user_id = j.user_id AND b.worker = j.worker
         WHERE j.id IN (",
    );
    let jobs: Vec<Vec<u8>> = renewals
        .iter()
        .map(|renewal| job_bytes(renewal.job))
        .collect();
    query.bind_all(&jobs)?.push(")");
    let rows: Vec<LeaseRow> = query.fetch_all(conn).await?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}

fn answer(job: JobId, lease: &LeaseRow) -> Result<HeartbeatReply> {
    if lease.state()? == JobState::Returned {
        return Err(DbError::LeaseEnded(format!("job {job} was given back")));
    }
    Ok(HeartbeatReply {
        lease_seconds: u32::try_from(lease.lease_ms / 1000).unwrap_or(u32::MAX),
        instruction: instruct(job, lease)?,
        notices: Vec::new(),
    })
}

/// Whether the job's games still matter.
fn instruct(job: JobId, lease: &LeaseRow) -> Result<Instruction> {
    if let Some(status) = &lease.match_status {
        if lease.pairs_held < lease.games / 2 {
            let detail = format!("the lease of job {job} is over and others play its pairs");
            return Err(DbError::LeaseEnded(detail));
        }
        let status: MatchStatus = parse("match status", status)?;
        if status != MatchStatus::Open {
            return Ok(Instruction::Abandon);
        }
    }
    if lease.kind()? == WorkKind::Audit
        && lease.state()? == JobState::Open
        && lease.audits_held == 0
    {
        return Err(audits::over(job));
    }
    if lease.blocked != 0 {
        return Ok(Instruction::Abandon);
    }
    match parse("status", &lease.run_status)? {
        RunStatus::Open => Ok(Instruction::Continue),
        RunStatus::Paused => Ok(Instruction::Abandon),
    }
}

async fn renew_leases(
    conn: &mut AnyConnection,
    alive: &[(&LeaseRenewal, &LeaseRow)],
) -> Result<()> {
    let now = latest(alive);
    let mut query = Statement::new("UPDATE jobs SET expires_at = heard.column2 FROM (");
    query.rows(filled(alive), |row, (renewal, lease)| {
        let end = scheduling::extended(lease.kind()?, lease.leased_at, lease.lease_ms, now);
        row.bind(job_bytes(renewal.job))?.bind(end)?;
        Ok(())
    })?;
    query.push(") AS heard WHERE jobs.id = heard.column1");
    query.execute(conn).await
}

async fn remember(conn: &mut AnyConnection, alive: &[(&LeaseRenewal, &LeaseRow)]) -> Result<()> {
    let mut query = Statement::new("UPDATE workers SET last_seen = ");
    query.bind(latest(alive))?.push(
        ", evals_per_second = CASE WHEN heard.column3 > 0 THEN heard.column3
             ELSE workers.evals_per_second END
         FROM (",
    );
    query.rows(filled(alive), |row, (renewal, lease)| {
        row.bind(renewal.user.0)?
            .bind(lease.worker.clone())?
            .bind(speed(renewal.heartbeat.evals_per_second))?;
        Ok(())
    })?;
    query.push(") AS heard WHERE workers.user_id = heard.column1 AND workers.name = heard.column2");
    query.execute(conn).await
}

fn latest(alive: &[(&LeaseRenewal, &LeaseRow)]) -> i64 {
    let times = alive
        .iter()
        .map(|(renewal, _)| renewal.now.as_millisecond());
    times.max().unwrap_or_default()
}
