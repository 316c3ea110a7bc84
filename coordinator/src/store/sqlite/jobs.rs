//! Jobs: leases are handed out, extended, given back.

use jiff::Timestamp;
use rookery_common::ids::{JobId, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::jobs::{
    Heartbeat, HeartbeatReply, Instruction, Job, NetworkRef, PairTask, Work, WorkKind,
};
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::runs::RunStatus;
use sqlx::{FromRow, SqliteConnection};

use super::matches::{self, Match};
use super::rows::{from_json, job_bytes, seed, seed_column, to_json, to_u32, unreadable};
use super::runs::{self, Run};
use super::{networks, pairs, puzzles};
use crate::store::decide::{self, Preference, Training};
use crate::store::error::{Result, StoreError};
use crate::store::model::{LeaseRequest, LeasedJob};

/// Heartbeats that a lease's length holds.
const HEARTBEATS: u32 = 3;

/// What a lease will carry.
struct Assignment {
    work: Work,
    networks: Vec<NetworkRef>,
    match_id: Option<i64>,
}

pub(super) async fn lease(
    conn: &mut SqliteConnection,
    request: LeaseRequest,
    now: Timestamp,
) -> Result<Option<Job>> {
    let candidates = match &request.request.run {
        Some(run) => vec![runs::load(conn, run).await?],
        None => runs::open(conn).await?,
    };
    let open = candidates
        .into_iter()
        .filter(|run| run.status == RunStatus::Open);
    for run in open {
        if let Some(assignment) = assign(conn, &run, &request, now).await? {
            return hand_out(conn, &run, &request, assignment, now)
                .await
                .map(Some);
        }
    }
    Ok(None)
}

async fn assign(
    conn: &mut SqliteConnection,
    run: &Run,
    request: &LeaseRequest,
    now: Timestamp,
) -> Result<Option<Assignment>> {
    let Some(best) = run.best else {
        return Ok(None);
    };
    let training = match decide::preference(&run.params.scheduling, &request.chances) {
        Preference::Match(training) => {
            for m in matches::open_in(conn, run.id).await? {
                if let Some(assignment) = match_work(conn, run, &m, request, now).await? {
                    return Ok(Some(assignment));
                }
            }
            training
        }
        Preference::Training(training) => training,
    };
    let network = networks::reference(conn, run.id, best).await?;
    let puzzles = match training {
        Training::Puzzles => puzzle_work(conn, run, &network, request).await?,
        Training::SelfPlay => None,
    };
    let work = puzzles.unwrap_or_else(|| selfplay_work(run, &network, request));
    Ok(Some(Assignment {
        work,
        networks: vec![network],
        match_id: None,
    }))
}

async fn match_work(
    conn: &mut SqliteConnection,
    run: &Run,
    m: &Match,
    request: &LeaseRequest,
    now: Timestamp,
) -> Result<Option<Assignment>> {
    let games = run.params.scheduling.match_games;
    let wanted = decide::job_size(games, request.request.concurrent_games).div_ceil(2);
    let taken = pairs::take(conn, m, request.chances.job, wanted, now.as_millisecond()).await?;
    if taken.is_empty() {
        return Ok(None);
    }
    let candidate = networks::reference(conn, run.id, m.candidate).await?;
    let opponent = networks::reference(conn, run.id, m.opponent).await?;
    let work = Work::Match {
        match_id: MatchId(m.id),
        candidate: candidate.hash,
        opponent: opponent.hash,
        pairs: taken
            .into_iter()
            .map(|pair| PairTask {
                pair,
                opening: request.book.of_pair(m.seed, pair).clone(),
            })
            .collect(),
        params: run.params.matches.clone(),
    };
    Ok(Some(Assignment {
        work,
        networks: vec![candidate, opponent],
        match_id: Some(m.id),
    }))
}

async fn puzzle_work(
    conn: &mut SqliteConnection,
    run: &Run,
    network: &NetworkRef,
    request: &LeaseRequest,
) -> Result<Option<Work>> {
    let games = run.params.scheduling.puzzle_games;
    let wanted = decide::job_size(games, request.request.concurrent_games);
    let puzzles = puzzles::pick(conn, run.id, wanted, request.chances.seed).await?;
    let work = Work::Puzzles {
        network: network.hash,
        puzzles,
        params: run.params.puzzle.clone(),
    };
    Ok((work.games() > 0).then_some(work))
}

fn selfplay_work(run: &Run, network: &NetworkRef, request: &LeaseRequest) -> Work {
    let games = run.params.scheduling.selfplay_games;
    Work::SelfPlay {
        network: network.hash,
        games: decide::job_size(games, request.request.concurrent_games),
        params: run.params.selfplay.clone(),
    }
}

async fn hand_out(
    conn: &mut SqliteConnection,
    run: &Run,
    request: &LeaseRequest,
    assignment: Assignment,
    now: Timestamp,
) -> Result<Job> {
    let lease_seconds = run.params.scheduling.lease_seconds;
    let job = Job {
        id: request.chances.job,
        run: run.name.clone(),
        lease_seconds,
        heartbeat_seconds: (lease_seconds / HEARTBEATS).max(1),
        seed: request.chances.seed,
        work: assignment.work,
        networks: assignment.networks,
        notices: Vec::new(),
    };
    insert(conn, run, request, &job, assignment.match_id, now).await?;
    remember_worker(conn, request, job.work.kind(), now).await?;
    Ok(job)
}

async fn insert(
    conn: &mut SqliteConnection,
    run: &Run,
    request: &LeaseRequest,
    job: &Job,
    match_id: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let lease_ms = i64::from(job.lease_seconds) * 1000;
    let network = job.networks.first().map(|network| network.number.0);
    sqlx::query(
        "INSERT INTO jobs (id, run_id, user_id, worker, kind, network, match_id, seed, work,
           games, lease_ms, leased_at, expires_at, state)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open')",
    )
    .bind(job_bytes(job.id))
    .bind(run.id)
    .bind(request.user.0)
    .bind(&request.request.worker)
    .bind(job.work.kind().name())
    .bind(network)
    .bind(match_id)
    .bind(seed_column(job.seed))
    .bind(to_json(&job.work)?)
    .bind(job.work.games())
    .bind(lease_ms)
    .bind(now.as_millisecond())
    .bind(now.as_millisecond() + lease_ms)
    .execute(conn)
    .await?;
    Ok(())
}

