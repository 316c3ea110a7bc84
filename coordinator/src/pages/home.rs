//! The list of runs, and what is happening in one now.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{GameInfo, MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::runs::{RunInfo, RunStatus};

use super::chart::{Size, View};
use super::error::PageError;
use super::featured::{self, Featured};
use super::join::worker_command;
use super::layout::{DESCRIPTION, Layout, Page, Tab, page};
use super::live_board::Figure;
use super::networks::{Over, cut_off, format_title, rating_chart};
use super::rating_scale::RatingScale;
use super::rows::{GameRow, MatchRow, WorkerRow};
use super::{PagesState, text};
use crate::db::{DbError, GameFilter, Intake, MatchFilter, MatchGroup, SharedDatabase};
use crate::server::address::Address;

/// The span over which rates are taken and in which a worker counts as active.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Games on the overview.
const LATEST_GAMES: u32 = 8;

/// Workers on the overview, those last heard.
const WORKERS: u32 = 50;

/// Matches of each purpose among which those that are being played are looked for.
const LATEST_MATCHES: u32 = 20;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    layout: Layout,
    cards: Vec<RunCard>,
    archived: Vec<RunInfo>,
}

struct RunCard {
    run: RunInfo,
    best: Option<NetworkInfo>,
    /// Networks of the run itself, without anchors.
    networks: u64,
    games_per_minute: f64,
    trainer: Option<String>,
    chart: Option<String>,
    scale: RatingScale,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: Layout,
    address: Address,
    worker_command: String,
    boards: Vec<Figure>,
    /// What scripts copy for another one.
    frame: Figure,
    run: RunInfo,
    best: Option<NetworkInfo>,
    games_per_minute: f64,
    positions_per_minute: f64,
    evals_per_second: f64,
    workers: Vec<WorkerRow>,
    all_workers: u64,
    /// Those of them that are not listed.
    other_workers: u64,
    gate: Option<MatchRow>,
    decided: Option<MatchRow>,
    /// What workers do while no candidate is tested.
    activity: &'static str,
    /// How far the next candidate is.
    progress: String,
    trainer: Option<String>,
    chart: Option<String>,
    /// Networks on the chart, if it leaves out older ones.
    newest: Option<u32>,
    scale: RatingScale,
    games: Vec<GameRow>,
    featured: Option<Featured>,
}

/// `GET /`: the only run's overview, or all runs.
pub(super) async fn index(State(state): State<PagesState>, address: Address) -> Page {
    let runs = state.db.runs().await?;
    let mut open = runs.iter().filter(|run| run.archived_at.is_none());
    if let (Some(only), None) = (open.next(), open.next()) {
        return overview(&state, only.clone(), address).await;
    }
    render_runs(&state, runs, &address).await
}

/// `GET /runs`: all runs, also if there is only one.
pub(super) async fn list(State(state): State<PagesState>, address: Address) -> Page {
    render_runs(&state, state.db.runs().await?, &address).await
}

/// The newest games of a run. A chunk of puzzles would fill the list: they are on a page of their own, and here while there
/// is nothing else.
async fn latest_games(db: &SharedDatabase, run: &RunName) -> Result<Vec<GameInfo>, DbError> {
    let of = |kind| {
        db.games(GameFilter {
            run: Some(run.clone()),
            kind,
            limit: LATEST_GAMES,
            ..GameFilter::default()
        })
    };
    let mut games = of(Some(WorkKind::SelfPlay)).await?;
    games.extend(of(Some(WorkKind::Match)).await?);
    if games.is_empty() {
        return of(None).await;
    }
    games.sort_unstable_by_key(|game| std::cmp::Reverse(game.id));
    games.truncate(LATEST_GAMES as usize);
    Ok(games)
}

async fn render_runs(state: &PagesState, runs: Vec<RunInfo>, address: &Address) -> Page {
    let is_archived = |run: &RunInfo| run.archived_at.is_some();
    let (archived, open): (Vec<_>, Vec<_>) = runs.into_iter().partition(is_archived);
    let mut cards = Vec::with_capacity(open.len());
    for run in open {
        cards.push(card(state, run).await?);
    }
    page(&RunsPage {
        layout: Layout::plain(&state.presentation, "Runs").pictured(address),
        cards,
        archived,
    })
}

async fn card(state: &PagesState, run: RunInfo) -> Result<RunCard, PageError> {
    let now = state.now();
    let networks = state.db.networks_in_short(&run.name).await?;
    let intake = state.db.intake(&run.name, recent(now)).await?;
    Ok(RunCard {
        games_per_minute: intake.games as f64 / minutes_of(&run, now),
        trainer: run
            .last_report
            .as_ref()
            .map(|report| text::ago(now, &report.at)),
        chart: rating_chart(&run.name, &networks, Over::Numbers, Size::Half, View::Fixed)?,
        scale: RatingScale::of(&networks),
        networks: networks.iter().filter(|info| info.anchor.is_none()).count() as u64,
        best: best_of(&run, networks),
        run,
    })
}

fn best_of(run: &RunInfo, networks: Vec<NetworkInfo>) -> Option<NetworkInfo> {
    let mut networks = networks.into_iter();
    networks.find(|network| Some(network.number) == run.best)
}

