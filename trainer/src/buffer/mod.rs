//! The replay window: decoded games kept compactly, and positions sampled from the newest of them.
//!
//! [`game`] is one game in about 100 bytes a position, from which any of its positions is encoded
//! exactly as in play; [`ReplayBuffer`] is the queue of games, oldest first; a [`Window`] is a
//! view of its newest positions that stays as it is while workers sample it.
//!
//! ```text
//! chunk -> GameRecord -> StoredGame -> ReplayBuffer -> Window -> (game, ply) -> Batch
//! ```

pub mod game;

use std::collections::VecDeque;
use std::sync::Arc;

pub use game::StoredGame;

/// Games in the order of the ledger, as many as the largest window needs.
#[derive(Debug)]
pub struct ReplayBuffer {
    games: VecDeque<Arc<StoredGame>>,
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
            self.games.push_back(Arc::new(game));
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

    /// Positions in memory.
    pub const fn positions(&self) -> u64 {
        self.positions
    }

    /// Bytes that the games take.
    pub fn bytes(&self) -> usize {
        self.games.iter().map(|game| game.bytes()).sum()
    }

    /// The newest `size` positions, or all if there are fewer.
    pub fn window(&self, size: u64) -> Window {
        let mut games = Vec::new();
        let mut left = size;
        for game in self.games.iter().rev() {
            if left == 0 {
                break;
            }
            games.push(Arc::clone(game));
            left = left.saturating_sub(u64::from(game.positions()));
        }
        Window::new(games, size)
    }
}

/// The newest positions at one moment; cheap to clone, the same for ever.
#[derive(Debug, Clone)]
pub struct Window {
    /// Newest first.
    games: Arc<[Arc<StoredGame>]>,
    /// For each game, how many positions lie in it and all newer ones.
    ends: Arc<[u64]>,
    size: u64,
}

impl Window {
    /// A window over games, newest first, cut at `size` positions.
    fn new(games: Vec<Arc<StoredGame>>, size: u64) -> Self {
        let mut total = 0;
        let ends: Arc<[u64]> = games
            .iter()
            .map(|game| {
                total += u64::from(game.positions());
                total
            })
            .collect();
        Self {
            games: games.into(),
            ends,
            size: size.min(total),
        }
    }

    /// Positions that can be sampled.
    pub const fn len(&self) -> u64 {
        self.size
    }

    /// Whether there is no position.
    pub const fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The `age`-th newest position, 0 to `len() - 1`: its game and searched ply. Every position
    /// has one age, so uniform ages are uniform positions, however long the games are.
    pub fn position(&self, age: u64) -> Option<(&StoredGame, u32)> {
        if age >= self.size {
            return None;
        }
        let index = self.ends.partition_point(|end| *end <= age);
        let ply = self.ends.get(index)? - 1 - age;
        Some((self.games.get(index)?, u32::try_from(ply).ok()?))
    }
}

#[cfg(test)]
mod tests;
