//! Who plays for a run.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::people::ContributorInfo;

use super::address::Address;
use super::layout::{Layout, Page, Tab, page};
use super::{PagesState, text};

#[derive(Template)]
#[template(path = "contributors.html")]
struct ContributorsPage {
    layout: Layout,
    address: Address,
    run: RunName,
    contributors: Vec<ContributorRow>,
}

struct ContributorRow {
    info: ContributorInfo,
    seen: String,
    joined: String,
}

/// `GET /runs/{run}/contributors`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(run) = name?;
    state.store.run(&run).await?;
    let now = state.now();
    let contributors = state.store.contributors(Some(&run), now).await?;
    let row = |info: ContributorInfo| ContributorRow {
        seen: info
            .last_seen
            .as_deref()
            .map_or_else(|| "–".to_owned(), |at| text::ago(now, at)),
        joined: text::ago(now, &info.joined_at),
        info,
    };
    let contributors = contributors.into_iter().map(row).collect();
    page(&ContributorsPage {
        layout: Layout::of(&run, Tab::Contributors),
        address,
        run,
        contributors,
    })
}
