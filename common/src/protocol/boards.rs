//! Live boards: a game that is being played, as workers share it with their heartbeats.
//!
//! Each [`SharedBoard`] stands for itself: a position and the moves from there on. So a heartbeat that is lost, or one
//! that reaches another coordinator, spoils nothing.

use serde::{Deserialize, Serialize};
use shakmaty::{Chess, Move};
use utoipa::ToSchema;

use crate::chess::moves::{castling_mode, parse_uci, uci};
use crate::chess::{GameHistory, StartError, fen};
use crate::chunk::GameStart;
use crate::ids::{JobId, NetworkNumber, RunName};

/// Most bytes of a board as JSON.
pub const BOARD_BYTES: usize = 200;
/// Most moves of a board.
pub const BOARD_MOVES: usize = 16;

/// The newest moves of one game of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SharedBoard {
    /// Which game of the job this is, from 0.
    pub game: u32,
    /// The position before the moves, as FEN.
    pub fen: String,
    /// The moves in UCI, with spaces between them; at most 16.
    pub moves: String,
    /// The last search's expected result for White, in percent: 100 is a win, -100 a loss.
    pub value: i8,
}

/// A board that cannot be shown.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BoardError {
    /// It is too long.
    #[error("the board has {0} bytes, allowed are {BOARD_BYTES}")]
    Bytes(usize),
    /// It has too many moves.
    #[error("the board has more than {BOARD_MOVES} moves")]
    Moves,
    /// Its value is out of range.
    #[error("the board's value is {0}, allowed is -100 to 100")]
    Value(i8),
    /// Its position is bad.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is not legal where it stands.
    #[error("the board's move {0:?} is not legal there")]
    Move(String),
}

impl SharedBoard {
    /// The newest moves of a game from `start`, as many as have room; none if the start is bad.
    pub fn of(game: u32, start: &GameStart, searched: &[Move], value: i8) -> Option<Self> {
        let mut history = start.history().ok()?;
        searched.iter().for_each(|m| history.push(*m));
        let moves: Vec<Move> = start.moves.iter().chain(searched).copied().collect();
        let mode = castling_mode(history.start());
        (0..=moves.len().min(BOARD_MOVES)).rev().find_map(|count| {
            let (before, _) = history.look_back(count)?;
            let newest = moves.iter().skip(moves.len() - count);
            let texts: Vec<String> = newest.map(|m| uci(*m, mode)).collect();
            let board = Self {
                game,
                fen: fen(before),
                moves: texts.join(" "),
                value,
            };
            (board.bytes() <= BOARD_BYTES).then_some(board)
        })
    }

    fn bytes(&self) -> usize {
        serde_json::to_vec(self).map_or(usize::MAX, |json| json.len())
    }

    /// The positions of the board, the first without a move that led to it.
    ///
    /// # Errors
    ///
    /// [`BoardError`] if it is too long, or its position or a move is not legal.
    pub fn positions(&self) -> Result<Vec<(Option<Move>, Chess)>, BoardError> {
        let bytes = self.bytes();
        if bytes > BOARD_BYTES {
            return Err(BoardError::Bytes(bytes));
        }
        if !(-100..=100).contains(&self.value) {
            return Err(BoardError::Value(self.value));
        }
        let texts: Vec<&str> = self.moves.split_whitespace().collect();
        if texts.len() > BOARD_MOVES {
            return Err(BoardError::Moves);
        }
        let mut history = GameHistory::from_fen(&self.fen)?;
        let mut positions = vec![(None, history.position().clone())];
        for text in texts {
            let refuse = || BoardError::Move(text.to_owned());
            let m = parse_uci(history.position(), text).ok_or_else(refuse)?;
            history.push(m);
            positions.push((Some(m), history.position().clone()));
        }
        Ok(positions)
    }
}

/// A board that people watch, as the coordinator has replayed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LiveBoard {
    /// The run.
    pub run: RunName,
    /// The job.
    pub job: JobId,
    /// Which game of the job this is, from 0.
    pub game: u32,
    /// The contributor's name.
    pub contributor: String,
    /// The number of White's network.
    pub white: NetworkNumber,
    /// The number of Black's network.
    pub black: NetworkNumber,
    /// The newest positions, oldest first.
    pub positions: Vec<LivePosition>,
    /// The last search's expected result for White, in percent: 100 is a win, -100 a loss.
    pub value: i8,
}

/// A position of a [`LiveBoard`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LivePosition {
    /// The position as FEN.
    pub fen: String,
    /// The squares from which and to which the last move went, for example `["e2", "e4"]`; absent before the first move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<[String; 2]>,
}

impl LivePosition {
    /// A position with the move that led to it.
    pub fn new(last: Option<Move>, position: &Chess) -> Self {
        let squares = last.and_then(|m| Some([m.from()?.to_string(), m.to().to_string()]));
        Self {
            fen: fen(position),
            last: squares,
        }
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Position as _;

    use super::*;

    fn played(texts: &[&str]) -> (GameStart, Vec<Move>) {
        let mut history = GameHistory::default();
        for text in texts {
            history.push(parse_uci(history.position(), text).unwrap());
        }
        let mut replay = GameHistory::default();
        let moves = texts.iter().map(|text| {
            let m = parse_uci(replay.position(), text).unwrap();
            replay.push(m);
            m
        });
        (GameStart::default(), moves.collect())
    }

    #[test]
    fn a_board_has_the_newest_moves_and_fits_a_heartbeat() {
        let there_and_back = ["g1f3", "g8f6", "f3g1", "f6g8"].repeat(10);
        let (start, moves) = played(&there_and_back);
        let board = SharedBoard::of(3, &start, &moves, -12).unwrap();
        assert!(board.bytes() <= BOARD_BYTES);
        let positions = board.positions().unwrap();
        let texts: Vec<&str> = board.moves.split(' ').collect();
        assert!(texts.len() >= 12, "{board:?}");
        assert_eq!(texts, there_and_back[40 - texts.len()..]);
        assert_eq!(positions.len(), texts.len() + 1);
        let last = positions.last().unwrap();
        assert_eq!(last.1.board(), Chess::default().board());
    }

    #[test]
    fn castling_and_a_start_of_its_own_come_through() {
        let start = GameStart {
            fen: Some("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1".to_owned()),
            moves: Vec::new(),
        };
        let castles = parse_uci(start.history().unwrap().position(), "e1g1").unwrap();
        let board = SharedBoard::of(0, &start, &[castles], 0).unwrap();
        let (m, position) = board.positions().unwrap().pop().unwrap();
        assert_eq!(m, Some(castles));
        assert!(fen(&position).starts_with("r3k2r/8/8/8/8/8/8/R4RK1 b"));
    }

    #[test]
    fn what_no_game_can_be_is_refused() {
        let board = |fen: &str, moves: &str, value| SharedBoard {
            game: 0,
            fen: fen.to_owned(),
            moves: moves.to_owned(),
            value,
        };
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let illegal = board(start, "e2e4 e2e4", 0).positions().unwrap_err();
        assert_eq!(illegal, BoardError::Move("e2e4".to_owned()));
        let long = board(start, &"e2e4 ".repeat(40), 0).positions();
        assert!(matches!(long, Err(BoardError::Bytes(_))));
        assert_eq!(
            board(start, "", 101).positions(),
            Err(BoardError::Value(101))
        );
        for fen in ["", "<b>", "8/8/8/8/8/8/8/8 w - - 0 1"] {
            let refused = board(fen, "", 0).positions();
            assert!(matches!(refused, Err(BoardError::Start(_))), "{fen}");
        }
    }
}
