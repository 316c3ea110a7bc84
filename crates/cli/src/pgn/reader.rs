//! A PGN file's games, one after the other.

use std::ops::ControlFlow;
use std::path::Path;

use rookery_common::pgn::{Games, PgnGame, Skipped};

use super::source::{self, BytesRead};

/// How reading a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// At the end of the file.
    Whole,
    /// Its rest could not be read.
    Broken,
    /// The receiver of the games is gone.
    Stopped,
}

/// Gives every game of a file to `take`, or why nothing can be learnt from it, until that breaks off.
///
/// # Errors
///
/// If the file cannot be opened, or what `take` gives.
pub fn each_game(
    path: &Path,
    read: &BytesRead,
    mut take: impl FnMut(Result<PgnGame, Skipped>) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Ended> {
    for (index, game) in Games::new(source::open(path, read)?).enumerate() {
        match game {
            Ok(game) => {
                if take(game.and_then(PgnGame::trainable))?.is_break() {
                    return Ok(Ended::Stopped);
                }
            }
            Err(error) => {
                tracing::warn!("{} breaks off after game {index}: {error}", path.display());
                return Ok(Ended::Broken);
            }
        }
    }
    Ok(Ended::Whole)
}
