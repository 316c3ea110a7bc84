//! The fit of all match games of a run, and what follows from it: best may be rolled back, and the
//! match that says most about the ratings is opened.
//!
//! The maths is [`rookery_common::rating::bradley_terry`]; anchors whose Elo is given have it, and where
//! none of them has played, the first network is 0. A fit runs off the async threads, after a match was
//! decided, after a network became best without one, and now and then while a match is played.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::MatchPurpose;
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::db::{Actor, MatchDraft, MatchFilter, Rollback};
use crate::random;

mod contender;
mod fit;
mod programs;

pub use contender::{Contender, Role};
pub use fit::{Fitted, fit};

use programs::{Meeting, next_program};

/// Matches, the newest, among which those with programs are counted.
const COUNTED: u32 = 200;

/// Between two looks for ratings that wait for a fit.
const LOOK: Duration = Duration::from_secs(60);

/// Fits the ratings of a run again, in the background.
pub fn refit_soon(app: &App, run: RunName) {
    let app = app.clone();
    tokio::spawn(async move { refit_or_say(&app, &run).await });
}

async fn refit_or_say(app: &App, run: &RunName) {
    if let Err(error) = refit(app, run).await {
        tracing::error!(%run, %error, "RK-0236: A background task failed: the ratings could not be fitted.");
    }
}

/// Fits ratings that wait for it all the same, until the coordinator stops: who was told to fit them may
/// have ended before, or lost the ledger, or its client went away while it was told.
pub async fn keep_fitting(app: App) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = refit_waiting(&app).await {
            tracing::error!(%error, "RK-0236: A background task failed: the runs to rate could not be listed.");
        }
    }
}

pub async fn refit_waiting(app: &App) -> anyhow::Result<()> {
    for run in app.db.runs_to_rate().await? {
        refit_or_say(app, &run).await;
    }
    Ok(())
}

/// Fits the ratings of a run again and tells those who listen.
pub async fn refit(app: &App, run: &RunName) -> anyhow::Result<()> {
    let _one_at_a_time = app.fitting.lock().await;
    let begun = Instant::now();
    let (number, basis) = app.db.begin_fit(run).await?;
    let fitted = tokio::task::spawn_blocking(move || fit(&basis)).await??;
    let now = app.clock.now();
    let ratings = fitted.ratings();
    if !app.db.store_ratings(run, number, ratings, now).await? {
        // Another coordinator has fitted more games in the meantime, and told so.
        return Ok(());
    }
    metrics::histogram!("rookery_rating_fit_duration_seconds")
        .record(begun.elapsed().as_secs_f64());
    app.events.publish(Event::Ratings { run: run.clone() });
    let info = app.db.run(run).await?;
    let networks = app.db.networks_in_short(run).await?;
    let mut contenders = contenders(&networks);
    roll_back_if_likely(app, &info, &contenders).await?;
    let programs = programs(&networks);
    let most_informative = |contenders: &[Contender]| {
        let pairs = info.params.scheduling.rating_pairs;
        fitted.most_informative(contenders, 2 * u64::from(pairs))
    };
    let mut pair = None;
    if !programs.is_empty() {
        let meetings = meetings(app, &info, &programs).await?;
        if !meetings.are_due {
            contenders.retain(|one| !programs.contains(&one.number));
        } else if fitted.unrated(&contenders).is_none() {
            let program = next_program(&programs, &meetings.newest_first);
            pair = info.best.zip(program);
        }
    }
    let pair = pair.map(|(best, program)| (best.max(program), best.min(program)));
    let pair = pair.or_else(|| most_informative(&contenders));
    open_rating_match(app, &info, pair).await
}

/// Those of the networks that are built-in programs.
fn programs(networks: &[NetworkInfo]) -> BTreeSet<NetworkNumber> {
    let programs = networks.iter().filter(|info| info.spec.program().is_some());
    programs.map(|info| info.number).collect()
}

