//! A game to step through.

use std::borrow::Borrow;

use anyhow::Context as _;
use askama::Template;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use rookery_common::chess::fen;
use rookery_common::chess::moves::castling_mode;
use rookery_common::chunk::{GameRecord, Side};
use rookery_common::ids::{GameId, RunName};
use rookery_common::protocol::matches::GameInfo;
use rookery_common::puzzle::Puzzle;
use serde::Deserialize;
use shakmaty::san::SanPlus;
use shakmaty::{CastlingMode, Position as _};

use super::PagesState;

use super::board::{Board, squares};
use super::curve::{Curve, Judges};
use super::error::PageError;
use super::layout::{Layout, Page, Tab, page};
use super::rows::GameRow;
use super::setup::Setup;
use super::steps::{Search, Step, Steps};
use super::text;
use crate::api::games::record_at;
use crate::db::DbError;
use crate::openings::Opening;
use crate::server::address::Address;

/// What stands after the question mark.
#[derive(Debug, Deserialize)]
pub(super) struct ViewerQuery {
    /// The ply to show; without it the game's end.
    ply: Option<usize>,
    /// The side at the bottom.
    below: Option<Side>,
}

#[derive(Template)]
#[template(path = "game.html")]
struct GamePage {
    layout: Layout,
    game: GameRow,
    puzzle: Option<Posed>,
    ply: usize,
    back: usize,
    next: usize,
    last: usize,
    below: &'static str,
    board: Board,
    curve: Curve,
    cursor: f64,
    search: Option<Search>,
    rows: Vec<MoveRow>,
    json: String,
    opening: Option<Opening>,
    /// From what position it began, if neither from that of all games nor from a puzzle's.
    start: Option<String>,
    beside: [Option<GameId>; 2],
    /// Where Lichess analyses the position.
    analysis: String,
}

/// The puzzle from which a game began.
struct Posed {
    id: String,
    /// Where it is, if it is one of Lichess's.
    href: Option<String>,
    /// The moves that solve it; empty if the run no longer has it.
    solution: String,
    /// Its rating and themes.
    about: String,
}

struct MoveRow {
    number: u32,
    cells: [Option<MoveCell>; 2],
}

struct MoveCell {
    ply: usize,
    san: String,
    value: String,
}

impl GamePage {
    fn link(&self, ply: impl Borrow<usize>) -> String {
        format!(
            "/games/{}?ply={}&below={}#board",
            self.game.id,
            ply.borrow(),
            self.below
        )
    }

    fn shows(&self, ply: impl Borrow<usize>) -> bool {
        self.ply == *ply.borrow()
    }

    fn flipped(&self) -> String {
        let below = if self.below == "black" {
            "white"
        } else {
            "black"
        };
        format!(
            "/games/{}?ply={}&below={below}#board",
            self.game.id, self.ply
        )
    }
}

/// `GET /games/{id}`
pub(super) async fn viewer(
    State(state): State<PagesState>,
    address: Address,
    id: Result<Path<GameId>, PathRejection>,
    query: Result<Query<ViewerQuery>, QueryRejection>,
) -> Page {
    let (Path(id), Query(query)) = (id?, query?);
    let info = state.db.game(id).await?;
    let record = load(&state, &info).await?;
    let run = state.db.run(&info.run).await?;
    let beside = state.db.games_beside(&info).await?;
    let puzzle = match &info.puzzle {
        Some(id) => Some(posed(&state, &info.run, id).await?),
        None => None,
    };
    let steps = Steps::of(&record).context("the game's start is no position")?;
    let last = steps.positions.len() - 1;
    let ply = query.ply.unwrap_or(last).min(last);
    let below = query.below.unwrap_or_else(|| usual_side(&info, &steps));
    let step = &steps.positions[ply];
    let judges = if info.white == info.black {
        Judges::One
    } else {
        Judges::Two
    };
    page(&GamePage {
        layout: Layout::of(&state.presentation, &run, Tab::Games)
            .pictured(&address)
            .titled(format!("Game {} of {}", info.id, info.run)),
        start: (puzzle.is_none() && record.start.fen.is_some())
            .then(|| Setup::of(&steps.positions[0].position).in_words()),
        puzzle,
        game: GameRow::new(info, state.now()),
        ply,
        back: ply.saturating_sub(1),
        next: last.min(ply + 1),
        last,
        below: if below == Side::Black {
            "black"
        } else {
            "white"
        },
        board: Board::new(
            &step.position,
            &step
                .arrived
                .as_ref()
                .map_or_else(Vec::new, |arrived| squares(arrived.m)),
            below,
        )
        .named("board"),
        curve: Curve::of(&steps.positions, judges),
        cursor: (last as f64 / 160.0).max(0.2),
        search: step.search.clone(),
        rows: rows(&steps.positions),
        opening: Opening::of(record.first_positions().iter()),
        beside,
        analysis: analysis(&steps, ply),
        json: json(&steps)?,
    })
}

/// Length of the identifiers of Lichess's puzzles; those that were mined have longer ones.
const LICHESS_ID: usize = 5;

