//! Puzzles: positions with a solution, and when a game solved one. [`table`] reads files of them.

pub mod table;

use serde::{Deserialize, Serialize};
use shakmaty::{Move, Position};
use utoipa::ToSchema;

use crate::chess::moves::parse_uci;
use crate::chess::{GameHistory, StartError, Termination};

/// A puzzle as jobs carry it. As in Lichess's database, `fen` is the position before the
/// opponent's last move, `moves[0]` is that move, and the solution follows; a mined puzzle may
/// have no such move, then `setup` is 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Puzzle {
    /// The identifier in its set, at most 32 characters.
    pub id: String,
    /// The position from which `moves` are played.
    pub fen: String,
    /// Moves in UCI: `setup` moves, then the solution, the solver first.
    pub moves: Vec<String>,
    /// How many of `moves` are played before the solver thinks.
    pub setup: u32,
    /// Lichess rating; mined puzzles have 0.
    #[serde(default)]
    pub rating: u32,
    /// Themes, for example `mateIn2`.
    #[serde(default)]
    pub themes: Vec<String>,
}

/// A puzzle that cannot be posed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PuzzleError {
    /// The position is bad.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A move is not legal where it stands.
    #[error("move {index} of the puzzle, {text:?}, is not legal there")]
    Move {
        /// Its place, from 0.
        index: usize,
        /// Its text.
        text: String,
    },
    /// There is nothing to solve.
    #[error("the puzzle has no solution moves")]
    NoSolution,
    /// The rules have ended the game where the solver is to begin.
    #[error("the game is over before the solution: {0:?}")]
    Over(Termination),
}

/// A puzzle that has been checked.
#[derive(Debug, Clone)]
pub struct PosedPuzzle {
    /// The game when the solver begins to think.
    pub game: GameHistory,
    /// The moves that led there from the puzzle's FEN.
    pub setup: Vec<Move>,
    /// The solution, the solver's moves at even places.
    pub solution: Vec<Move>,
    /// Whether the solution ends in checkmate.
    pub mates: bool,
}

impl Puzzle {
    /// Checks the puzzle and sets it up.
    ///
    /// # Errors
    ///
    /// [`PuzzleError`] for a bad position, an illegal move, or no solution.
    pub fn pose(&self) -> Result<PosedPuzzle, PuzzleError> {
        let mut game = GameHistory::from_fen(&self.fen)?;
        let mut posed = None;
        let mut line = Vec::with_capacity(self.moves.len());
        for (index, text) in self.moves.iter().enumerate() {
            if index == self.setup as usize {
                posed = Some(game.clone());
            }
            let refuse = || PuzzleError::Move {
                index,
                text: text.chars().take(20).collect::<String>(),
            };
            let m = parse_uci(game.position(), text).ok_or_else(refuse)?;
            game.push(m);
            line.push(m);
        }
        let posed = posed.ok_or(PuzzleError::NoSolution)?;
        if let Some(end) = posed.end() {
            return Err(PuzzleError::Over(end.termination));
        }
        let solution = line.split_off(self.setup as usize);
        let mates = game.position().is_checkmate();
        Ok(PosedPuzzle {
            game: posed,
            setup: line,
            solution,
            mates,
        })
    }
}

impl PosedPuzzle {
    /// Whether a game from the puzzle's position solved it.
    ///
    /// A puzzle whose solution is mate is solved by giving mate within as many moves as the
    /// solution takes, whatever the way. Any other is solved if the solver plays the solution's
    /// moves, or mates, for as long as the opponent plays the solution's replies.
    pub fn solved_by(&self, played: &[Move]) -> bool {
        let mut game = self.game.clone();
        for (index, m) in played.iter().enumerate().take(self.solution.len()) {
            game.push(*m);
            let solver = index % 2 == 0;
            if solver && game.position().is_checkmate() {
                return true;
            }
            if !self.mates && *m != self.solution[index] {
                return !solver;
            }
        }
        !self.mates && played.len() >= self.solution.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pose(fen: &str, moves: &str, setup: u32) -> Result<PosedPuzzle, PuzzleError> {
        let moves = moves.split_whitespace().map(str::to_owned).collect();
        let (id, themes) = ("x".to_owned(), Vec::new());
        let puzzle = Puzzle {
            id,
            fen: fen.to_owned(),
            moves,
            setup,
            rating: 0,
            themes,
        };
        puzzle.pose()
    }

    fn puzzle(fen: &str, moves: &str, setup: u32) -> PosedPuzzle {
        pose(fen, moves, setup).unwrap()
    }

    /// A job with such a puzzle could not be played.
    #[test]
    fn a_game_that_the_rules_have_ended_is_no_puzzle() {
        let after = |plies: u32| format!("6k1/8/8/8/8/8/R7/4K2R w - - {plies} 90");
        for (plies, is_over) in [(98, false), (99, true), (120, true)] {
            let posed = pose(&after(plies), "a2a3 g8f8 h1h8", 1);
            let refused = matches!(posed, Err(PuzzleError::Over(Termination::FiftyMove)));
            assert_eq!(refused, is_over, "{plies}: {posed:?}");
        }
    }

    fn solved(puzzle: &PosedPuzzle, moves: &str) -> bool {
        let mut game = puzzle.game.clone();
        let played: Vec<Move> = moves
            .split_whitespace()
            .map(|text| {
                let m = parse_uci(game.position(), text).unwrap();
                game.push(m);
                m
            })
            .collect();
        puzzle.solved_by(&played)
    }

    #[test]
    fn any_mate_in_time_solves_a_mate() {
        let ladder = puzzle("k7/8/8/8/8/8/6R1/K6R b - - 0 1", "a8b8 h1h7 b8a8 g2g8", 1);
        assert!(ladder.mates);
        assert!(solved(&ladder, "h1h7 b8a8 g2g8"));
        assert!(
            solved(&ladder, "g2g7 b8a8 h1h8"),
            "another way in the same time"
        );
        assert!(!solved(&ladder, "h1h2 b8a8 h2h8"));
        assert!(!solved(&ladder, "h1h7 b8c8"), "not finished");
    }

    #[test]
    fn other_puzzles_follow_the_line() {
        let fork = puzzle("4k3/8/8/3q4/8/4N3/8/4K3 w - - 0 1", "e3d5 e8d7 d5f6", 0);
        assert!(!fork.mates);
        assert!(solved(&fork, "e3d5 e8d7 d5f6"));
        assert!(
            solved(&fork, "e3d5 e8d8"),
            "the opponent left the line first"
        );
        assert!(!solved(&fork, "e3c4"));
    }

    #[test]
    fn bad_puzzles_are_refused() {
        let puzzle = |moves: &[&str], setup| Puzzle {
            id: "x".into(),
            fen: "4k3/8/8/8/8/8/8/4K3 w - - 0 1".into(),
            moves: moves.iter().map(|m| (*m).to_owned()).collect(),
            setup,
            rating: 0,
            themes: Vec::new(),
        };
        assert!(matches!(
            puzzle(&["e1e5"], 0).pose(),
            Err(PuzzleError::Move { index: 0, .. })
        ));
        assert!(matches!(
            puzzle(&["e1e2"], 1).pose(),
            Err(PuzzleError::NoSolution)
        ));
    }
}
