//! The games of a run, newest first, page by page, or the longest or shortest of the newest.

use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::chess::{GameResult, Termination};
use rookery_common::ids::{GameId, NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::GameInfo;
use rookery_common::protocol::people::is_user_name;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::join::worker_command;
use super::layout::{
    Choice, ColumnHead, Direction, Layout, Page, Tab, fields, is_default, link, page,
};
use super::rows::{GameHeads, GameRow};
use super::{PagesState, text};
use crate::api::games::ply_range;
use crate::db::{DbError, GameFilter, GameSort};
use crate::openings::OpeningFilter;
use crate::server::address::Address;

/// Games on a page.
const GAMES: u32 = 50;

/// What stands after the question mark.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct GamesQuery {
    /// Only games that this contributor sent.
    contributor: Option<String>,
    /// Only games in which this network plays.
    #[serde(default, deserialize_with = "if_written")]
    network: Option<NetworkNumber>,
    kind: Option<WorkKind>,
    result: Option<GameResult>,
    termination: Option<Termination>,
    min_plies: Option<u32>,
    max_plies: Option<u32>,
    /// Only games with this opening: its ECO code or its name.
    opening: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    sort: GameSort,
    /// Only games before this one.
    pub(super) before: Option<GameId>,
}

#[derive(Template)]
#[template(path = "games.html")]
struct GamesPage {
    layout: Layout,
    worker_command: String,
    run: RunName,
    contributor: Option<String>,
    /// Whether there is a contributor of this name.
    is_known: bool,
    network: Option<NetworkNumber>,
    choices: Vec<Choice>,
    results: Vec<Choice>,
    /// Filters that fewer people ask for.
    lengths: Vec<Choice>,
    ends: Vec<Choice>,
    is_narrowed: bool,
    /// Whether only the newest games are looked through.
    is_searched: bool,
    /// Whether those that are wanted end by resignation, and the run's games do not.
    never_resigns: bool,
    /// What the form keeps beside its own fields.
    kept: Vec<(String, String)>,
    families: Vec<&'static str>,
    /// What is written for the opening, and whether there is such a one.
    opening: Option<(String, bool)>,
    any_opening: String,
    /// The same games of any network and any contributor.
    of_anyone: String,
    /// Whether openings of older games are not known yet.
    is_unnamed: bool,
    heads: Option<GameHeads>,
    games: Vec<GameRow>,
    /// Where the newest of them are a file.
    file: String,
    next: Option<String>,
    /// What the list leaves out, if it is sorted.
    cut: Option<String>,
}

/// `GET /runs/{run}/games`
pub(super) async fn list(
    State(state): State<PagesState>,
    address: Address,
    name: Result<Path<RunName>, PathRejection>,
    query: Result<Query<GamesQuery>, QueryRejection>,
) -> Page {
    let (Path(run), Query(mut query)) = (name?, query?);
    let before = query.before.take();
    query.opening.take_if(|text| text.trim().is_empty());
    query.contributor = query.contributor.as_deref().and_then(written_name);
    let info = state.db.run(&run).await?;
    let is_newest = query.sort == GameSort::Newest;
    let written = query.opening.clone();
    let opening = written.as_deref().and_then(OpeningFilter::parse);
    let filter = GameFilter {
        run: Some(run.clone()),
        kind: query.kind,
        contributor: query.contributor.clone(),
        network: query.network,
        result: query.result,
        termination: query.termination,
        plies: ply_range(query.min_plies, query.max_plies),
        opening,
        sort: query.sort,
        before: before.filter(|_| is_newest),
        limit: GAMES,
        ..GameFilter::default()
    };
    let is_searched = filter.is_searched();
    let found = match written.is_some() && opening.is_none() {
        true => Some(Vec::new()),
        false => find_games(&state, filter).await?,
    };
    let is_known = found.is_some();
    let games = found.unwrap_or_default();
    let is_unnamed = opening.is_some() && state.db.next_unnamed(None).await?.is_some();
    let path = format!("/runs/{run}/games");
    let mut file = fields(&GamesQuery {
        sort: GameSort::Newest,
        ..query.clone()
    });
    file.push(("run".to_owned(), run.to_string()));
    let with_any = GamesQuery {
        opening: None,
        ..query.clone()
    };
    let of_anyone = GamesQuery {
        contributor: None,
        network: None,
        ..query.clone()
    };
    let next = last_of_page(&games, GAMES).filter(|_| is_newest);
    page(&GamesPage {
        layout: Layout::of(&state.presentation, &info, Tab::Games).pictured(&address),
        worker_command: worker_command(state.registration, &address, &run),
        choices: choices(&path, &query),
        results: results(&path, &query),
        lengths: lengths(&path, &query),
        ends: ends(&path, &query),
        is_narrowed: query.termination.is_some()
            || query.min_plies.is_some()
            || query.max_plies.is_some(),
        is_searched,
        never_resigns: query.termination == Some(Termination::Resignation)
            && info.params.selfplay.resign.is_none(),
        kept: fields(&GamesQuery {
            opening: None,
            ..of_anyone.clone()
        }),
        any_opening: link(&path, &with_any),
        of_anyone: link(&path, &of_anyone),
        is_known,
        families: OpeningFilter::families().collect(),
        opening: written.map(|written| match opening {
            Some(opening) => (opening.text().to_owned(), true),
            None => (written, false),
        }),
        is_unnamed,
        file: link("/api/v1/games/pgn", &file),
        cut: cut(&query, games.len()),
        heads: Some(heads(&path, &query)),
        games: GameRow::all(games, state.now()),
        next: next.map(|last| {
            query.before = Some(last);
            link(&path, &query)
        }),
        contributor: query.contributor,
        network: query.network,
        run,
    })
}

