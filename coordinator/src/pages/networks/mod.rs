//! The networks of a run with their ratings, and each network's own page.

mod list;
mod ratings;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::network::{NetworkSpec, PolicyHead, Program, ValueHead};
use rookery_common::protocol::networks::{
    ExportFormat, NetworkInfo, NetworkName, PuzzleGroup, PuzzleScore,
};

pub(super) use list::{list, paginate};
pub(super) use ratings::{
    ELO_SPAN, Over, anchor_lines, cut_off, rating_chart, rating_data, was_best,
};

use super::error::PageError;
use super::layout::{Layout, Page, Tab, page};
use super::rating_scale::RatingScale;
use super::rows::{GameRow, MatchRow};
use super::{PagesState, text};
use crate::db::GameFilter;
use crate::server::address::Address;

/// Games on a network's page.
const LATEST_GAMES: u32 = 10;

#[derive(Template)]
#[template(path = "network.html")]
struct NetworkPage {
    layout: Layout,
    address: Address,
    download: String,
    /// What it does, if it is no network.
    program: Option<String>,
    input: &'static str,
    policy: String,
    value: String,
    parent: Option<Parent>,
    ago: String,
    gate: Option<MatchRow>,
    puzzles: Option<PuzzleScore>,
    groups: Vec<(&'static str, Vec<PuzzleGroup>)>,
    games: Vec<GameRow>,
    scale: RatingScale,
    best: bool,
    neighbours: [Option<NetworkNumber>; 2],
    info: NetworkInfo,
}

/// The network from which training started.
struct Parent {
    hash: String,
    number: Option<NetworkNumber>,
}

/// `GET /runs/{run}/networks/{number}`; `best` and a SHA-256 lead there.
pub(super) async fn one(
    State(state): State<PagesState>,
    address: Address,
    path: Result<Path<(RunName, String)>, PathRejection>,
) -> Page {
    let Path((run, name)) = path?;
    let unknown = |_| PageError::not_found("No network has such a name.");
    let name: NetworkName = name.parse().map_err(unknown)?;
    let db = &state.db;
    let info = db.network(&run, name).await?;
    let number = info.number;
    if name != NetworkName::Number(number) {
        let page = format!("/runs/{run}/networks/{number}");
        return Ok(Redirect::temporary(&page).into_response());
    }
    let now = state.now();
    let gate = match info.gate {
        Some(id) => Some(MatchRow::new(&db.match_info(id, now).await?, now)),
        None => None,
    };
    let (network, limit) = (Some(number), LATEST_GAMES);
    let filter = GameFilter {
        run: Some(run.clone()),
        network,
        limit,
        ..GameFilter::default()
    };
    let games = GameRow::all(db.games(filter).await?, now);
    let puzzles = info.puzzles.clone().filter(|score| score.tried > 0);
    let networks = db.networks_in_short(&run).await?;
    let of = db.run(&run).await?;
    page(&NetworkPage {
        layout: Layout::of(&state.presentation, &of, Tab::Networks)
            .pictured(&address)
            .titled(format!("Network {number} of {run}")),
        address,
        download: format!("/api/v1/networks/{}/file", info.hash),
        program: info.spec.program().map(explained),
        input: info.spec.input.name(),
        policy: policy(&info.spec),
        value: value(&info.spec),
        parent: parent(&networks, &info),
        ago: text::ago(now, &info.submitted_at),
        gate,
        groups: puzzles.as_ref().map_or_else(Vec::new, groups),
        best: of.best == Some(number),
        neighbours: neighbours(&networks, number),
        puzzles,
        games,
        scale: RatingScale::of(&networks),
        info,
    })
}

/// Scores by theme and by rating. Puzzles that were mined have no rating.
fn groups(score: &PuzzleScore) -> Vec<(&'static str, Vec<PuzzleGroup>)> {
    let groups = [("Theme", &score.themes), ("Rating", &score.ratings)];
    let some = groups.into_iter().filter(|(_, groups)| !groups.is_empty());
    some.map(|(name, groups)| (name, groups.clone())).collect()
}

fn neighbours(networks: &[NetworkInfo], number: NetworkNumber) -> [Option<NetworkNumber>; 2] {
    let numbers = || networks.iter().map(|info| info.number);
    [
        numbers().filter(|other| *other < number).max(),
        numbers().filter(|other| *other > number).min(),
    ]
}

fn parent(networks: &[NetworkInfo], info: &NetworkInfo) -> Option<Parent> {
    let hash = info.spec.parent?;
    let known = networks.iter().find(|network| network.hash == hash);
    Some(Parent {
        hash: hash.short(),
        number: known.map(|network| network.number),
    })
}

/// What people call a format.
pub(super) const fn format_title(format: &ExportFormat) -> &'static str {
    match format {
        ExportFormat::Lc0 => "Lc0",
        ExportFormat::Onnx => "ONNX",
    }
}

/// What a program does, for people.
pub(super) fn explained(program: Program) -> String {
    match program {
        Program::Random => "any legal move, each as likely as the others".to_owned(),
        Program::AlphaBeta { depth, random } => {
            let plies = if depth == 1 { "ply" } else { "plies" };
            let often = match random {
                0 => String::new(),
                percent => format!("; {percent} % of the moves are any legal ones"),
            };
            format!(
                "alpha-beta search of {depth} {plies}, then captures; material and placement{often}"
            )
        }
    }
}

fn policy(spec: &NetworkSpec) -> String {
    let head = match spec.policy.head {
        PolicyHead::Convolution => "convolution".to_owned(),
        PolicyHead::Dense { channels } => format!("dense, {channels} channels"),
    };
    format!("{}, {head}", spec.policy.encoding.name())
}

fn value(spec: &NetworkSpec) -> String {
    match spec.value {
        ValueHead::Wdl { channels, hidden } => {
            format!("win, draw, loss ({channels} channels, {hidden} hidden units)")
        }
        ValueHead::Scalar { channels, hidden } => {
            format!("one number ({channels} channels, {hidden} hidden units)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::story;

    pub(super) fn network(number: u32) -> NetworkInfo {
        NetworkInfo {
            rating: None,
            submitted_at: String::new(),
            ..story::tests::network(number, 0.0, None)
        }
    }

    #[test]
    fn puzzles_without_ratings_have_no_table_of_ratings() {
        let group = PuzzleGroup {
            name: "mateIn1".to_owned(),
            tried: 8,
            solved: 2,
        };
        let mined = PuzzleScore {
            tried: 8,
            solved: 2,
            themes: vec![group],
            ratings: Vec::new(),
            performance: None,
        };
        let names = groups(&mined).into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["Theme"]);
    }
}
