//! Jobs: what a worker gets, and the lease on it.

use jiff::Timestamp;
use rookery_common::ids::{MatchId, Seed};
use rookery_common::protocol::jobs::{Job, NetworkRef, PairTask, Work};
use rookery_common::protocol::runs::RunStatus;
use sqlx::AnyConnection;

use super::matches::{self, Match};
use super::outlook::{Outlook, outlook};
use super::rows::{job_bytes, seed_column, to_json};
use super::runs::{self, Run};
use super::statement::Statement;
use super::{audits, networks, pairs, puzzles, quotas};
use crate::store::decide::{self, JobSizes, Pace, Training};
use crate::store::error::Result;
use crate::store::model::LeaseRequest;

/// Heartbeats that a lease's length holds.
const HEARTBEATS: u32 = 3;

/// What a lease will carry.
struct Assignment {
    work: Work,
    networks: Vec<NetworkRef>,
    match_id: Option<i64>,
    seed: Seed,
}

pub(super) async fn lease(
    conn: &mut AnyConnection,
    request: LeaseRequest,
    now: Timestamp,
) -> Result<Option<Job>> {
    quotas::check(conn, &request, now.as_millisecond()).await?;
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
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    now: Timestamp,
) -> Result<Option<Assignment>> {
    let Some(best) = run.best else {
        return Ok(None);
    };
    let scheduling = &run.params.scheduling;
    let puzzles = scheduling.puzzle_share > 0.0;
    let Outlook {
        quarantined,
        puzzles_begun,
        network,
        lengths,
    } = outlook(conn, run.id, request.user, best, puzzles).await?;
    if !quarantined
        && let Some((work, networks)) =
            audits::work(conn, run, request, now.as_millisecond()).await?
    {
        return Ok(Some(Assignment {
            work,
            networks,
            match_id: None,
            seed: request.chances.seed,
        }));
    }
    let sizes = JobSizes::new(&run.params, Pace::of(&request.request), &lengths);
    let chances = &request.chances;
    let preference = decide::preference(scheduling, chances, &sizes, &lengths, puzzles_begun);
    if !quarantined && (preference.gate || preference.rating) {
        for m in matches::open_in(conn, run.id).await? {
            if preference.wants(m.purpose)
                && can_play(conn, run, &m, request).await?
                && let Some(assignment) =
                    match_work(conn, run, &m, request, sizes.matches, now).await?
            {
                return Ok(Some(assignment));
            }
        }
    }
    let puzzles = match preference.training {
        Training::Puzzles => puzzle_work(conn, run, &network, request, sizes.puzzle).await?,
        Training::SelfPlay => None,
    };
    let work = puzzles.unwrap_or_else(|| selfplay_work(run, &network, request, sizes.selfplay));
    Ok(Some(Assignment {
        work,
        networks: vec![network],
        match_id: None,
        seed: chances.seed,
    }))
}

/// Whether the worker plays all that a match needs: one that plays networks only, no program.
async fn can_play(
    conn: &mut AnyConnection,
    run: &Run,
    m: &Match,
    request: &LeaseRequest,
) -> Result<bool> {
    if request.request.programs {
        return Ok(true);
    }
    let networks = [m.candidate, m.opponent];
    Ok(!networks::any_program(conn, run.id, networks).await?)
}

async fn match_work(
    conn: &mut AnyConnection,
    run: &Run,
    m: &Match,
    request: &LeaseRequest,
    games: u32,
    now: Timestamp,
) -> Result<Option<Assignment>> {
    let taker = pairs::Taker {
        user: request.user,
        job: request.chances.job,
        wanted: games.div_ceil(2),
        least: run.params.scheduling.match_games.div_ceil(2),
    };
    let taken = pairs::take(conn, m, &taker, now.as_millisecond()).await?;
    let Some(first) = taken.first() else {
        return Ok(None);
    };
    // A pair's games have the same seeds in whichever job they are played.
    let seed = m.seed.starting_at(2 * u64::from(*first));
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
        seed,
    }))
}

async fn puzzle_work(
    conn: &mut AnyConnection,
    run: &Run,
    network: &NetworkRef,
    request: &LeaseRequest,
    wanted: u32,
) -> Result<Option<Work>> {
    let puzzles = puzzles::pick(conn, run.id, wanted, request.chances.seed).await?;
    let work = Work::Puzzles {
        network: network.hash,
        puzzles,
        params: run.params.puzzle.clone(),
    };
    Ok((work.games() > 0).then_some(work))
}

fn selfplay_work(run: &Run, network: &NetworkRef, request: &LeaseRequest, games: u32) -> Work {
    let params = run.params.selfplay.clone();
    let seed = request.chances.seed;
    Work::SelfPlay {
        network: network.hash,
        games,
        openings: request.book.draw(params.book_share, games, seed),
        params,
    }
}

async fn hand_out(
    conn: &mut AnyConnection,
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
        seed: assignment.seed,
        work: assignment.work,
        networks: assignment.networks,
        run_key: None,
        notices: Vec::new(),
    };
    enter(conn, run, request, &job, assignment.match_id, now).await?;
    Ok(job)
}

/// Enters the lease, and what the worker said of itself.
async fn enter(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    job: &Job,
    match_id: Option<i64>,
    now: Timestamp,
) -> Result<()> {
    let lease_ms = i64::from(job.lease_seconds) * 1000;
    let network = job.networks.first().map(|network| network.number.0);
    let (now, asked) = (now.as_millisecond(), &request.request);
    let mut entry = Statement::new(
        "INSERT INTO jobs (id, run_id, user_id, worker, kind, network, match_id, seed, work,
           games, lease_ms, leased_at, expires_at, state) VALUES (",
    );
    entry.bind(job_bytes(job.id))?.push(", ");
    entry.bind(run.id)?.push(", ");
    entry.bind(request.user.0)?.push(", ");
    entry.bind(asked.worker.clone())?.push(", ");
    entry.bind(job.work.kind().name())?.push(", ");
    entry.bind(network.map(i64::from))?.push(", ");
    entry.bind(match_id)?.push(", ");
    entry.bind(seed_column(job.seed))?.push(", ");
    entry.bind(to_json(&job.work)?)?.push(", ");
    entry.bind(i64::from(job.work.games()))?.push(", ");
    entry.bind(lease_ms)?.push(", ");
    entry.bind(now)?.push(", ");
    entry.bind(now + lease_ms)?.push(", 'open')");
    entry.next(
        "INSERT INTO workers (user_id, name, backend, version, evals_per_second, job_kind,
           last_seen) VALUES (",
    );
    entry.bind(request.user.0)?.push(", ");
    entry.bind(asked.worker.clone())?.push(", ");
    entry.bind(asked.backend.name())?.push(", ");
    entry.bind(asked.version.clone())?.push(", ");
    entry.bind(finite(asked.evals_per_second))?.push(", ");
    entry.bind(job.work.kind().name())?.push(", ");
    entry.bind(now)?.push(
        ") ON CONFLICT (user_id, name) DO UPDATE SET backend = excluded.backend,
           version = excluded.version, evals_per_second = excluded.evals_per_second,
           job_kind = excluded.job_kind, last_seen = excluded.last_seen",
    );
    entry.execute(conn).await
}

/// A reported speed that is a number.
pub(super) fn finite(number: f32) -> f64 {
    if number.is_finite() {
        number.into()
    } else {
        0.0
    }
}