async fn remember_worker(
    conn: &mut SqliteConnection,
    request: &LeaseRequest,
    kind: WorkKind,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO workers (user_id, name, backend, version, evals_per_second, job_kind,
           last_seen)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (user_id, name) DO UPDATE SET backend = excluded.backend,
           version = excluded.version, evals_per_second = excluded.evals_per_second,
           job_kind = excluded.job_kind, last_seen = excluded.last_seen",
    )
    .bind(request.user.0)
    .bind(&request.request.worker)
    .bind(request.request.backend.name())
    .bind(&request.request.version)
    .bind(finite(request.request.evals_per_second))
    .bind(kind.name())
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}

fn finite(number: f32) -> f32 {
    if number.is_finite() { number } else { 0.0 }
}

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
        WorkKind::from_name(&self.kind).ok_or_else(|| unreadable("kind of job", &self.kind))
    }

    pub(super) fn network(&self) -> Result<NetworkNumber> {
        to_u32("network", self.network).map(NetworkNumber)
    }
}

fn unknown(job: JobId) -> StoreError {
    StoreError::NotFound(format!("job {job}"))
}

pub(super) async fn find(conn: &mut SqliteConnection, job: JobId) -> Result<JobRow> {
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
pub(super) async fn find_own(
    conn: &mut SqliteConnection,
    job: JobId,
    user: UserId,
) -> Result<JobRow> {
    let row = find(conn, job).await?;
    if row.user_id == user.0 {
        Ok(row)
    } else {
        Err(unknown(job))
    }
}

pub(super) async fn leased(conn: &mut SqliteConnection, job: JobId) -> Result<LeasedJob> {
    let row = find(conn, job).await?;
    let run: String = sqlx::query_scalar("SELECT name FROM runs WHERE id = $1")
        .bind(row.run_id)
        .fetch_one(conn)
        .await?;
    let run: RunName = run.parse().map_err(|error| unreadable("run", error))?;
    let work = from_json("job", &row.work)?;
    Ok(LeasedJob {
        user: UserId(row.user_id),
        run,
        work,
        seed: seed(row.seed),
    })
}

pub(super) async fn heartbeat(
    conn: &mut SqliteConnection,
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
async fn instruct(conn: &mut SqliteConnection, job: JobId, row: &JobRow) -> Result<Instruction> {
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
    conn: &mut SqliteConnection,
    user: UserId,
    job: JobId,
    now: Timestamp,
) -> Result<()> {
    find_own(conn, job, user).await?;
    sqlx::query(
        "UPDATE jobs SET state = 'returned', expires_at = min(expires_at, $2)
         WHERE id = $1 AND state = 'open'",
    )
    .bind(job_bytes(job))
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}