/// The programs' part in the last rating matches.
struct Meetings {
    newest_first: Vec<Meeting>,
    /// Whether a program plays the next match: their share of the last ones is below what the run wants. Left to what
    /// says most about the ratings, best would hardly meet them: a scale that its own kind has stretched expects that it
    /// wins every game.
    are_due: bool,
}

async fn meetings(
    app: &App,
    info: &RunInfo,
    programs: &BTreeSet<NetworkNumber>,
) -> anyhow::Result<Meetings> {
    let newest = MatchFilter::newest(&info.name, COUNTED);
    let matches = app.db.matches(&newest, app.clock.now()).await?;
    let rating = matches.iter().filter(|m| m.purpose == MatchPurpose::Rating);
    let (mut all, mut with, mut newest_first) = (0_u32, 0_u32, Vec::new());
    for m in rating {
        all += 1;
        let sides = [(m.candidate, m.tally.losses), (m.opponent, m.tally.wins)];
        let games = m.tally.wins + m.tally.draws + m.tally.losses;
        with += u32::from(sides.iter().any(|(one, _)| programs.contains(one)));
        let ours = sides.into_iter().filter(|(one, _)| programs.contains(one));
        newest_first.extend(ours.map(|(program, lost)| Meeting {
            program,
            is_lost: games > 0 && lost == games,
        }));
    }
    let share = f64::from(info.params.scheduling.anchor_share);
    Ok(Meetings {
        are_due: f64::from(with) < share * f64::from(all + 1),
        newest_first,
    })
}

/// Those of the networks that may play for the ratings, in ascending order.
fn contenders(networks: &[NetworkInfo]) -> Vec<Contender> {
    let mut contenders: Vec<Contender> = networks.iter().filter_map(Contender::of).collect();
    contenders.sort_unstable_by_key(|contender| contender.number);
    contenders
}

/// Makes an earlier network best again if the run wants that and the matches that have ended make it
/// likely enough that it is stronger. Of one that is still played, somebody may have sent only the
/// pairs that best has lost, and what was rolled back stays so when others have played the rest.
async fn roll_back_if_likely(
    app: &App,
    info: &RunInfo,
    contenders: &[Contender],
) -> anyhow::Result<()> {
    let (Some(threshold), Some(best)) = (info.params.rollback, info.best) else {
        return Ok(());
    };
    let run = &info.name;
    let basis = app.db.rating_basis_of_ended(run).await?;
    let fitted = tokio::task::spawn_blocking(move || fit(&basis)).await??;
    let been_best = contenders.iter().filter(|one| one.role == Role::BeenBest);
    let earlier = been_best
        .map(|one| one.number)
        .filter(|number| *number != best);
    let Some((to, superiority)) = fitted.likeliest_above(best, earlier) else {
        return Ok(());
    };
    if superiority < threshold {
        return Ok(());
    }
    let rollback = Rollback {
        from: best,
        to,
        reason: format!(
            "which is stronger with a likelihood of {superiority:.6} by all matches that have ended"
        ),
    };
    let by = Actor::new("coordinator", app.clock.now());
    for event in app.db.roll_back(run, rollback, by).await? {
        tracing::warn!(%run, from = best.0, to = to.0, superiority, "Best was rolled back.");
        app.events.publish(event);
    }
    Ok(())
}

/// Opens a match for the ratings, if the run wants that and none is open.
async fn open_rating_match(
    app: &App,
    info: &RunInfo,
    pair: Option<(NetworkNumber, NetworkNumber)>,
) -> anyhow::Result<()> {
    let pairs = info.params.scheduling.rating_pairs;
    if pairs == 0 || info.status != RunStatus::Open {
        return Ok(());
    }
    let Some((candidate, opponent)) = pair else {
        return Ok(());
    };
    let draft = MatchDraft {
        run: info.name.clone(),
        candidate,
        opponent,
        pairs,
        seed: random::seed()?,
    };
    let opened = app.db.open_next_rating(draft, app.clock.now()).await?;
    if let Some(id) = opened {
        let (run, id) = (&info.name, id.0);
        tracing::info!(%run, id, candidate = candidate.0, opponent = opponent.0, pairs,
            "A rating match was opened.");
    }
    Ok(())
}
