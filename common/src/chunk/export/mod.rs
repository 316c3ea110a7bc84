//! Games in other formats: JSON for people and scripts, PGN for chess programs, Lc0's V6 records
//! for its training tools.

pub mod json;
pub mod pgn;
pub mod v6;

use shakmaty::{CastlingMode, Chess};

/// Whether castling is written as Chess960 programs expect it.
fn is_chess960(position: &Chess) -> bool {
    crate::chess::moves::castling_mode(position) == CastlingMode::Chess960
}
