//! Heartbeats. They are collected, and a batch costs three statements, however many there are in it.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::ids::{JobId, MatchId, UserId};
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Instruction, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::runs::RunStatus;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::leases::unknown;
use crate::db::models::states::JobState;
use crate::db::models::{audits, matches, pairs};
use crate::db::scheduling;
use crate::db::sql::load::MOST;
use crate::db::sql::rows::{job_bytes, named, to_u32, unreadable};
use crate::db::sql::statement::{Statement, filled};
use crate::db::use_cases::new_leases::speed;

/// A heartbeat.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRenewal {
    pub(crate) user: UserId,
    pub(crate) job: JobId,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) now: Timestamp,
}

/// A lease as its heartbeat needs it.
#[derive(FromRow)]
struct LeaseRow {
    id: Vec<u8>,
    user_id: i64,
    worker: String,
    kind: String,
    match_id: Option<i64>,
    games: i64,
    lease_ms: i64,
    leased_at: i64,
    state: String,
    run_status: String,
    /// Whether the operator lets the worker have no jobs any more.
    blocked: i64,
}

impl LeaseRow {
    fn kind(&self) -> Result<WorkKind> {
        named("kind of job", &self.kind)
    }

    fn state(&self) -> Result<JobState> {
        JobState::read(&self.state)
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
            Some(lease) => answer(conn, renewal.job, lease).await,
            None => Err(unknown(renewal.job)),
        };
        match (&reply, own) {
            (Err(error), _) if error.is_temporary() => return reply.map(|_| Vec::new()),
            (Ok(_), Some(lease)) => alive.push((renewal, lease)),
            _ => {}
        }
        replies.push(reply);
    }
    for part in alive.chunks(MOST) {
        renew_leases(conn, part).await?;
        remember(conn, part).await?;
    }
    Ok(replies)
}

async fn find(
    conn: &mut AnyConnection,
    renewals: &[LeaseRenewal],
) -> Result<HashMap<Vec<u8>, LeaseRow>> {
    let mut query = Statement::new(
        "SELECT j.id, j.user_id, j.worker, j.kind, j.match_id, j.games, j.lease_ms,
           j.leased_at, j.state, r.status AS run_status,
           CAST(CASE WHEN b.at IS NULL THEN 0 ELSE 1 END AS BIGINT) AS blocked
         FROM jobs j JOIN runs r ON r.id = j.run_id
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

async fn answer(conn: &mut AnyConnection, job: JobId, lease: &LeaseRow) -> Result<HeartbeatReply> {
    if lease.state()? == JobState::Returned {
        return Err(DbError::LeaseEnded(format!("job {job} was given back")));
    }
    Ok(HeartbeatReply {
        lease_seconds: u32::try_from(lease.lease_ms / 1000).unwrap_or(u32::MAX),
        instruction: instruct(conn, job, lease).await?,
        notices: Vec::new(),
    })
}

/// Whether the job's games still matter.
async fn instruct(conn: &mut AnyConnection, job: JobId, lease: &LeaseRow) -> Result<Instruction> {
    if let Some(match_id) = lease.match_id {
        let leased = to_u32("number of games", lease.games)? / 2;
        if pairs::held(conn, match_id, job).await? < leased {
            let detail = format!("the lease of job {job} is over and others play its pairs");
            return Err(DbError::LeaseEnded(detail));
        }
        if matches::load(conn, MatchId(match_id)).await?.status != MatchStatus::Open {
            return Ok(Instruction::Abandon);
        }
    }
    if lease.kind()? == WorkKind::Audit
        && lease.state()? == JobState::Open
        && !audits::is_held(conn, job).await?
    {
        return Err(audits::over(job));
    }
    if lease.blocked != 0 {
        return Ok(Instruction::Abandon);
    }
    match RunStatus::from_name(&lease.run_status) {
        Some(RunStatus::Open) => Ok(Instruction::Continue),
        Some(RunStatus::Paused) => Ok(Instruction::Abandon),
        None => Err(unreadable("status", &&lease.run_status)),
    }
}

async fn renew_leases(
    conn: &mut AnyConnection,
    alive: &[(&LeaseRenewal, &LeaseRow)],
) -> Result<()> {
    let now = latest(alive);
    let mut query = Statement::new("UPDATE jobs SET expires_at = heard.column2 FROM (VALUES ");
    for (place, (renewal, lease)) in filled(alive).enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.bind(job_bytes(renewal.job))?.push(", ");
        let end = scheduling::extended(lease.kind()?, lease.leased_at, lease.lease_ms, now);
        query.bind(end)?.push(")");
    }
    query.push(") AS heard WHERE jobs.id = heard.column1");
    query.execute(conn).await
}

async fn remember(conn: &mut AnyConnection, alive: &[(&LeaseRenewal, &LeaseRow)]) -> Result<()> {
    let mut query = Statement::new("UPDATE workers SET last_seen = ");
    query.bind(latest(alive))?.push(
        ", evals_per_second = CASE WHEN heard.column3 > 0 THEN heard.column3
             ELSE workers.evals_per_second END
         FROM (VALUES ",
    );
    for (place, (renewal, lease)) in filled(alive).enumerate() {
        query.push(if place == 0 { "(" } else { ", (" });
        query.bind(renewal.user.0)?.push(", ");
        query.bind(lease.worker.clone())?.push(", ");
        query
            .bind(speed(renewal.heartbeat.evals_per_second))?
            .push(")");
    }
    query.push(") AS heard WHERE workers.user_id = heard.column1 AND workers.name = heard.column2");
    query.execute(conn).await
}

fn latest(alive: &[(&LeaseRenewal, &LeaseRow)]) -> i64 {
    let times = alive
        .iter()
        .map(|(renewal, _)| renewal.now.as_millisecond());
    times.max().unwrap_or_default()
}
