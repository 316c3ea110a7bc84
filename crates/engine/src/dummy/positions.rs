//! Positions to evaluate.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::GameHistory;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use shakmaty::Position as _;

use crate::evaluator::Batch;

/// `count` positions of random games, with all their legal moves.
///
/// # Examples
///
/// ```
/// use rookery_common::encoding::{InputEncoding, PolicyEncoding};
/// use rookery_engine::dummy::random_batch;
///
/// let batch = random_batch(InputEncoding::Lc0112, PolicyEncoding::Lc01858, 8, 1);
/// assert_eq!(batch.len(), 8);
/// assert!(batch.moves().len() > 8);
/// ```
pub fn random_batch(
    input: InputEncoding,
    policy: PolicyEncoding,
    count: usize,
    seed: u64,
) -> Batch {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut batch = Batch::new(input, policy);
    let mut game = GameHistory::default();
    while batch.len() < count {
        if game.end().is_some() || game.plies() > 150 {
            game = GameHistory::default();
        }
        let moves = game.position().legal_moves();
        if rng.random_bool(0.2) {
            batch.push(&game, &moves);
        }
        game.push(moves[rng.random_range(0..moves.len())]);
    }
    batch
}
