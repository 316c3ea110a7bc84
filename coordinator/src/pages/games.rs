//! The games of a run, newest first, page by page.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::{GameId, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;
use serde::Deserialize;

use super::PagesState;
use super::layout::{Layout, Page, Tab, page};
use super::rows::GameRow;
use crate::store::GameFilter;

/// Games on a page.
const GAMES: u32 = 50;

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct GamesQuery {
    /// Only games before this one.
    pub(super) before: Option<GameId>,
    /// Only games of this kind.
    pub(super) kind: Option<WorkKind>,
}

#[derive(Template)]
#[template(path = "games.html")]
struct GamesPage {
    layout: Layout,
    run: RunName,
    choices: Vec<Choice>,
    games: Vec<GameRow>,
    next: Option<String>,
}

struct Choice {
    name: &'static str,
    href: String,
    current: bool,
}

/// `GET /runs/{run}/games`
pub(super) async fn list(
    State(state): State<PagesState>,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<GamesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    state.store.run(&run).await?;
    let filter = GameFilter {
        run: Some(run.clone()),
        kind: query.kind,
        before: query.before,
        limit: GAMES,
        ..GameFilter::default()
    };
    let games = state.store.games(filter).await?;
    let path = format!("/runs/{run}/games");
    let kind = query
        .kind
        .map_or_else(String::new, |kind| format!("kind={}&", kind.name()));
    page(&GamesPage {
        layout: Layout::of(&run, Tab::Games),
        choices: choices(&path, query.kind),
        next: next_page(&games, GAMES, &path, &kind),
        games: GameRow::all(games, state.now()),
        run,
    })
}

fn choices(path: &str, chosen: Option<WorkKind>) -> Vec<Choice> {
    let all = [
        ("all", None),
        ("self-play", Some(WorkKind::SelfPlay)),
        ("puzzles", Some(WorkKind::Puzzles)),
        ("matches", Some(WorkKind::Match)),
    ];
    let href = |kind: Option<WorkKind>| match kind {
        Some(kind) => format!("{path}?kind={}", kind.name()),
        None => path.to_owned(),
    };
    all.map(|(name, kind)| Choice {
        name,
        href: href(kind),
        current: kind == chosen,
    })
    .into()
}

/// The address of the games before these, if this page is full.
pub(super) fn next_page(games: &[GameInfo], limit: u32, path: &str, query: &str) -> Option<String> {
    let last = games.last().filter(|_| games.len() >= limit as usize)?;
    Some(format!("{path}?{query}before={}", last.id))
}
