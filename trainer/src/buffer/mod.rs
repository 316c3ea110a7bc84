//! The replay window: decoded games kept compactly, and positions sampled from the newest of them.
//!
//! [`record`] is a game as bytes, well under 100 a position, from which any of its positions is encoded
//! exactly as in play, [`target`] its policy targets, [`value`] its value targets; [`segment`] is the memory that games lie in, a
//! mapped file as a rule, [`store`] the folder of those files; [`game`] is one game where it lies;
//! [`ReplayBuffer`] is the queue of games, oldest first; a [`Window`] is a view of its newest positions,
//! and a [`Mixture`] what batches are drawn from.
//!
//! ```text
//! chunk -> GameRecord -> record -> GameStore -> StoredGame -> ReplayBuffer -> Window -> Mixture -> Batch
//! ```

pub mod game;
pub mod record;
pub mod segment;
pub mod store;
pub mod target;
pub mod value;
pub mod window;

use std::collections::VecDeque;

pub use game::{PolicyTarget, StoredGame};
pub use record::Source;
pub use store::GameStore;
pub use value::ValueMix;
pub use window::{Mixture, Pick, Window};

/// Games in the order of the ledger, as many as the largest window needs.
#[derive(Debug)]
pub struct ReplayBuffer {
    games: VecDeque<StoredGame>,
    positions: u64,
    capacity: u64,
}

impl ReplayBuffer {
    /// An empty buffer that keeps the newest games with at least `capacity` positions.
    pub const fn new(capacity: u64) -> Self {
        Self {
            games: VecDeque::new(),
            positions: 0,
            capacity,
        }
    }

    /// Adds a game at the new end.
    pub fn add(&mut self, game: StoredGame) {
        if game.positions() > 0 {
            self.positions += u64::from(game.positions());
            self.games.push_back(game);
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        while let Some(oldest) = self.games.front() {
            let rest = self.positions - u64::from(oldest.positions());
            if rest < self.capacity {
                return;
            }
            self.positions = rest;
            self.games.pop_front();
        }
    }

    /// How many positions are kept.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Changes how many positions are kept; games that are gone do not come back.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.drop_oldest();
    }

    /// Positions that are kept.
    pub const fn positions(&self) -> u64 {
        self.positions
    }

    /// Bytes that the games take.
    pub fn bytes(&self) -> usize {
        self.games.iter().map(StoredGame::bytes).sum()
    }

    /// The newest `size` positions, or all if there are fewer.
    pub fn window(&self, size: u64) -> Window {
        let mut games = Vec::new();
        let mut left = size;
        for game in self.games.iter().rev() {
            if left == 0 {
                break;
            }
            games.push(game.clone());
            left = left.saturating_sub(u64::from(game.positions()));
        }
        Window::new(games, size)
    }
}

#[cfg(test)]
mod tests;
