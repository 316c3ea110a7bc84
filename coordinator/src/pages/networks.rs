//! The networks of a run with their ratings, and each network's own page.

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

use super::address::Address;
use super::chart::{Axis, Chart, ChartData, Line, Point, Size, View};
use super::error::PageError;
use super::layout::{Choice, Layout, Page, Tab, page};
use super::rows::{GameRow, MatchRow};
use super::scale::Scale;
use super::{PagesState, text};
use crate::db::GameFilter;

/// Networks on a page of the list.
const NETWORKS: usize = 200;

/// Networks with points on a small chart, the newest; nobody could tell more of them apart, and the
/// overview is asked for again with every chunk.
const POINTS: usize = 100;

/// A rating whose interval is wider, in Elo, is not drawn: it would flatten all others.
const WIDEST: f64 = 1_000.0;

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

/// Over what ratings are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Over {
    /// The networks' numbers.
    #[default]
    Numbers,
    /// The training positions that the run had when they were submitted.
    Positions,
    /// When they were submitted.
    Time,
}

impl Over {
    /// Where a network is; nowhere if that is not known.
    fn place(self, info: &NetworkInfo) -> Option<f64> {
        match self {
            Self::Numbers => Some(f64::from(info.number.0)),
            Self::Positions => info.positions.map(|positions| positions as f64),
            Self::Time => text::day(&info.submitted_at),
        }
    }

    const fn axis(self) -> Axis {
        match self {
            Self::Numbers | Self::Positions => Axis::Whole,
            Self::Time => Axis::Days,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Numbers => "network",
            Self::Positions => "training positions",
            Self::Time => "time (UTC)",
        }
    }

    /// The part of an address that chooses it, to which more can be added.
    const fn query(self) -> &'static str {
        match self {
            Self::Numbers => "",
            Self::Positions => "over=positions&",
            Self::Time => "over=time&",
        }
    }
}

