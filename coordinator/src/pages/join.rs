//! How to join a run: the command, what it takes, how to stop.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::{RunInfo, RunStatus};

use super::PagesState;
use super::address::Address;
use super::layout::{Layout, Page, Tab, page};
use crate::config::{Registration, WorkerSource};

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    layout: Layout,
    address: Address,
    registration: Registration,
    worker_source: Option<WorkerSource>,
    run: RunInfo,
}

/// `GET /runs/{run}/join`
pub(super) async fn how(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    page(&JoinPage {
        layout: Layout::of(&name, Tab::Join),
        run: state.store.run(&name).await?,
        registration: state.registration,
        worker_source: state.worker_source,
        address,
    })
}
