//! What is learnt from a game: whether anything is, from which of its positions, and how much of the
//! moves that were played there.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::pgn::{PgnGame, Skipped};
use serde::{Deserialize, Serialize};

/// What is learnt from a game.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Both players must have at least this rating.
    pub min_elo: f64,
    /// The rating of players without one; such games are passed over if there is none.
    pub assumed_elo: Option<f64>,
    /// Plies from the start of a game that give no positions.
    pub skip_plies: u32,
    /// Most positions of a game, chosen at random; all if there is none.
    pub positions_per_game: Option<u32>,
}

impl Filter {
    /// The played moves' shares of the policy target, for White and Black.
    ///
    /// # Errors
    ///
    /// Why the game is passed over.
    pub(super) fn shares(&self, game: &PgnGame) -> Result<[f32; 2], Skipped> {
        let elo = game.elo.map(|elo| elo.or(self.assumed_elo));
        let [Some(white), Some(black)] = elo else {
            return Err(Skipped::NoRating);
        };
        if white.min(black) < self.min_elo {
            return Err(Skipped::LowRating);
        }
        Ok([white, black].map(|elo| played_share(elo) as f32))
    }
}

/// Share of the policy target that the played move of a player of this rating gets: `1 - exp(-0.00122 *
/// Elo)`, 0.70 at 1000 and 0.95 at 2500. The rest is spread over the other legal moves.
fn played_share(elo: f64) -> f64 {
    1.0 - (-0.00122 * elo).exp()
}

/// Which plies of a game give positions.
pub(super) struct Wanted {
    from: usize,
    chosen: Option<Vec<usize>>,
}

impl Wanted {
    pub(super) fn new(plies: usize, filter: &Filter, seed: u64) -> Self {
        let from = filter.skip_plies as usize;
        let most = filter.positions_per_game.map(|most| most as usize);
        let chosen = most
            .filter(|most| *most < plies.saturating_sub(from))
            .map(|most| {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let mut chosen: Vec<usize> = (from..plies).collect();
                for place in 0..most {
                    let other = rng.random_range(place..chosen.len());
                    chosen.swap(place, other);
                }
                chosen.truncate(most);
                chosen.sort_unstable();
                chosen
            });
        Self { from, chosen }
    }

    pub(super) fn includes(&self, ply: usize) -> bool {
        match &self.chosen {
            Some(chosen) => chosen.binary_search(&ply).is_ok(),
            None => ply >= self.from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moves_of_better_players_have_larger_shares() {
        assert!((played_share(1000.0) - 0.7048).abs() < 1e-4);
        assert!((played_share(2500.0) - 0.9526).abs() < 1e-4);
    }
}