#[derive(Template)]
#[template(path = "networks.html")]
struct NetworksPage {
    layout: Layout,
    address: Address,
    run: RunName,
    networks: Vec<NetworkRow>,
    scale: Scale,
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
    scale: Scale,
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
    let scale = Scale::of(&networks);
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
        scale: Scale::of(&networks),
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

/// How many networks have points on a small chart, if there are more.
pub(super) fn cut_off(networks: &[NetworkInfo]) -> Option<u32> {
    let own = networks.iter().filter(|info| info.anchor.is_none());
    (own.count() > POINTS).then_some(POINTS as u32)
}

/// What an axis of Elo spans at least: less is hardly a difference in strength.
pub(super) const ELO_SPAN: f64 = 100.0;

/// Ratings of networks, given newest first, over numbers or positions: a point with its interval for
/// each that has one, coloured by what became of it, a line through those that were best, and a
/// level line for each anchor.
pub(super) fn rating_chart(
    run: &RunName,
    networks: &[NetworkInfo],
    over: Over,
    size: Size,
    view: View,
) -> Result<Option<String>, askama::Error> {
    let scale = Scale::of(networks);
    let most = match size {
        Size::Full => usize::MAX,
        Size::Half => POINTS,
    };
    let own = || {
        networks
            .iter()
            .filter(|info| info.anchor.is_none())
            .take(most)
    };
    let points: Vec<Point> = own()
        .filter_map(|info| rating_point(run, info, over, &scale))
        .collect();
    let mut best: Vec<(f64, f64)> = networks
        .iter()
        .filter(|info| was_best(info))
        .filter_map(|info| rating_point(run, info, over, &scale))
        .map(|point| (point.x, point.y))
        .collect();
    best.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lines = vec![Line {
        name: String::new(),
        class: "best",
        points: best,
    }];
    // A level line goes as far as the networks.
    let places = || own().filter_map(|info| over.place(info));
    let Some((first, last)) = places().reduce(f64::min).zip(places().reduce(f64::max)) else {
        return Ok(None);
    };
    let last = if first < last { last } else { first + 1.0 };
    let (first, last) = match view {
        View::Part(from, to) => (from.max(first), to.min(last)),
        View::Fixed | View::Whole => (first, last),
    };
    lines.extend(networks.iter().filter_map(|info| {
        let (anchor, rating) = (info.anchor.as_ref()?, info.rating?);
        Some(Line {
            name: format!("{anchor} ({})", scale.rating(&rating)),
            class: "anchor",
            points: vec![(first, rating.elo), (last, rating.elo)],
        })
    }));
    let title = format!("Ratings of the networks of run {run} in Elo, counted from {scale}");
    let data = ChartData {
        title,
        x_name: over.name(),
        lines,
        points,
        x_axis: over.axis(),
        y_span: ELO_SPAN,
        size,
        view,
        ..ChartData::default()
    };
    Chart::render(data)
}

/// Whether a network is best or was, and nobody has moved best back from it.
pub(super) const fn was_best(info: &NetworkInfo) -> bool {
    matches!(
        info.status,
        NetworkStatus::Initial | NetworkStatus::Promoted
    )
}

fn rating_point(run: &RunName, info: &NetworkInfo, over: Over, scale: &Scale) -> Option<Point> {
    let rating = info
        .rating
        .filter(|rating| rating.high - rating.low <= WIDEST)?;
    Some(Point {
        x: over.place(info)?,
        y: rating.elo,
        interval: Some((rating.low, rating.high)),
        class: info.status.name(),
        label: format!(
            "#{}: {} Elo, {}",
            info.number,
            scale.elo(&rating),
            info.status.name()
        ),
        link: Some(format!("/runs/{run}/networks/{}", info.number)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rookery_common::ids::ContentHash;
    use rookery_common::protocol::networks::Rating;

    fn network(number: u32) -> NetworkInfo {
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

    #[test]
    fn a_rating_that_is_hardly_known_is_not_on_the_chart() {
        let mut networks = [rated(2, None), rated(1, None), rated(0, None)];
        let unknown = networks[0].rating.as_mut().unwrap();
        (unknown.low, unknown.high) = (-4_000.0, 4_000.0);
        let svg = chart(&networks, Over::Numbers, Size::Half);
        assert_eq!(points(&svg), 2);
        assert!(!svg.contains("4000"), "{svg}");
    }

    fn rated(number: u32, positions: Option<u64>) -> NetworkInfo {
        NetworkInfo {
            rating: Some(Rating {
                elo: f64::from(number),
                low: -5.0,
                high: 50.0,
                games: 8,
            }),
            positions,
            ..network(number)
        }
    }

    fn chart(networks: &[NetworkInfo], over: Over, size: Size) -> String {
        let chart = rating_chart(&"main".parse().unwrap(), networks, over, size, View::Whole);
        chart.unwrap().unwrap()
    }

    fn points(svg: &str) -> usize {
        svg.matches("<g class=\"point").count()
    }

    #[test]
    fn a_small_chart_has_the_newest_points_and_the_whole_line() {
        let all: Vec<_> = (0..150).rev().map(|number| rated(number, None)).collect();
        let small = chart(&all, Over::Numbers, Size::Half);
        assert_eq!(points(&small), POINTS);
        let line = small.split("class=\"line best\" d=\"").nth(1).unwrap();
        let line = line.split('"').next().unwrap();
        assert_eq!(line.matches('L').count(), 149);
        assert!(small.contains("<title>#149: "), "{small}");
        assert_eq!(points(&chart(&all, Over::Numbers, Size::Full)), 150);
    }

    #[test]
    fn ratings_stand_over_numbers_or_over_the_positions_that_are_known() {
        let networks = [rated(2, Some(7_000)), rated(1, Some(0)), rated(0, None)];
        let by_number = chart(&networks, Over::Numbers, Size::Half);
        assert_eq!(points(&by_number), 3);
        assert!(by_number.contains(">network</text>"), "{by_number}");
        let by_positions = chart(&networks, Over::Positions, Size::Half);
        assert_eq!(points(&by_positions), 2);
        for text in [">training positions</text>", ">6000</text>"] {
            assert!(by_positions.contains(text), "{by_positions}");
        }
    }
}
