//! The matches of a run, and each match's own page.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::ids::{MatchId, NetworkNumber, RunName};
use rookery_common::rating::pentanomial::Pentanomial;
use serde::{Deserialize, Serialize};

use super::games::{GamesQuery, if_written, last_of_page};
use super::layout::{
    Choice, ColumnHead, Direction, Layout, Page, Tab, fields, is_default, link, page,
};
use super::rows::{GameRow, MatchRow};
use super::{PagesState, text};
use crate::db::{GameFilter, MatchFilter, MatchGroup, MatchSort, SharedDatabase};
use crate::server::address::Address;

/// Matches on a page of the list.
const MATCHES: u32 = 200;

/// Games on a page of a match.
const GAMES: u32 = 50;

/// What stands after the question mark.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
pub(super) struct MatchesQuery {
    show: Option<MatchGroup>,
    /// Only those in which this network plays.
    #[serde(default, deserialize_with = "if_written")]
    network: Option<NetworkNumber>,
    #[serde(default, skip_serializing_if = "is_default")]
    sort: MatchSort,
    /// Only matches that were opened before this one.
    before: Option<MatchId>,
}

#[derive(Template)]
#[template(path = "matches.html")]
struct MatchesPage {
    layout: Layout,
    run: RunName,
    matches: Vec<MatchRow>,
    groups: Vec<Choice>,
    network: Option<NetworkNumber>,
    any_network: String,
    /// What the form keeps beside its own field.
    kept: Vec<(String, String)>,
    heads: Heads,
    none_yet: bool,
    next: Option<String>,
    /// What the list leaves out, if it is sorted.
    cut: Option<String>,
}

/// The heads by which the list can be sorted.
struct Heads {
    games: ColumnHead,
    elo: ColumnHead,
    opened: ColumnHead,
}

#[derive(Template)]
#[template(path = "match.html")]
struct MatchPage {
    layout: Layout,
    run: RunName,
    info: MatchRow,
    rule: String,
    score: String,
    reason: Option<String>,
    pairs: Vec<PairBar>,
    games: Vec<GameRow>,
    next: Option<String>,
}

/// Number of pairs with this number of points.
struct PairBar {
    points: &'static str,
    class: &'static str,
    count: u64,
    x: f64,
    y: f64,
    height: f64,
}

/// `GET /runs/{run}/matches`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<MatchesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(query)) = (name?, query?);
    let info = state.db.run(&run).await?;
    let now = state.now();
    // One more tells whether there is another page.
    let limit = MATCHES + 1;
    let (path, before) = (format!("/runs/{run}/matches"), query.before);
    let chosen = MatchesQuery {
        before: None,
        ..query
    };
    let of_any_network = MatchesQuery {
        network: None,
        ..chosen
    };
    let filter = MatchFilter {
        run: run.clone(),
        group: chosen.show,
        network: chosen.network,
        sort: chosen.sort,
        before: before.filter(|_| chosen.sort == MatchSort::Newest),
        limit,
    };
    let list = |db: SharedDatabase| async move { db.matches(&filter, now).await };
    let mut matches = state.list(list).await?;
    let more = matches.len() > MATCHES as usize;
    matches.truncate(MATCHES as usize);
    let last = matches.last().filter(|_| more);
    let (next, cut) = match chosen.sort {
        MatchSort::Newest => (last.map(|last| last.id), None),
        MatchSort::Games => (None, last.map(|_| "with most games")),
        MatchSort::Score => (None, last.map(|_| "with the best scores")),
    };
    page(&MatchesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Matches).pictured(&address),
        next: next.map(|last| {
            let before = Some(last);
            link(&path, &MatchesQuery { before, ..chosen })
        }),
        cut: cut.map(|which| format!("The {MATCHES} {which}.")),
        groups: groups(&path, &chosen),
        network: chosen.network,
        any_network: link(&path, &of_any_network),
        kept: fields(&of_any_network),
        heads: heads(&path, &chosen),
        none_yet: matches.is_empty()
            && before.is_none()
            && chosen.show.is_none()
            && chosen.network.is_none(),
        matches: matches
            .iter()
            .map(|info| MatchRow::new(info, now))
            .collect(),
        run,
    })
}

fn groups(path: &str, query: &MatchesQuery) -> Vec<Choice> {
    let all = [
        (None, "all"),
        (Some(MatchGroup::Gates), "gates"),
        (Some(MatchGroup::Promoted), "promoted"),
        (Some(MatchGroup::Rejected), "rejected"),
        (Some(MatchGroup::Ratings), "for ratings"),
        (Some(MatchGroup::Open), "open"),
    ];
    let choice = |(show, name)| Choice::new(path, query, name, |other| other.show = show);
    all.map(choice).into()
}

fn heads(path: &str, query: &MatchesQuery) -> Heads {
    let head = |name, sort| {
        ColumnHead::new(name, [(sort, Direction::Descending)], query.sort, |sort| {
            link(path, &MatchesQuery { sort, ..*query })
        })
    };
    Heads {
        games: head("Games", MatchSort::Games),
        elo: head("Elo", MatchSort::Score),
        opened: head("Opened", MatchSort::Newest),
    }
}

/// `GET /matches/{id}`
pub(super) async fn one(
    State(state): State<PagesState>,
    address: Address,
    id: Result<Path<MatchId>, PathRejection>,
    query: Result<Query<GamesQuery>, QueryRejection>,
) -> Page {
    let (Path(id), Query(query)) = (id?, query?);
    let info = state.db.match_info(id, state.now()).await?;
    let run = state.db.run(&info.run).await?;
    let (match_id, before) = (Some(id), query.before);
    let filter = GameFilter {
        match_id,
        before,
        limit: GAMES,
        ..GameFilter::default()
    };
    let games = state.db.games(filter).await?;
    let now = state.now();
    page(&MatchPage {
        layout: Layout::of(&state.presentation, &run, Tab::Matches)
            .pictured(&address)
            .titled(format!(
                "Match {id} of {}: network {} against {}",
                info.run, info.candidate, info.opponent
            )),
        rule: text::rule(&info),
        score: score(&info.tally),
        pairs: bars(&info.tally.pairs),
        next: last_of_page(&games, GAMES).map(|last| format!("/matches/{id}?before={last}")),
        games: GameRow::all(games, now),
        info: MatchRow::new(&info, now),
        reason: info.reason,
        run: info.run,
    })
}

fn score(tally: &rookery_common::rating::pentanomial::Tally) -> String {
    tally
        .score()
        .map_or_else(|| "–".to_owned(), |score| format!("{:.1} %", 100.0 * score))
}

fn bars(pairs: &Pentanomial) -> Vec<PairBar> {
    const KINDS: [(&str, &str); 5] = [
        ("0", "loss"),
        ("½", "loss pale"),
        ("1", "draw"),
        ("1½", "win pale"),
        ("2", "win"),
    ];
    let most = pairs.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = |place: usize, (points, class): (&'static str, &'static str), count: u64| {
        let height = (84.0 * count as f64 / most).max(2.0);
        let x = 6.0 + 73.0 * place as f64;
        PairBar {
            points,
            class,
            count,
            x,
            y: 108.0 - height,
            height,
        }
    };
    let places = KINDS.into_iter().zip(pairs.counts).enumerate();
    places
        .map(|(place, (kind, count))| bar(place, kind, count))
        .collect()
}