/// The games of a filter whose run there is; nothing if there is no contributor of its name.
async fn find_games(
    state: &PagesState,
    filter: GameFilter,
) -> Result<Option<Vec<GameInfo>>, DbError> {
    if !filter.contributor.as_deref().is_none_or(is_user_name) {
        return Ok(None);
    }
    match state.list(|db| async move { db.games(filter).await }).await {
        Err(DbError::NotFound(_)) => Ok(None),
        games => games.map(Some),
    }
}

/// A network's number, if there is one: a form sends an empty text where nobody has written one.
pub(super) fn if_written<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<NetworkNumber>, D::Error> {
    let text = String::deserialize(from)?;
    let text = text.trim().trim_start_matches('#');
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().map(NetworkNumber).map(Some);
    number.map_err(|_| D::Error::custom("network: a network's number is a whole number from 0"))
}

/// A name as somebody writes it, if there is one.
fn written_name(text: &str) -> Option<String> {
    let name = text.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn choices(path: &str, query: &GamesQuery) -> Vec<Choice> {
    let all = [
        ("all", None),
        ("self-play", Some(WorkKind::SelfPlay)),
        ("puzzles", Some(WorkKind::Puzzles)),
        ("matches", Some(WorkKind::Match)),
    ];
    all.map(|(name, kind)| Choice::new(path, query, name, |other| other.kind = kind))
        .into()
}

fn results(path: &str, query: &GamesQuery) -> Vec<Choice> {
    let all = [
        ("any result", None),
        ("White won", Some(GameResult::WhiteWins)),
        ("drawn", Some(GameResult::Draw)),
        ("Black won", Some(GameResult::BlackWins)),
    ];
    all.map(|(name, result)| Choice::new(path, query, name, |other| other.result = result))
        .into()
}

fn lengths(path: &str, query: &GamesQuery) -> Vec<Choice> {
    let all = [
        ("any length", None, None),
        ("up to 40 plies", None, Some(40)),
        ("41 to 80", Some(41), Some(80)),
        ("81 to 160", Some(81), Some(160)),
        ("longer", Some(161), None),
    ];
    all.map(|(name, least, most)| {
        Choice::new(path, query, name, |other| {
            (other.min_plies, other.max_plies) = (least, most);
        })
    })
    .into()
}

fn ends(path: &str, query: &GamesQuery) -> Vec<Choice> {
    let any = Choice::new(path, query, "any end", |other| other.termination = None);
    let all = Termination::ALL.map(|termination| {
        Choice::new(path, query, termination.words(), |other| {
            other.termination = Some(termination);
        })
    });
    std::iter::once(any).chain(all).collect()
}

fn heads(path: &str, query: &GamesQuery) -> GameHeads {
    let sorted = |sort| {
        let sorted = GamesQuery {
            sort,
            ..query.clone()
        };
        link(path, &sorted)
    };
    let newest = [(GameSort::Newest, Direction::Descending)];
    let plies = [
        (GameSort::Longest, Direction::Descending),
        (GameSort::Shortest, Direction::Ascending),
    ];
    GameHeads {
        game: ColumnHead::new("Game", newest, query.sort, sorted),
        plies: ColumnHead::new("Plies", plies, query.sort, sorted),
    }
}

/// What a list of so many games may leave out; nothing if older ones are on a page of their own.
fn cut(query: &GamesQuery, games: usize) -> Option<String> {
    let which = match query.sort {
        GameSort::Newest => return None,
        GameSort::Longest => "longest",
        GameSort::Shortest => "shortest",
    };
    let of = match query.contributor {
        Some(_) => format!(
            "those in the contributor's newest {} chunks",
            text::count(GameSort::CHUNKS)
        ),
        None => format!("the newest {} of these games", text::count(GameSort::GAMES)),
    };
    (games >= GAMES as usize).then(|| format!("The {GAMES} {which} of {of}."))
}

/// The last of these games, if the page that they fill may have others behind it.
pub(super) fn last_of_page(games: &[GameInfo], limit: u32) -> Option<GameId> {
    let last = games.last().filter(|_| games.len() >= limit as usize);
    last.map(|last| last.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_list_says_among_which_games_it_looked() {
        let cut = |address: &str, games| {
            let query = serde_urlencoded::from_str(address).unwrap();
            cut(&query, games)
        };
        assert_eq!(cut("", 50), None);
        assert_eq!(cut("sort=longest", 49), None);
        assert_eq!(
            cut("sort=longest", 50).as_deref(),
            Some("The 50 longest of the newest 10\u{202f}000 of these games.")
        );
        assert_eq!(
            cut("sort=shortest&contributor=ann", 50).as_deref(),
            Some("The 50 shortest of those in the contributor's newest 1\u{202f}000 chunks.")
        );
    }
}
