//! Positions as text, one a line: `FEN`, `FEN moves e2e4 e7e5 …`, or `startpos` for the FEN.

use rookery_common::chess::moves::{castling_mode, parse_uci, uci};
use rookery_common::chess::{GameHistory, StartError};
use shakmaty::{CastlingMode, Move};

/// Longest line, in bytes: thousands of moves.
pub const MAX_LINE: usize = 64 << 10;

/// A line that is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// There is nothing.
    #[error("the line is empty; write a FEN or startpos")]
    Empty,
    /// It is too long.
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// The position is bad.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is not legal where it stands.
    #[error("move {number}, {text:?}, is not legal there")]
    Move {
        /// Its place, from 1.
        number: usize,
        /// Its text.
        text: String,
    },
}

/// Reads a line.
///
/// # Errors
///
/// [`LineError`] for a bad FEN or an illegal move.
pub fn parse(line: &str) -> Result<GameHistory, LineError> {
    if line.len() > MAX_LINE {
        return Err(LineError::TooLong);
    }
    // Some editors begin a file with a byte order mark.
    let line = line.trim_start_matches('\u{feff}');
    let words: Vec<&str> = line.split_whitespace().collect();
    let end = words
        .iter()
        .position(|word| *word == "moves")
        .unwrap_or(words.len());
    let (start, moves) = words.split_at(end);
    from_parts(&start.join(" "), moves.iter().skip(1).copied())
}

/// A game from a FEN (or `startpos`) and moves.
///
/// # Errors
///
/// [`LineError`] for a bad FEN or an illegal move.
pub fn from_parts<'a>(
    start: &str,
    moves: impl IntoIterator<Item = &'a str>,
) -> Result<GameHistory, LineError> {
    let mut game = match start {
        "" => return Err(LineError::Empty),
        "startpos" => GameHistory::default(),
        fen => GameHistory::from_fen(fen)?,
    };
    for (index, text) in moves.into_iter().enumerate() {
        let refuse = || LineError::Move {
            number: index + 1,
            text: text.chars().take(20).collect(),
        };
        let m = parse_uci(game.position(), text).ok_or_else(refuse)?;
        game.push(m);
    }
    Ok(game)
}

/// How castling is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `e1g1` where the game's castling rights are the standard ones, king takes rook elsewhere.
    ByPosition,
    /// Always king takes rook.
    Chess960,
}

impl Notation {
    /// The choice that a `--chess960` flag makes.
    pub const fn from_flag(chess960: bool) -> Self {
        if chess960 {
            Self::Chess960
        } else {
            Self::ByPosition
        }
    }

    /// A legal move of the game as text. The rights at the game's start decide, so that a game
    /// is written in one way from beginning to end.
    pub fn write(self, game: &GameHistory, m: Move) -> String {
        let mode = match self {
            Self::ByPosition => castling_mode(game.start()),
            Self::Chess960 => CastlingMode::Chess960,
        };
        uci(m, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fens_and_moves_are_read() {
        let game = parse("startpos moves e2e4  e7e5\tg1f3\n").unwrap();
        assert_eq!(game.plies(), 3);
        let fen = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        assert_eq!(parse(&format!("{fen} moves e1g1")).unwrap().plies(), 1);
        assert_eq!(parse(&format!("{fen} moves e1h1")).unwrap().plies(), 1);
        assert_eq!(parse("startpos moves").unwrap().plies(), 0);
        assert_eq!(parse("\u{feff}startpos\r\n").unwrap().plies(), 0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parse("  ").unwrap_err(), LineError::Empty);
        assert_eq!(
            parse(&" ".repeat(MAX_LINE + 1)).unwrap_err(),
            LineError::TooLong
        );
        let error = parse("startpos moves e2e4 e2e4").unwrap_err().to_string();
        assert_eq!(error, "move 2, \"e2e4\", is not legal there");
        assert!(matches!(parse("8/8 w"), Err(LineError::Start(_))));
    }

    #[test]
    fn castling_is_written_as_the_rights_are() {
        let write = |fen: &str, text: &str, notation: Notation| {
            let game = parse(fen).unwrap();
            let m = parse_uci(game.position(), text).unwrap();
            notation.write(&game, m)
        };
        let standard = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        assert_eq!(write(standard, "e1g1", Notation::ByPosition), "e1g1");
        assert_eq!(write(standard, "e1g1", Notation::Chess960), "e1h1");
        let other = "4k3/8/8/8/8/8/8/1R2K2R w HB - 0 1";
        assert_eq!(write(other, "e1b1", Notation::ByPosition), "e1b1");
    }
}
