//! The list of runs, and what is happening in one now.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::RunName;
use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::runs::RunInfo;

use super::address::Address;
use super::chart::Size;
use super::layout::{Layout, Page, Tab, page};
use super::networks::{Over, rating_chart};
use super::rows::{GameRow, MatchRow, WorkerRow};
use super::scale::Scale;
use super::{PagesState, text};
use crate::store::GameFilter;

/// The span over which rates are taken and in which a worker counts as active.
const RECENT: SignedDuration = SignedDuration::from_mins(10);

/// Games on the overview.
const LATEST_GAMES: u32 = 8;

/// Workers on the overview, those last heard.
const WORKERS: u32 = 50;

/// Matches among which the one that is being played is looked for.
const LATEST_MATCHES: u32 = 50;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    layout: Layout,
    runs: Vec<RunInfo>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    layout: Layout,
    address: Address,
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
    trainer: Option<String>,
    chart: Option<String>,
    scale: Scale,
    games: Vec<GameRow>,
}

/// `GET /`: the only run's overview, or all runs.
pub(super) async fn index(State(state): State<PagesState>, address: Address) -> Page {
    let mut runs = state.store.runs().await?;
    if runs.len() == 1
        && let Some(only) = runs.pop()
    {
        return overview(&state, only, address).await;
    }
    all(runs)
}

/// `GET /runs`: all runs, also if there is only one.
pub(super) async fn list(State(state): State<PagesState>) -> Page {
    all(state.store.runs().await?)
}

fn all(runs: Vec<RunInfo>) -> Page {
    page(&RunsPage {
        layout: Layout::plain(),
        runs,
    })
}

/// `GET /runs/{run}`
pub(super) async fn run(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.store.run(&name).await?;
    overview(&state, run, address).await
}

/// `GET /runs/{run}/`: the same page has one address.
pub(super) async fn without_slash(name: Result<Path<RunName>, PathRejection>) -> Page {
    let Path(name) = name?;
    Ok(Redirect::permanent(&format!("/runs/{name}")).into_response())
}

async fn overview(state: &PagesState, run: RunInfo, address: Address) -> Page {
    let now = state.now();
    let since = now.saturating_sub(RECENT).unwrap_or(now);
    let store = &state.store;
    let networks = store.networks_in_short(&run.name).await?;
    let intake = store.intake(&run.name, since).await?;
    let workers = store.workers(since, WORKERS).await?;
    let matches = store.matches(&run.name, None, LATEST_MATCHES).await?;
    let gates = || {
        let all = matches.iter();
        all.filter(|info| info.purpose == MatchPurpose::Gate)
    };
    let open = gates().rfind(|info| info.status == MatchStatus::Open);
    let decided = gates().find(|info| info.status != MatchStatus::Open);
    let filter = GameFilter {
        run: Some(run.name.clone()),
        limit: LATEST_GAMES,
        ..GameFilter::default()
    };
    let games = store.games(filter).await?;
    let minutes = minutes_of(&run, now);
    page(&HomePage {
        layout: Layout::of(&run.name, Tab::Overview),
        address,
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
        gate: open.map(|info| MatchRow::new(info, now)),
        decided: decided.map(|info| MatchRow::new(info, now)),
        trainer: run
            .last_report
            .as_ref()
            .map(|report| text::reported(now, report)),
        chart: rating_chart(&run.name, &networks, Over::Numbers, Size::Half)?,
        scale: Scale::of(&networks),
        games: GameRow::all(games, now),
        best: networks
            .into_iter()
            .find(|network| Some(network.number) == run.best),
        run,
    })
}

/// Minutes over which recent work came in: less than the span while the run is young.
fn minutes_of(run: &RunInfo, now: Timestamp) -> f64 {
    let age = run
        .created_at
        .parse()
        .map_or(RECENT, |created| now.duration_since(created));
    age.min(RECENT).as_secs_f64().max(60.0) / 60.0
}
