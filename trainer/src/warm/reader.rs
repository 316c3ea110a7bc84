//! A PGN file's games, one after the other.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use pgn_reader::Reader;

use super::game::{GameVisitor, PgnGame, Skipped};
use super::source::{self, BytesRead};
use super::spelling::Spelling;

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
    let file = Spelling::new(source::open(path, read)?);
    let mut reader = Reader::build(file)
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

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: &str = "[White \"Sf3\"]\n[Result \"1-0\"]\n\n";

    /// What comes of each game of a file that holds these movetexts.
    fn games(movetexts: &[&str]) -> Vec<Result<PgnGame, Skipped>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("games.pgn");
        let games = movetexts.iter().map(|text| format!("{TAGS}{text} 1-0\n\n"));
        std::fs::write(&path, games.collect::<String>()).unwrap();
        let mut games = Vec::new();
        let ended = each_game(&path, &BytesRead::default(), |game| {
            games.push(game);
            Ok(ControlFlow::Continue(()))
        });
        assert_eq!(ended.unwrap(), Ended::Whole);
        games
    }

    #[test]
    fn moves_are_read_however_they_are_spelled() {
        let games = games(&[
            "1. e4 a6 2. e5 d5 3. exd6 Nc6 4. dxc7 Bg4 5. cxd8=Q+ Rxd8 6. Nf3 Bxf3 7. Bc4 Bxd1 8. O-O",
            "1. e2-e4 a7-a6 2. e4-e5 d7-d5 3. e5xd6e.p. Nb8-c6 4. d6:c7 Bc8-g4 5. c7xd8Q++ Ra8:d8 \
             6. Ng1-f3 Bg4xf3 7. Bf1-c4 Bf3xd1 8. O-O=",
            "1.e4 ♟a6 2.e5+= d5 3.ed6 ep ♞c6 4.dc7 ♝g4N 5.cd8/Q+!! ♜d8 6.♘f3 ♝f3 7.♗c4!? ♝d1 8.o-o",
            "1. e2e4 a7a6 2. e4e5 d7d5 3. e5d6 b8c6 4. d6c7 c8g4 5. c7d8q a8d8 6. g1f3 g4f3 \
             7. f1c4 f3d1 8. e1g1",
        ]);
        let moves = |game: &Result<PgnGame, Skipped>| game.as_ref().unwrap().moves.clone();
        assert_eq!(moves(&games[0]).len(), 15);
        for game in &games[1..] {
            assert_eq!(moves(game), moves(&games[0]));
        }
    }

    #[test]
    fn a_game_with_a_move_that_cannot_be_read_is_passed_over() {
        let good = "1. e4 (1. Sf3) e5 {Sf3} (1... -- 2. Sf3) 2. Nf3";
        let games = games(&[
            "1. e4 e5 2. Sf3 Sc6 3. d4 exd4",
            good,
            "1. e4 -- 2. d4",
            good,
        ]);
        let unreadable = Some(Skipped::UnreadableMove);
        let reasons: Vec<_> = games
            .iter()
            .map(|game| game.as_ref().err().copied())
            .collect();
        assert_eq!(reasons, [unreadable, None, unreadable, None]);
        assert_eq!(games[1].as_ref().unwrap().moves.len(), 3);
    }
}
