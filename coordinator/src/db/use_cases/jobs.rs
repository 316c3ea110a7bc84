//! Jobs: what a worker gets, and the lease on it.

use std::sync::Arc;

use rookery_common::ids::{MatchId, Seed};
use rookery_common::openings::OpeningBook;
use rookery_common::protocol::audits::AuditedRules;
use rookery_common::protocol::jobs::{Job, NetworkRef, Work};
use rookery_common::protocol::runs::RunStatus;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::lease_work::{
    LeaseValues, Named, WorkReference, name_book, name_rules, pair_tasks,
};
use crate::db::models::matches::Match;
use crate::db::models::runs::{self, Run};
use crate::db::models::scheduling_stats::SchedulingStats;
use crate::db::models::{newcomers, pairs, puzzles};
use crate::db::scheduling::{self, JobSizes, Pace, Training};
use crate::db::types::LeaseRequest;
use crate::db::use_cases::audit_jobs;
use crate::db::use_cases::lease_batch::LeaseBatch;
use crate::db::use_cases::new_leases::{NewLease, PendingLease};
use crate::trust::verdict::Auditor;

/// Heartbeats that a lease's length holds.
const HEARTBEATS: u32 = 3;

/// What a lease will carry.
struct Assignment {
    work: Work,
    /// The same as the ledger keeps it, and what it names.
    reference: WorkReference,
    named: Named,
    networks: Vec<NetworkRef>,
    match_id: Option<i64>,
    seed: Seed,
}

/// Hands out jobs to all who ask, as if they had asked one after the other.
pub(crate) async fn lease(
    conn: &mut AnyConnection,
    asked: Arc<[PendingLease]>,
    values: Arc<LeaseValues>,
) -> Result<Vec<Result<Option<Job>>>> {
    let mut batch = LeaseBatch::open(conn, &asked, values).await?;
    let mut answers = Vec::with_capacity(asked.len());
    for asked in asked.iter() {
        answers.push(serve(conn, &mut batch, asked).await?);
    }
    batch.enter(conn).await?;
    Ok(answers)
}

/// A job for one of those who ask, or why there is none for this one, which has changed nothing.
async fn serve(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    asked: &PendingLease,
) -> Result<Result<Option<Job>>> {
    if let Some(refusal) = batch.refusal(asked) {
        return Ok(Err(refusal));
    }
    let name = asked.request.request.run.as_ref();
    let candidates = batch.runs(conn, name).await?;
    if let Some(name) = name
        && candidates.is_empty()
    {
        return Ok(Err(runs::unknown(name)));
    }
    for run in candidates.iter() {
        if run.status != RunStatus::Open || asked.request.refused_by.contains(&run.name) {
            continue;
        }
        if let Some(assignment) = assign(conn, batch, run, asked).await? {
            return Ok(Ok(Some(hand_out(batch, run, asked, assignment))));
        }
    }
    Ok(Ok(None))
}

/// What a worker is given of a run: an audit, pairs of a match, or training games. Contributors in
/// quarantine play training games only.
async fn assign(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    run: &Run,
    asked: &PendingLease,
) -> Result<Option<Assignment>> {
    let Some(best) = run.best else {
        return Ok(None);
    };
    let (request, now) = (&asked.request, asked.milliseconds());
    if run.params.has_solver() && !request.request.solver {
        return Ok(None);
    }
    let quarantined = batch.is_quarantined(request);
    if !quarantined && let Some(audit) = audit_work(conn, batch, run, asked).await? {
        return Ok(Some(audit));
    }
    let SchedulingStats {
        network,
        puzzles_begun,
        lengths,
        ..
    } = batch.stats(conn, run, best, asked).await?;
    let pace = Pace::of(&request.request);
    let newcomer = batch.is_newcomer(conn, run.id, asked).await?;
    let sizes = match request.auditor {
        Auditor::Trusted => JobSizes::between_audits(&run.params, pace, &lengths),
        _ if newcomer => JobSizes::new(&run.params, pace, &lengths).on_probation(&run.params),
        _ => JobSizes::new(&run.params, pace, &lengths),
    };
    let (scheduling, chances) = (&run.params.scheduling, &request.chances);
    let preference = scheduling::preference(scheduling, chances, &sizes, &lengths, puzzles_begun);
    if !quarantined && (preference.gate || preference.rating) {
        for m in batch.matches(conn, run.id).await?.iter() {
            if !preference.wants(m.purpose)
                || !can_play(conn, batch, run, m, request).await?
                || !newcomers::may_play(conn, run, m, request, now).await?
            {
                continue;
            }
            // Who plays which pairs, and who else is at work, is seen by the leases.
            batch.enter(conn).await?;
            let assignment = match_work(conn, batch, run, m, asked, sizes.matches).await?;
            if assignment.is_some() {
                return Ok(assignment);
            }
        }
    }
    if preference.training == Training::Puzzles {
        let puzzles = puzzle_work(conn, batch, run, network.clone(), request, sizes.puzzle).await?;
        if puzzles.is_some() {
            return Ok(puzzles);
        }
    }
    let book = batch.book(conn, run, request).await?;
    selfplay_work(run, network, request, &book, sizes.selfplay).map(Some)
}

