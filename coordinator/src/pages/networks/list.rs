//! The list of a run's networks: which of them, in which order, and what part of their chart.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Redirect};
use rookery_common::ids::{AnchorName, NetworkNumber, RunName};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus, PuzzleScore};
use serde::{Deserialize, Serialize};

use super::ratings::{Over, is_thinned, rating_chart};
use crate::pages::chart::{ChartLinks, ChartQuery, Size, ends};
use crate::pages::layout::{
    Choice, ColumnHead, Direction, Layout, Page, Tab, is_default, link, page,
};
use crate::pages::rating_scale::RatingScale;
use crate::pages::{PagesState, text};
use crate::server::address::Address;

/// Networks on a page of the list.
const NETWORKS: usize = 200;

/// What stands after the question mark.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(in crate::pages) struct NetworksQuery {
    #[serde(flatten)]
    chart: ChartQuery<Over>,
    #[serde(default, skip_serializing_if = "is_default")]
    show: Show,
    #[serde(default, skip_serializing_if = "is_default")]
    sort: Sort,
    /// Only networks that are older than this one.
    before: Option<NetworkNumber>,
    /// Whose page is wanted: its number, or the name of an anchor.
    #[serde(skip_serializing)]
    find: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Show {
    #[default]
    All,
    WithoutRejected,
}

/// In which order networks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
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

impl Sort {
    /// What a list of so many networks leaves out; nothing if it has older ones on a page of their own.
    fn cut(self, networks: usize) -> Option<String> {
        let (most, all) = (text::count(NETWORKS as u64), text::count(networks as u64));
        let which = match self {
            Self::Number => return None,
            Self::Rating => "strongest",
            Self::Puzzles => "best at puzzles",
        };
        (networks > NETWORKS).then(|| format!("The {most} {which} of {all} networks."))
    }
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
    /// Whether the chart leaves out networks that it could show.
    is_thinned: bool,
    /// Whether a part of the chart is shown.
    is_zoomed: bool,
    links: ChartLinks,
    shows: Vec<Choice>,
    heads: Heads,
    /// What no network is called that was looked for.
    not_found: Option<String>,
    next: Option<String>,
    /// What the list leaves out, if it is sorted.
    cut: Option<String>,
}

/// The heads by which the list can be sorted.
struct Heads {
    network: ColumnHead,
    rating: ColumnHead,
    puzzles: ColumnHead,
}

struct NetworkRow {
    info: NetworkInfo,
    best: bool,
    ago: String,
}

/// `GET /runs/{run}/networks`
pub(in crate::pages) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<NetworksQuery>, QueryRejection>,
) -> Page {
    let (Path(name), Query(query)) = (name?, query?);
    let run = state.db.run(&name).await?;
    let networks = state.db.networks_in_short(&name).await?;
    let wanted = query.find.as_deref().map(str::trim);
    let wanted = wanted.filter(|text| !text.is_empty());
    if let Some(number) = wanted.and_then(|text| find_network(&networks, text)) {
        let page = format!("/runs/{name}/networks/{number}");
        return Ok(Redirect::to(&page).into_response());
    }
    let not_found = wanted.map(str::to_owned);
    let (path, before) = (format!("/runs/{name}/networks"), query.before);
    let chosen = NetworksQuery {
        before: None,
        ..query
    };
    let (over, view) = (chosen.chart.over, chosen.chart.view());
    let chart = rating_chart(&name, &networks, over, Size::Full, view)?;
    let now = state.now();
    let row = |info: NetworkInfo| NetworkRow {
        best: Some(info.number) == run.best,
        ago: text::ago(now, &info.submitted_at),
        info,
    };
    let scale = RatingScale::of(&networks);
    let own = networks.iter().filter(|info| info.anchor.is_none());
    let ends = ends(own.filter_map(|info| over.place(info)));
    let links = ChartQuery::links(&path, &chosen, |query| &mut query.chart, ends);
    let is_thinned = is_thinned(&networks, over, view);
    let networks = select(networks, chosen.show, chosen.sort);
    let cut = chosen.sort.cut(networks.len());
    let (networks, last) = paginate(networks, before);
    let last = last.filter(|_| chosen.sort == Sort::Number);
    page(&NetworksPage {
        layout: Layout::of(&state.presentation, &run, Tab::Networks).pictured(&address),
        address,
        scale,
        is_thinned,
        is_zoomed: view.is_part(),
        not_found,
        cut,
        links,
        shows: chosen.shows(&path),
        heads: chosen.heads(&path),
        next: last.map(|last| {
            let before = Some(last);
            link(&path, &NetworksQuery { before, ..chosen })
        }),
        networks: networks.into_iter().map(row).collect(),
        run: name,
        chart,
    })
}