/// When the span began over which rates are taken.
fn recent(now: Timestamp) -> Timestamp {
    now.saturating_sub(RECENT).unwrap_or(now)
}

/// `GET /runs/{run}`
pub(super) async fn run(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.db.run(&name).await?;
    overview(&state, run, address).await
}

/// `GET /runs/{run}/`: the same page has one address.
pub(super) async fn without_slash(name: Result<Path<RunName>, PathRejection>) -> Page {
    let Path(name) = name?;
    Ok(Redirect::permanent(&format!("/runs/{name}")).into_response())
}

async fn overview(state: &PagesState, run: RunInfo, address: Address) -> Page {
    let now = state.now();
    let since = recent(now);
    let db = &state.db;
    let networks = db.networks_in_short(&run.name).await?;
    let intake = db.intake(&run.name, since).await?;
    let workers = db.workers(Some(&run.name), since, WORKERS).await?;
    let newest = async |group| {
        let filter = MatchFilter {
            group: Some(group),
            ..MatchFilter::newest(&run.name, LATEST_MATCHES)
        };
        db.matches(&filter, now).await
    };
    let gates = newest(MatchGroup::Gates).await?;
    let is_open = |info: &&MatchInfo| info.status == MatchStatus::Open;
    let open = gates.iter().rfind(is_open);
    let decided = gates.iter().find(|info| !is_open(info));
    let ratings = newest(MatchGroup::Ratings).await?;
    let is_rating = ratings.iter().any(|info| info.pairs_playing > 0);
    let games = latest_games(db, &run.name).await?;
    let featured = match run.best {
        Some(best) => featured::find(state, &run.name, best).await?,
        None => None,
    };
    let minutes = minutes_of(&run, now);
    let boards = state.live_boards.of(&run.name, now);
    page(&HomePage {
        layout: Layout::of(&state.presentation, &run, Tab::Overview)
            .described(&run.description)
            .pictured(&address),
        worker_command: worker_command(state.registration, &address, &run.name),
        address,
        boards: boards.into_iter().filter_map(Figure::of).collect(),
        frame: Figure::empty(),
        games_per_minute: intake.games as f64 / minutes,
        positions_per_minute: intake.positions as f64 / minutes,
        evals_per_second: workers.evals_per_second,
        all_workers: workers.all,
        other_workers: workers.all.saturating_sub(workers.last_heard.len() as u64),
        workers: workers
            .last_heard
            .into_iter()
            .map(|worker| WorkerRow::new(worker, now))
            .collect(),
        activity: activity(&run, &intake, workers.all, is_rating),
        progress: progress(&run, &networks),
        newest: cut_off(&networks),
        gate: open.map(|info| MatchRow::new(info, now)),
        decided: decided.map(|info| MatchRow::new(info, now)),
        trainer: run
            .last_report
            .as_ref()
            .map(|report| text::reported(now, report)),
        chart: rating_chart(&run.name, &networks, Over::Numbers, Size::Half, View::Fixed)?,
        scale: RatingScale::of(&networks),
        games: GameRow::all(games, now),
        featured,
        best: best_of(&run, networks),
        run,
    })
}

/// What workers do while no candidate is tested.
const fn activity(run: &RunInfo, intake: &Intake, workers: u64, is_rating: bool) -> &'static str {
    match run.status {
        _ if run.archived_at.is_some() => {
            "The run is archived: no more games are played for it, and those that were played stay."
        }
        RunStatus::Paused => "The run is paused: workers get no games to play.",
        RunStatus::Open if intake.games > 0 && is_rating => {
            "Workers are playing training games with the best network, and a match for the ratings."
        }
        RunStatus::Open if intake.games > 0 => {
            "Workers are playing training games with the best network."
        }
        RunStatus::Open if workers > 0 => {
            "Workers are connected, but no game came in during the last ten minutes."
        }
        RunStatus::Open => "No worker is playing.",
    }
}

/// How far the next candidate is: the trainer submits one after so many new positions. Empty if the run has ended.
fn progress(run: &RunInfo, networks: &[NetworkInfo]) -> String {
    if run.archived_at.is_some() {
        return String::new();
    }
    let each = run.params.training.positions_per_candidate;
    let own = networks.iter().filter(|info| info.anchor.is_none());
    let mut submitted = own.filter_map(|info| Some((info.number, info.positions?)));
    let Some((newest, before)) = submitted.next() else {
        let each = text::count(each);
        return format!("The trainer submits a candidate after every {each} new positions.");
    };
    let since = run.training_positions.saturating_sub(before);
    if since >= each {
        let since = text::count(since);
        return format!(
            "{since} new positions have been played since network #{newest}, enough for the trainer to submit the next candidate."
        );
    }
    format!(
        "{} of {} new positions have been played since network #{newest}; then the trainer submits the next candidate.",
        text::count(since),
        text::count(each)
    )
}

/// Minutes over which recent work came in: less than the span while the run is young.
fn minutes_of(run: &RunInfo, now: Timestamp) -> f64 {
    let age = run
        .created_at
        .parse()
        .map_or(RECENT, |created| now.duration_since(created));
    age.min(RECENT).as_secs_f64().max(60.0) / 60.0
}
