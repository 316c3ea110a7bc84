//! Leases after they were handed out: looked up, extended, given back.

use jiff::Timestamp;
use rookery_common::ids::{JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::jobs::{Heartbeat, HeartbeatReply, Instruction, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::runs::RunStatus;
use sqlx::{AnyConnection, FromRow};

use super::jobs::finite;
use super::rows::{from_json, job_bytes, seed, to_u32, unreadable};
use super::{matches, pairs, runs};
use crate::store::error::{Result, StoreError};
use crate::store::model::LeasedJob;

/// A lease as operations need it.
#[derive(FromRow)]
pub(super) struct JobRow {
    pub(super) run_id: i64,
    pub(super) user_id: i64,
    pub(super) worker: String,
    pub(super) kind: String,
    pub(super) network: i64,
    pub(super) match_id: Option<i64>,
    pub(super) seed: i64,
    pub(super) work: String,
    pub(super) games: i64,
    pub(super) games_counted: i64,
    pub(super) lease_ms: i64,
    pub(super) state: String,
}

impl JobRow {
    pub(super) fn kind(&self) -> Result<WorkKind> {
        WorkKind::from_name(&self.kind).ok_or_else(|| unreadable("kind of job", &&self.kind))
    }

    pub(super) fn network(&self) -> Result<NetworkNumber> {
        to_u32("network", self.network).map(NetworkNumber)
    }
}

fn unknown(job: JobId) -> StoreError {
    StoreError::NotFound(format!("job {job}"))
}

pub(super) async fn find(conn: &mut AnyConnection, job: JobId) -> Result<JobRow> {
    sqlx::query_as(
        "SELECT run_id, user_id, worker, kind, network, match_id, seed, work, games,
           games_counted, lease_ms, state
         FROM jobs WHERE id = $1",
    )
    .bind(job_bytes(job))
    .fetch_optional(conn)
    .await?
    .ok_or_else(|| unknown(job))
}

/// A job of this user; another's is as good as none.
pub(super) async fn find_own(conn: &mut AnyConnection, job: JobId, user: UserId) -> Result<JobRow> {
    let row = find(conn, job).await?;
    if row.user_id == user.0 {
        Ok(row)
    } else {
        Err(unknown(job))
    }
}

pub(super) async fn leased(conn: &mut AnyConnection, job: JobId) -> Result<LeasedJob> {
    let row = find(conn, job).await?;
    let run: String = sqlx::query_scalar("SELECT name FROM runs WHERE id = $1")
        .bind(row.run_id)
        .fetch_one(conn)
        .await?;
    let run: RunName = run.parse().map_err(|error| unreadable("run", &error))?;
    let work = from_json("job", &row.work)?;
    Ok(LeasedJob {
        user: UserId(row.user_id),
        run,
        work,
        seed: seed(row.seed),
    })
}

pub(super) async fn heartbeat(
    conn: &mut AnyConnection,
    user: UserId,
    job: JobId,
    heartbeat: Heartbeat,
    now: Timestamp,
) -> Result<HeartbeatReply> {
    let row = find_own(conn, job, user).await?;
    if row.state == "returned" {
        return Err(StoreError::LeaseEnded(format!("job {job} was given back")));
    }
    let instruction = instruct(conn, job, &row).await?;
    sqlx::query("UPDATE jobs SET expires_at = $2 WHERE id = $1")
        .bind(job_bytes(job))
        .bind(now.as_millisecond() + row.lease_ms)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "UPDATE workers SET last_seen = $3,
           evals_per_second = CASE WHEN $4 > 0 THEN $4 ELSE evals_per_second END
         WHERE user_id = $1 AND name = $2",
    )
    .bind(user.0)
    .bind(&row.worker)
    .bind(now.as_millisecond())
    .bind(finite(heartbeat.evals_per_second))
    .execute(conn)
    .await?;
    let lease_seconds = u32::try_from(row.lease_ms / 1000).unwrap_or(u32::MAX);
    Ok(HeartbeatReply {
        lease_seconds,
        instruction,
    })
}

/// Whether the job's games still matter.
async fn instruct(conn: &mut AnyConnection, job: JobId, row: &JobRow) -> Result<Instruction> {
    if let Some(match_id) = row.match_id {
        let leased = to_u32("number of games", row.games)? / 2;
        if pairs::held(conn, match_id, job).await? < leased {
            let detail = format!("the lease of job {job} is over and others play its pairs");
            return Err(StoreError::LeaseEnded(detail));
        }
        if matches::load(conn, MatchId(match_id)).await?.status != MatchStatus::Open {
            return Ok(Instruction::Abandon);
        }
    }
    let run = runs::load_by_id(conn, row.run_id).await?;
    Ok(match run.status {
        RunStatus::Open => Instruction::Continue,
        RunStatus::Paused => Instruction::Abandon,
    })
}

pub(super) async fn give_back(
    conn: &mut AnyConnection,
    user: UserId,
    job: JobId,
    now: Timestamp,
) -> Result<()> {
    find_own(conn, job, user).await?;
    sqlx::query(
        "UPDATE jobs SET state = 'returned', 
           expires_at = CASE WHEN expires_at < $2 THEN expires_at ELSE $2 END
         WHERE id = $1 AND state = 'open'",
    )
    .bind(job_bytes(job))
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}