async fn posed(state: &PagesState, run: &RunName, id: &str) -> Result<Posed, PageError> {
    let is_lichess = id.len() == LICHESS_ID && id.chars().all(|c| c.is_ascii_alphanumeric());
    let href = is_lichess.then(|| format!("https://lichess.org/training/{id}"));
    let id = id.to_owned();
    Ok(match state.db.puzzle(run, &id).await {
        Ok(puzzle) => Posed {
            solution: solution(&puzzle),
            about: about(&puzzle),
            href,
            id,
        },
        Err(DbError::NotFound(_)) => Posed {
            solution: String::new(),
            about: String::new(),
            href,
            id,
        },
        Err(error) => return Err(error.into()),
    })
}

/// What is known of a puzzle, in words.
fn about(puzzle: &Puzzle) -> String {
    let rating = (puzzle.rating > 0).then(|| format!("rated {}", puzzle.rating));
    let all: Vec<String> = rating.into_iter().chain(puzzle.themes.clone()).collect();
    all.join(", ")
}

/// The moves that solve a puzzle, as score sheets have them; empty if it cannot be posed.
fn solution(puzzle: &Puzzle) -> String {
    let Ok(posed) = puzzle.pose() else {
        return String::new();
    };
    let mut position = posed.game.position().clone();
    let mut text = String::new();
    for (place, m) in posed.solution.into_iter().enumerate() {
        let number = position.fullmoves();
        if position.turn().is_white() {
            text.push_str(&format!("{number}. "));
        } else if place == 0 {
            text.push_str(&format!("{number}… "));
        }
        text.push_str(&SanPlus::from_move_and_play_unchecked(&mut position, m).to_string());
        text.push(' ');
    }
    text.trim_end().to_owned()
}

/// Where Lichess analyses a position of the game.
fn analysis(steps: &Steps, ply: usize) -> String {
    let variant = match castling_mode(&steps.positions[0].position) {
        CastlingMode::Standard => "standard",
        CastlingMode::Chess960 => "chess960",
    };
    let fen = fen(&steps.positions[ply].position).replace(' ', "_");
    format!("https://lichess.org/analysis/{variant}/{fen}")
}

/// The side at the bottom if nobody says: a puzzle is seen by its solver, other games by White.
fn usual_side(info: &GameInfo, steps: &Steps) -> Side {
    let searched = steps.positions.iter().find(|step| step.search.is_some());
    let solver = searched.filter(|_| info.puzzle.is_some());
    solver.map_or(Side::White, |step| step.position.turn().into())
}

async fn load(state: &PagesState, info: &GameInfo) -> Result<GameRecord, PageError> {
    let chunk = || format!("game {} of chunk {}", info.place, info.chunk);
    let place = info.place;
    let read = state.view_chunk(&info.chunk, move |bytes| record_at(bytes, place));
    let record = read.await.with_context(chunk)?.with_context(chunk)?;
    Ok(record.with_context(chunk)?)
}

fn rows(positions: &[Step]) -> Vec<MoveRow> {
    let mut rows: Vec<MoveRow> = Vec::new();
    let moves = positions.iter().zip(positions.iter().skip(1)).enumerate();
    for (before, (from, to)) in moves {
        let Some(arrived) = &to.arrived else { continue };
        let value = from
            .search
            .as_ref()
            .map(|search| text::decimal(f64::from(search.white), 2));
        let value = value.unwrap_or_default();
        let cell = MoveCell {
            ply: before + 1,
            san: arrived.san.clone(),
            value,
        };
        if from.position.turn().is_white() {
            rows.push(MoveRow {
                number: arrived.number,
                cells: [Some(cell), None],
            });
        } else if let Some(row) = rows.last_mut().filter(|row| row.number == arrived.number) {
            row.cells[1] = Some(cell);
        } else {
            rows.push(MoveRow {
                number: arrived.number,
                cells: [None, Some(cell)],
            });
        }
    }
    rows
}

/// The steps as JSON that cannot end the element it stands in.
fn json(steps: &Steps) -> Result<String, PageError> {
    let all: Vec<_> = steps.positions.iter().map(Step::json).collect();
    let text = serde_json::to_string(&all).context("a game as JSON")?;
    Ok(text.replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solution_reads_as_a_score_sheet_from_the_solvers_first_move() {
        let puzzle = Puzzle {
            id: "a".to_owned(),
            fen: "6k1/5ppp/8/8/8/8/r4PPP/1R4K1 b - - 0 20".to_owned(),
            moves: ["a2a7", "b1b8"].map(str::to_owned).into(),
            setup: 1,
            rating: 900,
            themes: vec!["mateIn1".to_owned()],
        };
        assert_eq!(solution(&puzzle), "21. Rb8#");
        assert_eq!(about(&puzzle), "rated 900, mateIn1");
        let black = Puzzle {
            fen: "1r4k1/R4ppp/8/8/8/8/5PPP/6K1 w - - 0 20".to_owned(),
            moves: ["a7a2", "b8b1"].map(str::to_owned).into(),
            ..puzzle
        };
        assert_eq!(solution(&black), "20… Rb1#");
    }
}
