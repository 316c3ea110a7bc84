//! A player that chooses any legal move.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;

use super::{Choice, LiveGame, Player, PlayerError};

/// Chooses each legal move with the same probability. What it plays in a position follows from its
/// seed, the position and the number of moves before it, not from the order in which it is asked.
#[derive(Debug, Clone)]
pub struct RandomMover {
    seed: u64,
}

impl RandomMover {
    /// A random mover of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn stream(&self, game: &LiveGame) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&game.history().repetition_key().to_le_bytes());
        key[16..24].copy_from_slice(&(game.moves().len() as u64).to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

impl Player for RandomMover {
    fn choose(&mut self, games: &[&LiveGame]) -> Result<Vec<Choice>, PlayerError> {
        let choose = |game: &&LiveGame| {
            let moves = canonical_moves(game.history().position());
            let m = moves[self.stream(game).random_range(0..moves.len())];
            Choice { m, value: None }
        };
        Ok(games.iter().map(choose).collect())
    }
}
