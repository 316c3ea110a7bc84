//! A board against the run's networks and the one that comes with Rookery, which the visitor's own machine computes.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, header};
use axum::response::IntoResponse as _;
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::networks::NetworkInfo;
use serde::Deserialize;

use super::PagesState;
use super::bundle::{self, Entry};
use super::included;
use super::layout::{Layout, Page, Tab, page};
use super::networks::was_best;
use super::text;
use crate::server::address::Address;

/// As that of all pages; besides, a web worker of the coordinator's own may compile WebAssembly.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; \
    script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Browsers give threads of WebAssembly shared memory on pages that are isolated from other origins.
pub(super) const ISOLATION: [(HeaderName, &str); 2] = [
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    ),
];

/// Networks to choose from, the newest.
const NETWORKS: usize = 200;

/// What the best network is called in addresses.
const BEST: &str = "best";

/// What stands after the question mark; the board itself reads `game`, `ply` and `fen`.
#[derive(Debug, Deserialize)]
pub(super) struct PlayQuery {
    /// The opponent: a number, or `small`, which comes with Rookery; the best network with `best`, nothing or
    /// without it.
    network: Option<String>,
}

#[derive(Template)]
#[template(path = "play.html")]
struct PlayPage {
    layout: Layout,
    run: RunName,
    entry: Option<Entry>,
    opponents: Vec<Opponent>,
    /// What was asked for and is no network.
    unknown: Option<String>,
    /// Where the network that comes with Rookery is, as JSON.
    included: Option<&'static str>,
    plays_included: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Opponent {
    number: NetworkNumber,
    label: String,
    chosen: bool,
}

/// `GET /runs/{run}/play`
pub(super) async fn board(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<PlayQuery>, QueryRejection>,
) -> Page {
    let (Path(name), Query(query)) = (name?, query?);
    let run = state.db.run(&name).await?;
    let networks = state.db.networks_in_short(&name).await?;
    let wanted = query
        .network
        .filter(|name| !name.is_empty() && name != BEST);
    let number = wanted.as_deref().and_then(|text| text.parse().ok());
    let opponents = opponents(&networks, run.best, number);
    let plays_included = wanted.as_deref() == Some(included::NAME);
    let is_known = opponents.iter().any(|one| Some(one.number) == number);
    let answer = page(&PlayPage {
        layout: Layout::of(&state.presentation, &run, Tab::Play).pictured(&address),
        entry: bundle::entry(),
        plays_included: plays_included || opponents.is_empty(),
        unknown: wanted.filter(|_| !is_known && !plays_included),
        opponents,
        included: included::file(),
        run: name,
    })?;
    let policy = [(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY)];
    Ok((policy, ISOLATION, answer).into_response())
}

/// The newest networks, the best and the wanted one; programs are none. The best comes first, those that have not been
/// best last.
fn opponents(
    networks: &[NetworkInfo],
    best: Option<NetworkNumber>,
    wanted: Option<NetworkNumber>,
) -> Vec<Opponent> {
    let is_network = |info: &&NetworkInfo| info.spec.program().is_none();
    let known = |number: &NetworkNumber| {
        let mut numbers = networks.iter().filter(is_network).map(|info| info.number);
        numbers.any(|other| other == *number)
    };
    let chosen = wanted.filter(known).or(best);
    let listed = networks.iter().filter(is_network).enumerate();
    let mut listed: Vec<_> = listed
        .filter(|(place, info)| *place < NETWORKS || [best, chosen].contains(&Some(info.number)))
        .map(|(_, info)| info)
        .collect();
    let has_been_best = |info: &NetworkInfo| was_best(info) || info.anchor.is_some();
    listed.sort_by_key(|info| (Some(info.number) != best, !has_been_best(info)));
    let opponent = |info: &NetworkInfo| Opponent {
        number: info.number,
        label: label(info, best),
        chosen: Some(info.number) == chosen,
    };
    listed.into_iter().map(opponent).collect()
}

fn label(info: &NetworkInfo, best: Option<NetworkNumber>) -> String {
    let name = info.anchor.as_ref().map(|name| format!(" {name}"));
    let mark = if Some(info.number) == best {
        ", the best"
    } else {
        ""
    };
    let (number, shape) = (info.number, info.spec.shape());
    let at = text::minute(&info.submitted_at);
    // A closed list shows the first 20 to 35 letters.
    format!("#{number}{}, {at}{mark}, {shape}", name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::networks::NetworkStatus;

    use super::*;
    use crate::pages::story::tests::network;

    #[test]
    fn the_best_network_comes_first_and_candidates_last() {
        let of = |number, status| NetworkInfo {
            status,
            ..network(number, 0.0, None)
        };
        let networks = [
            of(4, NetworkStatus::Candidate),
            of(3, NetworkStatus::Promoted),
            of(2, NetworkStatus::Rejected),
            of(1, NetworkStatus::Promoted),
            of(0, NetworkStatus::Initial),
        ];
        let listed = opponents(&networks, Some(NetworkNumber(1)), None);
        let numbers: Vec<_> = listed.iter().map(|one| one.number.0).collect();
        assert_eq!(numbers, [1, 3, 0, 4, 2]);
        assert_eq!(
            listed[0].label, "#1, 2030-01-02 00:00 UTC, the best, 1x8",
            "a network is known by its date"
        );
    }
}
