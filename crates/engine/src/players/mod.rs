//! Players: whatever chooses moves, from a random mover to a network, one interface for all.
//!
//! They are the known opponents against which a network's strength is measured. A [`Player`] is
//! given many games at once, so that a network fills its batches; the others go through them one
//! by one. [`program`] is whichever program a name says, and needs nothing else: `random` or `alpha_beta`.
//! [`searching`] needs an evaluator; players that are other people's programs live outside of this
//! crate, which starts none.

mod alpha_beta;
pub mod program;
mod random;
pub mod searching;
mod static_evaluation;

use rookery_common::chess::GameHistory;
use rookery_common::chunk::record::GameStart;
use shakmaty::Move;

use crate::evaluator::Wdl;

pub use program::ProgramPlayer;
pub use searching::SearchingPlayer;
pub use static_evaluation::{is_ending, static_evaluation};

/// A game in hand: the position with its history, and the moves that led to it.
#[derive(Debug, Clone)]
pub struct LiveGame {
    history: GameHistory,
    moves: Vec<Move>,
    /// How many of the moves its start has.
    opening: usize,
}

impl LiveGame {
    /// A game at its start, whose own moves are played.
    ///
    /// # Errors
    ///
    /// If the start is not a position.
    pub fn new(start: &GameStart) -> Result<Self, rookery_common::chess::StartError> {
        Ok(Self {
            history: start.history()?,
            moves: start.moves.clone(),
            opening: start.moves.len(),
        })
    }

    /// A game whose position and history are known, but not the moves that led there.
    pub const fn from_history(history: GameHistory) -> Self {
        Self {
            history,
            moves: Vec::new(),
            opening: 0,
        }
    }

    /// Plays a move that is legal in the position on the board.
    pub fn push(&mut self, m: Move) {
        self.history.push(m);
        self.moves.push(m);
    }

    /// The position with its history.
    pub const fn history(&self) -> &GameHistory {
        &self.history
    }

    /// All moves since the position from which the game began.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// Moves that its players have chosen, which is what a limit of plies counts, in matches of runs as well.
    pub const fn plies(&self) -> usize {
        self.moves.len() - self.opening
    }
}

/// What a player does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The move, legal in the game's position.
    pub m: Move,
    /// What the player expects, for itself, if it says.
    pub value: Option<Wdl>,
}

/// A player that could not choose.
#[derive(Debug, thiserror::Error)]
#[error("{player} cannot choose a move: {reason}")]
pub struct PlayerError {
    /// Who.
    pub player: String,
    /// Why.
    pub reason: String,
}

/// Something that chooses moves.
pub trait Player {
    /// Chooses a move in each of these games, in their order. No game is over.
    ///
    /// # Errors
    ///
    /// [`PlayerError`] if it cannot.
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError>;
}

impl<P: Player + ?Sized> Player for Box<P> {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        (**self).choose(games)
    }
}

#[cfg(test)]
mod tests;
