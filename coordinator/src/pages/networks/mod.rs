//! The networks of a run with their ratings, and each network's own page.

mod ratings;

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect};
use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::network::{NetworkSpec, PolicyHead, Program, ValueHead};
use rookery_common::protocol::networks::{
    ExportFormat, NetworkInfo, NetworkName, NetworkStatus, PuzzleGroup, PuzzleScore,
};
use serde::Deserialize;

pub(super) use ratings::{ELO_SPAN, Over, anchor_lines, cut_off, rating_chart, was_best};

use super::address::Address;
use super::chart::{Size, View};
use super::error::PageError;
use super::layout::{Choice, Layout, Page, Tab, page};
use super::rating_scale::RatingScale;
use super::rows::{GameRow, MatchRow};
use super::{PagesState, text};
use crate::db::GameFilter;

/// Networks on a page of the list.
const NETWORKS: usize = 200;

/// Games on a network's page.
const LATEST_GAMES: u32 = 10;

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct NetworksQuery {
    /// Only networks that are older than this one.
    before: Option<NetworkNumber>,
    /// Over what ratings are drawn.
    over: Option<Over>,
    /// Where the part of the chart begins that is shown.
    from: Option<f64>,
    /// Where it ends.
    to: Option<f64>,
    /// Which networks are listed.
    show: Option<Show>,
    /// In which order.
    sort: Option<Sort>,
}

/// Which networks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Show {
    /// All.
    #[default]
    All,
    /// All but those that were rejected.
    WithoutRejected,
}

/// In which order networks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sort {
    /// The newest first.
    #[default]
    Number,
    /// The strongest first.
    Rating,
    /// Those that solve most puzzles first.
    Puzzles,
}

#[derive(Template)]
#[template(path = "networks.html")]
struct NetworksPage {
    layout: Layout,
    address: Address,
    run: RunName,
    networks: Vec<NetworkRow>,
    scale: RatingScale,
    chart: Option<String>,
    /// Over what else ratings can be drawn.
    choices: Vec<Choice>,
    /// What parts of the chart can be shown.
    views: Vec<Choice>,
    shows: Vec<Choice>,
    sorts: Vec<Choice>,
    next: Option<String>,
}

struct NetworkRow {
    info: NetworkInfo,
    best: bool,
    ago: String,
}

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
    /// Whether it is the run's best.
    best: bool,
    /// The networks before and after it.
    neighbours: [Option<NetworkNumber>; 2],
    info: NetworkInfo,
}

/// The network from which training started.
struct Parent {
    hash: String,
    number: Option<NetworkNumber>,
}

/// `GET /runs/{run}/networks`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<NetworksQuery>, QueryRejection>,
) -> Page {
    let (Path(name), Query(query)) = (name?, query?);
    let run = state.db.run(&name).await?;
    let networks = state.db.networks_in_short(&name).await?;
    let chosen = Chosen::of(&query);
    let chart = rating_chart(&name, &networks, chosen.over, Size::Full, chosen.view)?;
    let now = state.now();
    let row = |info: NetworkInfo| NetworkRow {
        best: Some(info.number) == run.best,
        ago: text::ago(now, &info.submitted_at),
        info,
    };
    let scale = RatingScale::of(&networks);
    let views = chosen.views(&name, &networks);
    let (networks, last) = listed(chosen.apply(networks), query.before);
    let last = last.filter(|_| chosen.sort == Sort::Number);
    page(&NetworksPage {
        layout: Layout::of(&state.presentation, &run, Tab::Networks),
        address,
        scale,
        choices: chosen.axes(&name),
        views,
        shows: chosen.shows(&name),
        sorts: chosen.sorts(&name),
        next: last.map(|last| format!("{}before={last}", chosen.href(&name))),
        networks: networks.into_iter().map(row).collect(),
        run: name,
        chart,
    })
}

/// How a visitor wants the list.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chosen {
    over: Over,
    view: View,
    show: Show,
    sort: Sort,
}

impl Chosen {
    fn of(query: &NetworksQuery) -> Self {
        Self {
            over: query.over.unwrap_or_default(),
            view: View::of(query.from, query.to),
            show: query.show.unwrap_or_default(),
            sort: query.sort.unwrap_or_default(),
        }
    }

    /// The address of the list, to which more can be added.
    fn href(self, run: &RunName) -> String {
        let (over, view) = (self.over.query(), self.view.query());
        let show = match self.show {
            Show::All => "",
            Show::WithoutRejected => "show=without-rejected&",
        };
        let sort = match self.sort {
            Sort::Number => "",
            Sort::Rating => "sort=rating&",
            Sort::Puzzles => "sort=puzzles&",
        };
        format!("/runs/{run}/networks?{over}{view}{show}{sort}")
    }

