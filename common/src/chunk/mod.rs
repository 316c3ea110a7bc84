//! Chunks: files of finished games.
//!
//! [`record`] is a game in memory.

pub mod record;

pub use record::{Effort, GameKind, GameRecord, GameStart, PlyRecord, Side};
