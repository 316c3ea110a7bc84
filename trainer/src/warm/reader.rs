//! A PGN file's games, one after the other.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use pgn_reader::Reader;

use super::game::{GameVisitor, PgnGame, Skipped};
use super::source::{self, BytesRead};

/// Errors in a row after which the rest of a file is given up.
const MOST_ERRORS: u32 = 1000;
/// Longest tag line and comment that the reader takes in one piece.
const TAG_BYTES: usize = 4096;

/// How reading a file ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// At the end of the file.
    Whole,
    /// Its rest could not be read.
    Broken,
    /// Whoever took the games wanted no more.
    Stopped,
}

/// Gives every game of a file to `take`, or why it is passed over, until that breaks off.
///
/// # Errors
///
/// If the file cannot be opened, or what `take` gives.
pub fn each_game(
    path: &Path,
    read: &BytesRead,
    mut take: impl FnMut(Result<PgnGame, Skipped>) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Ended> {
    let mut reader = Reader::build(source::open(path, read)?)
        .set_supported_tag_line_length(TAG_BYTES)
        .set_supported_comment_length(TAG_BYTES)
        .finish();
    let (mut errors, mut games) = (0, 0_u64);
    loop {
        let game = match reader.read_game(&mut GameVisitor) {
            Ok(None) => return Ok(Ended::Whole),
            Ok(Some(game)) => {
                errors = 0;
                game
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData && errors < MOST_ERRORS => {
                errors += 1;
                Err(Skipped::Malformed)
            }
            Err(error) => {
                tracing::warn!("{} breaks off after game {games}: {error}", path.display());
                return Ok(Ended::Broken);
            }
        };
        games += 1;
        if take(game)?.is_break() {
            return Ok(Ended::Stopped);
        }
    }
}
