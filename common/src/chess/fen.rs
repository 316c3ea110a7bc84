//! Positions as text in Forsyth-Edwards Notation.

use shakmaty::fen::Fen;
use shakmaty::{Chess, EnPassantMode};

/// A position as FEN: castling rights as `KQkq` where the rooks are the outermost ones, else as rook
/// files (X-FEN).
pub fn fen(position: &Chess) -> String {
    Fen::from_position(position, EnPassantMode::Legal).to_string()
}
