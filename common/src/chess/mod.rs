//! Chess as Rookery sees it, on top of shakmaty's rules.
//!
//! [`history`] is a game so far, [`outcome`] how it ended, [`fen()`] a position as text, [`moves`] the
//! canonical order and text of moves, [`packed`] moves in 16 bits, [`mate`] the search for forced
//! mates, [`tables`] the end of games by endgame tables.

mod fen;
pub mod history;
pub mod mate;
pub mod moves;
pub mod outcome;
pub mod packed;
pub mod tables;

pub use fen::fen;
pub use history::{GameHistory, HistoryEntry, StartError};
pub use outcome::{GameEnd, GameResult, Termination};
pub use packed::PackedMove;
pub use tables::{EndgameTables, TableMoves};
