//! Whether a game begins where its job says, and is the puzzle or of the pair that its index gives.

use super::super::error::{ChunkError, ChunkErrorCode};
use super::super::record::{GameKind, GameRecord, GameStart, Side};
use super::fail;
use crate::chess::moves::canonical_moves;
use crate::protocol::jobs::{Opening, PairTask, Work, selfplay_start};
use crate::puzzle::Puzzle;

/// Checks the start; of a match game the candidate's side.
pub(super) fn check(game: &GameRecord, work: &Work) -> Result<Option<Side>, ChunkError> {
    let place = game.index as usize;
    match work {
        Work::SelfPlay {
            params, openings, ..
        } => check_selfplay(game, openings, params.opening_plies).map(|()| None),
        Work::Puzzles { puzzles, .. } => check_puzzle(game, &puzzles[place]).map(|()| None),
        Work::Match { pairs, .. } => check_pair(game, pairs).map(Some),
        Work::Audit { tasks, .. } => {
            let (start, _) = tasks[place].parse().map_err(|e| wrong(e.to_string()))?;
            if game.start == start {
                return Ok(None);
            }
            Err(wrong("the game does not begin where its task does"))
        }
    }
}

fn wrong(detail: impl Into<String>) -> ChunkError {
    fail(ChunkErrorCode::WrongStart, detail)
}

/// A game begins at its opening, after which there are random plies: as many as the job says, or fewer where
/// the next one would have ended the game.
fn check_selfplay(
    game: &GameRecord,
    openings: &[Opening],
    opening_plies: u32,
) -> Result<(), ChunkError> {
    let start = selfplay_start(openings, game.index).map_err(|error| wrong(error.to_string()))?;
    let random = game.start.moves.strip_prefix(start.moves.as_slice());
    let Some(random) = random.filter(|_| game.start.fen == start.fen) else {
        let detail = format!("self-play game {} does not begin where leased", game.index);
        return Err(wrong(detail));
    };
    let leased = opening_plies as usize;
    if random.len() == leased || (random.len() < leased && can_end_at_once(&game.start)?) {
        return Ok(());
    }
    let detail = format!(
        "{} random opening plies, leased were {leased}",
        random.len()
    );
    Err(wrong(detail))
}

/// Whether a move from here ends the game.
fn can_end_at_once(start: &GameStart) -> Result<bool, ChunkError> {
    let mut history = start.history().map_err(|error| wrong(error.to_string()))?;
    let legal = canonical_moves(history.position());
    Ok(legal.into_iter().any(|m| {
        history.push(m);
        let ended = history.end().is_some();
        history.pop();
        ended
    }))
}

fn check_puzzle(game: &GameRecord, puzzle: &Puzzle) -> Result<(), ChunkError> {
    let posed = puzzle.pose().map_err(|error| wrong(error.to_string()))?;
    let same_start = game.start.fen.as_deref() == Some(puzzle.fen.as_str());
    if !same_start || game.start.moves != posed.setup {
        return Err(wrong(format!(
            "the game does not begin at puzzle {}",
            puzzle.id
        )));
    }
    let played: Vec<_> = game.plies.iter().map(|ply| ply.played).collect();
    let expected = GameKind::Puzzle {
        puzzle: puzzle.id.clone(),
        solved: posed.solved_by(&played),
    };
    if game.kind == expected {
        return Ok(());
    }
    let detail = format!("claimed {:?}, replayed {expected:?}", game.kind);
    Err(fail(ChunkErrorCode::FalseSolution, detail))
}

fn check_pair(game: &GameRecord, pairs: &[PairTask]) -> Result<Side, ChunkError> {
    let task = &pairs[game.index as usize / 2];
    let candidate = if game.index.is_multiple_of(2) {
        Side::White
    } else {
        Side::Black
    };
    let expected = GameKind::Match {
        pair: task.pair,
        candidate,
    };
    if game.kind != expected {
        let detail = format!("claimed {:?}, leased was {expected:?}", game.kind);
        return Err(fail(ChunkErrorCode::WrongPair, detail));
    }
    let start = task
        .opening
        .start()
        .map_err(|error| wrong(error.to_string()))?;
    if game.start == start {
        return Ok(candidate);
    }
    Err(wrong(format!(
        "the game does not begin at the opening of pair {}",
        task.pair
    )))
}
