//! Which positions a batch holds.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Samples positions uniformly, with replacement.
///
/// Each batch has a random stream of its own that follows from seed, candidate and number, so
/// training that was interrupted goes on with the same batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// The run's seed.
    pub seed: u64,
    /// Which candidate is being trained.
    pub candidate: u32,
}

impl Sampler {
    /// The ages of the positions of batch `number`, each from 0 (the newest) to `positions` - 1.
    pub fn ages(self, number: u64, batch_size: usize, positions: u64) -> Vec<u64> {
        let mut rng = self.stream(number);
        (0..batch_size)
            .map(|_| rng.random_range(0..positions.max(1)))
            .collect()
    }

    fn stream(self, number: u64) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&self.candidate.to_le_bytes());
        key[12..20].copy_from_slice(&number.to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_age_is_as_likely_as_any_other() {
        let sampler = Sampler {
            seed: 3,
            candidate: 0,
        };
        let mut counts = [0_u32; 50];
        for number in 0..100 {
            for age in sampler.ages(number, 500, 50) {
                counts[age as usize] += 1;
            }
        }
        // 1000 expected, a deviation of 31: five of them.
        assert!(counts.iter().all(|n| n.abs_diff(1000) < 157), "{counts:?}");
    }

    #[test]
    fn a_batch_follows_from_its_number() {
        let ages = |seed, candidate, number| Sampler { seed, candidate }.ages(number, 8, 1 << 40);
        assert_eq!(ages(1, 2, 3), ages(1, 2, 3));
        let others = [ages(2, 2, 3), ages(1, 3, 3), ages(1, 2, 4)];
        assert!(others.iter().all(|other| *other != ages(1, 2, 3)));
    }
}
