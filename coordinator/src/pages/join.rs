//! How to join a run: the command, what it takes, how to stop.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use rookery_common::rating::gate::GateRule;

use super::PagesState;
use super::layout::{Layout, Page, Tab, page};
use crate::config::{PageUrl, Registration, System};
use crate::server::address::Address;

#[derive(Template)]
#[template(path = "join.html")]
struct JoinPage {
    layout: Layout,
    address: Address,
    registration: Registration,
    /// The systems that the operator has the worker for, with its addresses.
    offers: Vec<(System, PageUrl)>,
    /// Where it is for all others.
    any: Option<PageUrl>,
    /// Where nothing else helps: the systems on which volunteers build it themselves.
    builds: Vec<System>,
    source: Option<PageUrl>,
    worker_command: String,
    visitors: System,
    /// Whether a network must win a match.
    has_gate: bool,
    run: RunInfo,
}

impl System {
    /// All of them, first the one that a browser says it runs on.
    fn of_visitor(headers: &HeaderMap) -> [Self; 3] {
        let agent = headers.get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or("");
        if agent.contains("Windows") {
            [Self::Windows, Self::Linux, Self::MacOs]
        } else if agent.contains("Mac OS") {
            [Self::MacOs, Self::Linux, Self::Windows]
        } else {
            [Self::Linux, Self::MacOs, Self::Windows]
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::MacOs => "macOS",
            Self::Windows => "Windows",
        }
    }

    /// What gives the system a C compiler.
    const fn compiler(self) -> &'static str {
        match self {
            Self::Linux => "sudo apt install build-essential",
            Self::MacOs => "xcode-select --install",
            Self::Windows => {
                "winget install Microsoft.VisualStudio.2022.BuildTools --override \"--wait --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended\""
            }
        }
    }

    /// Where the build leaves the worker.
    const fn program(self) -> &'static str {
        match self {
            Self::Linux | Self::MacOs => "target/release/rookery-worker",
            Self::Windows => r"target\release\rookery-worker.exe",
        }
    }
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
        // The operator who gives the token has given the name.
        Registration::Closed => format!("{command} --token-file TOKEN-FILE"),
    }
}

/// `GET /runs/{run}/join`
pub(super) async fn how(
    State(state): State<PagesState>,
    address: Address,
    headers: HeaderMap,
    name: Result<Path<RunName>, PathRejection>,
) -> Page {
    let Path(name) = name?;
    let run = state.db.run(&name).await?;
    let (systems, sources) = (System::of_visitor(&headers), &state.worker_sources);
    page(&JoinPage {
        layout: Layout::of(&state.presentation, &run, Tab::Join)
            .described(&run.description)
            .pictured(&address),
        visitors: systems[0],
        offers: systems
            .into_iter()
            .filter_map(|system| Some((system, sources.of(system)?.clone())))
            .collect(),
        any: sources.any().cloned(),
        builds: systems
            .into_iter()
            .filter(|system| sources.any().is_none() && sources.of(*system).is_none())
            .collect(),
        worker_command: worker_command(state.registration, &address, &name),
        has_gate: run.params.gate != GateRule::None,
        run,
        registration: state.registration,
        source: state.source.clone(),
        address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_visitors_system_comes_first() {
        let first = |agent: &'static str| {
            let headers = HeaderMap::from_iter([(header::USER_AGENT, agent.parse().unwrap())]);
            System::of_visitor(&headers)[0]
        };
        assert_eq!(
            first("Mozilla/5.0 (Windows NT 10.0; Win64; x64)"),
            System::Windows
        );
        assert_eq!(
            first("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"),
            System::MacOs
        );
        assert_eq!(first("Mozilla/5.0 (X11; Linux x86_64)"), System::Linux);
        assert_eq!(System::of_visitor(&HeaderMap::new())[0], System::Linux);
    }
}