    fn choice(self, run: &RunName, name: &'static str, other: Self) -> Choice {
        Choice {
            name,
            href: other.href(run).trim_end_matches(['?', '&']).to_owned(),
            current: other == self,
        }
    }

    fn axes(self, run: &RunName) -> Vec<Choice> {
        let all = [
            (Over::Numbers, "by number"),
            (Over::Positions, "by positions played"),
            (Over::Time, "by time"),
        ];
        let choice = |(over, name)| {
            // A place on one axis is none on another.
            let view = if over == self.over {
                self.view
            } else {
                View::Whole
            };
            self.choice(run, name, Self { over, view, ..self })
        };
        all.map(choice).into()
    }

    /// The whole chart, and parts of it to its end.
    fn views(self, run: &RunName, networks: &[NetworkInfo]) -> Vec<Choice> {
        let own = networks.iter().filter(|info| info.anchor.is_none());
        let places: Vec<f64> = own.filter_map(|info| self.over.place(info)).collect();
        // Newest first.
        let (Some(last), Some(first)) = (places.first(), places.last()) else {
            return Vec::new();
        };
        let newest = |part: f64| View::Part(last - (last - first) * part, f64::MAX);
        let all = [
            (View::Whole, "whole run"),
            (newest(0.5), "second half"),
            (newest(0.1), "last tenth"),
        ];
        let choice = |(view, name)| self.choice(run, name, Self { view, ..self });
        all.map(choice).into()
    }

    fn shows(self, run: &RunName) -> Vec<Choice> {
        let all = [
            (Show::All, "all"),
            (Show::WithoutRejected, "without rejected"),
        ];
        let choice = |(show, name)| self.choice(run, name, Self { show, ..self });
        all.map(choice).into()
    }

    fn sorts(self, run: &RunName) -> Vec<Choice> {
        let all = [
            (Sort::Number, "newest first"),
            (Sort::Rating, "strongest first"),
            (Sort::Puzzles, "most puzzles solved first"),
        ];
        let choice = |(sort, name)| self.choice(run, name, Self { sort, ..self });
        all.map(choice).into()
    }

    /// The networks that are wanted, of all of them with the newest first, in their order.
    fn apply(self, mut networks: Vec<NetworkInfo>) -> Vec<NetworkInfo> {
        if self.show == Show::WithoutRejected {
            networks.retain(|info| info.status != NetworkStatus::Rejected);
        }
        let rating = |info: &NetworkInfo| info.rating.map_or(f64::NEG_INFINITY, |r| r.elo);
        let solved = |info: &NetworkInfo| {
            let score = info.puzzles.as_ref().filter(|score| score.tried > 0);
            score.map_or(f64::NEG_INFINITY, |p| p.solved as f64 / p.tried as f64)
        };
        match self.sort {
            Sort::Number => {}
            Sort::Rating => networks.sort_by(|a, b| rating(b).total_cmp(&rating(a))),
            Sort::Puzzles => networks.sort_by(|a, b| solved(b).total_cmp(&solved(a))),
        }
        networks
    }
}

/// The networks of a page, and the last of them if there are older ones.
fn listed(
    networks: Vec<NetworkInfo>,
    before: Option<NetworkNumber>,
) -> (Vec<NetworkInfo>, Option<NetworkNumber>) {
    let older = |info: &NetworkInfo| before.is_none_or(|before| info.number < before);
    let mut networks: Vec<_> = networks.into_iter().filter(older).collect();
    let more = networks.len() > NETWORKS;
    networks.truncate(NETWORKS);
    let last = networks.last().map(|info| info.number);
    (networks, last.filter(|_| more))
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

/// The networks before and after a number.
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
    use rookery_common::ids::ContentHash;

    pub(super) fn network(number: u32) -> NetworkInfo {
        NetworkInfo {
            run: "main".parse().unwrap(),
            number: NetworkNumber(number),
            anchor: None,
            anchor_elo: None,
            hash: ContentHash::of(&number.to_be_bytes()),
            bytes: 1,
            spec: NetworkSpec::resnet(1, 8),
            status: NetworkStatus::Promoted,
            gate: None,
            rating: None,
            puzzles: None,
            training_games: 0,
            positions: None,
            submitted_at: String::new(),
            file: String::new(),
            exports: Vec::new(),
        }
    }

    #[test]
    fn older_networks_are_a_page_further() {
        let all: Vec<_> = (0..=NETWORKS as u32).rev().map(network).collect();
        let (first, last) = listed(all.clone(), None);
        assert_eq!(
            (first.len(), last),
            (NETWORKS, Some(NetworkNumber(1))),
            "one is left"
        );
        let (rest, last) = listed(all.clone(), last);
        assert_eq!((&rest[..], last), (&all[NETWORKS..], None));
        assert_eq!(listed(all, Some(NetworkNumber(0))), (Vec::new(), None));
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
