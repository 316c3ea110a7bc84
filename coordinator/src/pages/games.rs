//! The games of a run, newest first, page by page.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::{GameId, NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;
use rookery_common::protocol::people::is_user_name;
use rookery_common::protocol::user_name::in_url;
use serde::Deserialize;

use super::PagesState;
use super::address::Address;
use super::error::PageError;
use super::join::worker_command;
use super::layout::{Choice, Layout, Page, Tab, page};
use super::rows::GameRow;
use crate::api::games::listed;
use crate::db::GameFilter;

/// Games on a page.
const GAMES: u32 = 50;

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct GamesQuery {
    /// Only games before this one.
    pub(super) before: Option<GameId>,
    /// Only games of this kind.
    pub(super) kind: Option<WorkKind>,
    /// Only games that this contributor sent.
    pub(super) contributor: Option<String>,
    /// Only games in which this network plays.
    pub(super) network: Option<NetworkNumber>,
}

#[derive(Template)]
#[template(path = "games.html")]
struct GamesPage {
    layout: Layout,
    worker_command: String,
    run: RunName,
    contributor: Option<String>,
    network: Option<NetworkNumber>,
    choices: Vec<Choice>,
    games: Vec<GameRow>,
    /// Where the newest of them are a file.
    file: String,
    next: Option<String>,
}

/// `GET /runs/{run}/games`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<GamesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    let info = state.db.run(&run).await?;
    let contributor = query.contributor.as_deref();
    if contributor.is_some_and(|name| !is_user_name(name)) {
        return Err(PageError::not_found("No contributor has this name."));
    }
    let filter = GameFilter {
        run: Some(run.clone()),
        kind: query.kind,
        contributor: query.contributor.clone(),
        network: query.network,
        before: query.before,
        limit: GAMES,
        ..GameFilter::default()
    };
    let games = listed(&state.db, &state.listing, filter).await?;
    let path = format!("/runs/{run}/games");
    let chosen = filters(&query, query.kind);
    page(&GamesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Games),
        worker_command: worker_command(state.registration, &address, &run),
        choices: choices(&path, &query),
        file: format!("/api/v1/games/pgn?{chosen}run={run}"),
        next: next_page(&games, GAMES, &path, &chosen),
        games: GameRow::all(games, state.now()),
        contributor: query.contributor,
        network: query.network,
        run,
    })
}

/// The part of an address that chooses games, to which more can be added.
fn filters(query: &GamesQuery, kind: Option<WorkKind>) -> String {
    let by = query.contributor.as_ref();
    let by = by.map(|name| format!("contributor={}&", in_url(name)));
    let with = query.network.map(|number| format!("network={number}&"));
    let of = kind.map(|kind| format!("kind={}&", kind.name()));
    [by, with, of].into_iter().flatten().collect()
}

fn choices(path: &str, query: &GamesQuery) -> Vec<Choice> {
    let all = [
        ("all", None),
        ("self-play", Some(WorkKind::SelfPlay)),
        ("puzzles", Some(WorkKind::Puzzles)),
        ("matches", Some(WorkKind::Match)),
    ];
    let href = |kind| {
        let address = format!("{path}?{}", filters(query, kind));
        address.trim_end_matches(['?', '&']).to_owned()
    };
    all.map(|(name, kind)| Choice {
        name,
        href: href(kind),
        current: kind == query.kind,
    })
    .into()
}

/// The address of the games before these, if this page is full.
pub(super) fn next_page(games: &[GameInfo], limit: u32, path: &str, query: &str) -> Option<String> {
    let last = games.last().filter(|_| games.len() >= limit as usize)?;
    Some(format!("{path}?{query}before={}", last.id))
}
