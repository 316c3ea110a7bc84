//! A contributor's own page: what they gave, their workers, their newest games.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::{Credit, is_user_name};

use super::error::PageError;
use super::layout::{Layout, Page, Tab, page};
use super::rows::{GameRow, WorkerRow};
use super::{PagesState, text};
use crate::api::games::listed;
use crate::store::GameFilter;

/// Games on the page.
const LATEST_GAMES: u32 = 10;

#[derive(Template)]
#[template(path = "contributor.html")]
struct ContributorPage {
    layout: Layout,
    run: RunName,
    name: String,
    joined: String,
    seen: Option<String>,
    /// What was counted in each span of time.
    credit: Vec<(&'static str, Credit)>,
    workers: Vec<WorkerRow>,
    games: Vec<GameRow>,
}

/// `GET /runs/{run}/contributors/{name}`
pub(super) async fn one(
    State(state): State<PagesState>,
    path: Result<Path<(RunName, String)>, PathRejection>,
) -> Page {
    let Path((run, name)) = path?;
    if !is_user_name(&name) {
        return Err(PageError::not_found("Nobody has such a name."));
    }
    let now = state.now();
    let found = state.store.contributor(&name, Some(&run), now).await?;
    let filter = GameFilter {
        run: Some(run.clone()),
        contributor: Some(name),
        limit: LATEST_GAMES,
        ..GameFilter::default()
    };
    let games = listed(&state.store, &state.listing, filter).await?;
    let info = found.info;
    let credit = found.credit.into_iter();
    let workers = found.workers.into_iter();
    page(&ContributorPage {
        layout: Layout::of(&run, Tab::Contributors),
        joined: text::ago(now, &info.joined_at),
        seen: info.last_seen.map(|at| text::ago(now, &at)),
        credit: credit
            .map(|given| (text::span(given.span), given.credit))
            .collect(),
        workers: workers.map(|worker| WorkerRow::new(worker, now)).collect(),
        games: GameRow::all(games, now),
        name: info.name,
        run,
    })
}