async fn audit_work(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    run: &Run,
    asked: &PendingLease,
) -> Result<Option<Assignment>> {
    if !batch.any_audit(conn, run.id).await? {
        return Ok(None);
    }
    // Who is at work on an audit is seen by the job's lease.
    batch.enter(conn).await?;
    let found = audit_jobs::work(conn, run, &asked.request, asked.milliseconds()).await?;
    Ok(found.map(|(work, networks)| Assignment {
        work,
        reference: WorkReference::Audit,
        named: Named::new(),
        networks,
        match_id: None,
        seed: asked.request.chances.seed,
    }))
}

/// Whether the worker plays all that a match needs: one that plays networks only, no program.
async fn can_play(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    run: &Run,
    m: &Match,
    request: &LeaseRequest,
) -> Result<bool> {
    if request.request.programs {
        return Ok(true);
    }
    let networks = [m.candidate, m.opponent];
    Ok(!batch.any_program(conn, run.id, networks).await?)
}

async fn match_work(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    run: &Run,
    m: &Match,
    asked: &PendingLease,
    games: u32,
) -> Result<Option<Assignment>> {
    let request = &asked.request;
    let taker = pairs::Taker {
        user: request.user,
        job: request.chances.job,
        wanted: games.div_ceil(2),
        least: run.params.scheduling.match_games.div_ceil(2),
    };
    let taken = pairs::take(conn, m, &taker, asked.milliseconds()).await?;
    let Some(first) = taken.first() else {
        return Ok(None);
    };
    // A pair's games have the same seeds in whichever job they are played.
    let seed = m.seed.starting_at(2 * u64::from(*first));
    let candidate = batch.network(conn, run.id, m.candidate).await?;
    let opponent = batch.network(conn, run.id, m.opponent).await?;
    let book = batch.book(conn, run, request).await?;
    let params = run.params.matches.clone();
    let rules = AuditedRules::Match {
        candidate: candidate.hash,
        opponent: opponent.hash,
        params: params.clone(),
    };
    let (match_id, pairs) = (MatchId(m.id), taken.len() as u32);
    let mut named = Named::new();
    let reference = WorkReference::Match {
        rules: name_rules(rules, &mut named)?,
        match_id,
        match_seed: m.seed,
        first: *first,
        pairs,
        book: name_book(&book, &mut named),
    };
    let work = Work::Match {
        match_id,
        candidate: candidate.hash,
        opponent: opponent.hash,
        pairs: pair_tasks(&book, m.seed, *first, pairs),
        params,
    };
    Ok(Some(Assignment {
        work,
        reference,
        named,
        networks: vec![candidate, opponent],
        match_id: Some(m.id),
        seed,
    }))
}

async fn puzzle_work(
    conn: &mut AnyConnection,
    batch: &mut LeaseBatch,
    run: &Run,
    network: NetworkRef,
    request: &LeaseRequest,
    wanted: u32,
) -> Result<Option<Assignment>> {
    let seed = request.chances.seed;
    let of = batch.puzzles(conn, run.id).await?;
    let drawn = puzzles::draw(conn, run.id, wanted, of, seed).await?;
    if drawn.is_empty() {
        return Ok(None);
    }
    let params = run.params.puzzle.clone();
    let rules = AuditedRules::Puzzles {
        network: network.hash,
        params: params.clone(),
    };
    let mut named = Named::new();
    let reference = WorkReference::Puzzles {
        rules: name_rules(rules, &mut named)?,
        puzzles: wanted,
        of,
    };
    let work = Work::Puzzles {
        network: network.hash,
        puzzles: drawn,
        params,
    };
    Ok(Some(Assignment {
        work,
        reference,
        named,
        networks: vec![network],
        match_id: None,
        seed,
    }))
}

fn selfplay_work(
    run: &Run,
    network: NetworkRef,
    request: &LeaseRequest,
    book: &Arc<OpeningBook>,
    games: u32,
) -> Result<Assignment> {
    let params = run.params.selfplay.clone();
    let seed = request.chances.seed;
    let openings = book.draw(params.book_share, games, seed);
    let rules = AuditedRules::SelfPlay {
        network: network.hash,
        params: params.clone(),
    };
    let mut named = Named::new();
    let reference = WorkReference::SelfPlay {
        rules: name_rules(rules, &mut named)?,
        games,
        book: (!openings.is_empty()).then(|| name_book(book, &mut named)),
    };
    let work = Work::SelfPlay {
        network: network.hash,
        games,
        openings,
        params,
    };
    Ok(Assignment {
        work,
        reference,
        named,
        networks: vec![network],
        match_id: None,
        seed,
    })
}

/// Makes the assignment a job, which is to be entered.
fn hand_out(
    batch: &mut LeaseBatch,
    run: &Run,
    asked: &PendingLease,
    assignment: Assignment,
) -> Job {
    let lease_seconds = run.params.scheduling.lease_seconds;
    let job = Job {
        id: asked.request.chances.job,
        run: run.name.clone(),
        lease_seconds,
        heartbeat_seconds: (lease_seconds / HEARTBEATS).max(1),
        seed: assignment.seed,
        work: assignment.work,
        networks: assignment.networks,
        run_key: None,
        notices: Vec::new(),
    };
    batch.take(NewLease {
        run: run.id,
        match_id: assignment.match_id,
        asked: asked.clone(),
        reference: assignment.reference,
        named: assignment.named,
        id: job.id,
        kind: job.work.kind(),
        games: job.work.games(),
        lease_seconds,
        seed: job.seed,
        network: job.networks.first().map(|network| network.number),
    });
    job
}
