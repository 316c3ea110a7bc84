//! How to join a run: the command, what it takes, how to stop.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use rookery_common::rating::gate::GateRule;

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
    worker_command: String,
    /// Whether a network must win a match.
    has_gate: bool,
    run: RunInfo,
}

/// The command that lets a machine play. What a person fills in is in capitals.
pub(super) fn worker_command(
    registration: Registration,
    address: &Address,
    run: &RunName,
) -> String {
    let command = format!("rookery-worker run --server {address} --run {run}");
    match registration {
        Registration::Open => format!("{command} --name YOUR-NAME"),
        Registration::Invitation => format!("{command} --name YOUR-NAME --invitation CODE"),
        // Whoever gives the token has given the name.
        Registration::Closed => format!("ROOKERY_TOKEN=TOKEN {command}"),
    }
}

/// `GET /runs/{run}/join`
pub(super) async fn how(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.db.run(&name).await?;
    page(&JoinPage {
        layout: Layout::of(&state.presentation, &run, Tab::Join).described(&run.description),
        worker_command: worker_command(state.registration, &address, &name),
        has_gate: run.params.gate != GateRule::None,
        run,
        registration: state.registration,
        worker_source: state.worker_source,
        address,
    })
}
