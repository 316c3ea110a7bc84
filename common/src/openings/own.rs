//! The built-in book.

use std::collections::HashSet;

use shakmaty::{Position as _, Role};

use crate::chess::GameHistory;
use crate::chess::moves::parse_uci;
use crate::protocol::jobs::Opening;

/// White's and Black's sensible moves at each ply: central pawns, fianchetto pawns, and the
/// natural squares of knights and bishops.
const MOVES: [&[&str]; 4] = [
    &["e2e4", "d2d4", "c2c4", "g1f3", "g2g3", "b2b3"],
    &[
        "e7e5", "c7c5", "e7e6", "c7c6", "d7d5", "d7d6", "g8f6", "g7g6", "b7b6",
    ],
    &[
        "g1f3", "b1c3", "d2d4", "c2c4", "d2d3", "g2g3", "e2e3", "e2e4",
    ],
    &["b8c6", "g8f6", "d7d5", "d7d6", "e7e6", "g7g6", "c7c5"],
];

/// Lines that end after this many plies are kept.
const LENGTHS: [usize; 3] = [2, 3, 4];

/// All lines, each position once, in the order of their lengths.
pub(super) fn lines() -> Vec<Opening> {
    let mut seen = HashSet::new();
    let mut openings = Vec::new();
    let mut level = vec![(GameHistory::default(), Vec::new())];
    for (ply, candidates) in MOVES.iter().enumerate() {
        level = level
            .iter()
            .flat_map(|line| candidates.iter().filter_map(|text| extended(line, text)))
            .filter(|(game, _)| seen.insert(game.repetition_key()))
            .collect();
        if LENGTHS.contains(&(ply + 1)) {
            openings.extend(level.iter().map(|(_, moves)| Opening {
                fen: None,
                moves: moves.clone(),
            }));
        }
    }
    openings
}

/// A line with one more move, if it is legal and leaves nothing to take with a pawn.
fn extended(
    (game, moves): &(GameHistory, Vec<String>),
    text: &str,
) -> Option<(GameHistory, Vec<String>)> {
    let mut game = game.clone();
    game.push(parse_uci(game.position(), text)?);
    let loses_material = game
        .position()
        .legal_moves()
        .into_iter()
        .any(|m| m.is_capture() && (m.role() == Role::Pawn && m.capture() != Some(Role::Pawn)));
    let mut moves = moves.clone();
    moves.push(text.to_owned());
    (!loses_material).then_some((game, moves))
}
