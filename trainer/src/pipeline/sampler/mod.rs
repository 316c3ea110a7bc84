//! Which positions a batch holds.

use rand::seq::index;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::params::Sampling;

use crate::buffer::{Mixture, Pick, Window};

/// Samples positions.
///
/// Each batch has random streams of its own that follow from seed, candidate and number, so
/// training that was interrupted goes on with the same batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// The run's seed.
    pub seed: u64,
    /// Which candidate is being trained.
    pub candidate: u32,
}

/// What a random stream is for; streams of different purposes have nothing to do with each other.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Purpose {
    Positions = 0,
    Mirror = 1,
}

impl Sampler {
    /// The positions of batch `number`: first how many of each window, by weight, then which.
    pub fn picks(
        self,
        number: u64,
        batch_size: usize,
        mixture: &Mixture,
        sampling: Sampling,
    ) -> Vec<Pick> {
        let mut rng = self.stream(number, Purpose::Positions);
        let counts = counts(&mut rng, batch_size, mixture);
        let mut picks = Vec::with_capacity(batch_size);
        for (part, ((window, _), count)) in mixture.parts().iter().zip(counts).enumerate() {
            let ages = match sampling {
                Sampling::Positions => (0..count)
                    .map(|_| rng.random_range(0..window.len()))
                    .collect(),
                Sampling::Games => one_a_game(&mut rng, count, window),
            };
            picks.extend(ages.into_iter().map(|age| Pick { part, age }));
        }
        picks
    }

    /// Which of the positions of batch `number` are to be mirrored, where they can be: this share of
    /// them.
    pub fn mirrored(self, number: u64, batch_size: usize, share: f64) -> Vec<bool> {
        let mut rng = self.stream(number, Purpose::Mirror);
        (0..batch_size)
            .map(|_| rng.random_bool(share.clamp(0.0, 1.0)))
            .collect()
    }

    fn stream(self, number: u64, purpose: Purpose) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&self.candidate.to_le_bytes());
        key[12..20].copy_from_slice(&number.to_le_bytes());
        key[20] = purpose as u8;
        ChaCha8Rng::from_seed(key)
    }
}

/// How many positions of a batch come from each window.
fn counts(rng: &mut ChaCha8Rng, batch_size: usize, mixture: &Mixture) -> Vec<usize> {
    let parts = mixture.parts();
    if parts.len() <= 1 {
        return vec![batch_size; parts.len()];
    }
    let sum: f64 = parts.iter().map(|(_, weight)| weight).sum();
    let mut counts = vec![0; parts.len()];
    for _ in 0..batch_size {
        let mut place = rng.random_range(0.0..sum);
        let found = parts.iter().position(|(_, weight)| {
            place -= weight;
            place < 0.0
        });
        counts[found.unwrap_or(parts.len() - 1)] += 1;
    }
    counts
}

/// The ages of positions of `count` games, no game twice before each has been once.
fn one_a_game(rng: &mut ChaCha8Rng, count: usize, window: &Window) -> Vec<u64> {
    let mut ages = Vec::with_capacity(count);
    while ages.len() < count {
        let games = window.games();
        for game in index::sample(rng, games, games.min(count - ages.len())) {
            ages.push(rng.random_range(window.ages_of(game)));
        }
    }
    ages
}

#[cfg(test)]
mod tests;