/// The network of which somebody writes the number, or the name if it is an anchor.
fn find_network(networks: &[NetworkInfo], text: &str) -> Option<NetworkNumber> {
    let number = text.trim_start_matches('#').parse().map(NetworkNumber);
    let is_it = |info: &&NetworkInfo| {
        let name = info.anchor.as_ref().map(AnchorName::as_str);
        number == Ok(info.number) || name.is_some_and(|name| name.eq_ignore_ascii_case(text))
    };
    networks.iter().find(is_it).map(|info| info.number)
}

impl NetworksQuery {
    fn shows(&self, path: &str) -> Vec<Choice> {
        let all = [
            (Show::All, "all"),
            (Show::WithoutRejected, "without rejected"),
        ];
        let choice = |(show, name)| Choice::new(path, self, name, |other| other.show = show);
        all.map(choice).into()
    }

    fn heads(&self, path: &str) -> Heads {
        let head = |name, sort| {
            ColumnHead::new(name, [(sort, Direction::Descending)], self.sort, |sort| {
                let sorted = Self {
                    sort,
                    ..self.clone()
                };
                link(path, &sorted)
            })
        };
        Heads {
            network: head("Network", Sort::Number),
            rating: head("Rating", Sort::Rating),
            puzzles: head("Puzzles solved", Sort::Puzzles),
        }
    }
}

/// The networks that are wanted, of all of them with the newest first, in their order.
fn select(mut networks: Vec<NetworkInfo>, show: Show, sort: Sort) -> Vec<NetworkInfo> {
    if show == Show::WithoutRejected {
        networks.retain(|info| info.status != NetworkStatus::Rejected);
    }
    let rating = |info: &NetworkInfo| info.rating.map_or(f64::NEG_INFINITY, |r| r.elo);
    let solved = |info: &NetworkInfo| {
        let score = info.puzzles.as_ref().filter(|score| score.tried > 0);
        // What is certain: one of one is no better than 99 of 100.
        let low = |p: &PuzzleScore| text::share_interval(p.solved, p.tried).0;
        score.map_or(f64::NEG_INFINITY, low)
    };
    match sort {
        Sort::Number => {}
        Sort::Rating => networks.sort_by(|a, b| rating(b).total_cmp(&rating(a))),
        Sort::Puzzles => networks.sort_by(|a, b| solved(b).total_cmp(&solved(a))),
    }
    networks
}

/// The networks of a page, and the last of them if there are older ones.
pub(in crate::pages) fn paginate(
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

#[cfg(test)]
mod tests {
    use super::super::tests::network;
    use super::*;

    #[test]
    fn older_networks_are_a_page_further() {
        let all: Vec<_> = (0..=NETWORKS as u32).rev().map(network).collect();
        let (first, last) = paginate(all.clone(), None);
        assert_eq!(
            (first.len(), last),
            (NETWORKS, Some(NetworkNumber(1))),
            "one is left"
        );
        let (rest, last) = paginate(all.clone(), last);
        assert_eq!((&rest[..], last), (&all[NETWORKS..], None));
        assert_eq!(paginate(all, Some(NetworkNumber(0))), (Vec::new(), None));
    }

    #[test]
    fn a_network_that_solved_one_puzzle_of_one_is_not_the_best_at_puzzles() {
        let scored = |number, tried, solved| NetworkInfo {
            puzzles: Some(PuzzleScore {
                tried,
                solved,
                ..PuzzleScore::default()
            }),
            ..network(number)
        };
        let networks = vec![
            scored(3, 1, 1),
            network(2),
            scored(1, 100, 90),
            scored(0, 0, 0),
        ];
        let sorted = select(networks, Show::All, Sort::Puzzles).into_iter();
        let numbers: Vec<u32> = sorted.map(|info| info.number.0).collect();
        assert_eq!(numbers, [1, 3, 2, 0]);
    }

    #[test]
    fn a_sorted_list_says_what_it_leaves_out() {
        let cut = Sort::Rating.cut(1_234);
        assert_eq!(
            cut.as_deref(),
            Some("The 200 strongest of 1\u{202f}234 networks.")
        );
        assert_eq!(
            [Sort::Rating.cut(200), Sort::Number.cut(1_234)],
            [None, None]
        );
    }
}
