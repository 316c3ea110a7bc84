//! Choice of any legal move.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::chess::moves::canonical_moves;
use shakmaty::Move;

/// Chooses each legal move with the same probability. What it plays in a position follows from its
/// seed, the position and the number of moves before it, not from the order in which it is asked.
#[derive(Debug, Clone)]
pub(super) struct RandomMover {
    seed: u64,
}

impl RandomMover {
    /// A random mover of this seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The move that is played in a position; nothing where there is no legal move.
    pub(super) fn pick(&self, game: &GameHistory) -> Option<Move> {
        any(game, &mut self.stream(game))
    }

    /// A random move in `percent` of all positions, and none in the others.
    pub(super) fn pick_sometimes(&self, game: &GameHistory, percent: u32) -> Option<Move> {
        let mut stream = self.stream(game);
        let now = stream.random_range(0..100) < percent;
        now.then(|| any(game, &mut stream)).flatten()
    }

    fn stream(&self, game: &GameHistory) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&game.repetition_key().to_le_bytes());
        key[16..24].copy_from_slice(&(game.plies() as u64).to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

fn any(game: &GameHistory, stream: &mut ChaCha8Rng) -> Option<Move> {
    let moves = canonical_moves(game.position());
    if moves.is_empty() {
        return None;
    }
    moves.get(stream.random_range(0..moves.len())).copied()
}
