//! Chance, drawn from the system and handed to the database, which draws none itself.

use jiff::Timestamp;
use rookery_common::ids::{JobId, Seed};

use crate::db::Chances;

pub fn seed() -> Result<Seed, getrandom::Error> {
    getrandom::u64().map(Seed)
}

/// The random numbers of one lease. Its identifier begins with the time (UUID, version 7), so that leases
/// that are handed out together lie together in the ledger; 74 bits of it cannot be guessed.
pub fn chances(now: Timestamp) -> Result<Chances, getrandom::Error> {
    let mut random = [0_u8; 10];
    getrandom::fill(&mut random)?;
    let milliseconds = u64::try_from(now.as_millisecond()).unwrap_or_default();
    let job = uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid();
    Ok(Chances {
        job: JobId(job),
        seed: seed()?,
        gate: unit()?,
        rating: unit()?,
        puzzle: unit()?,
    })
}

/// Uniform from 0 to 1, without 1.
pub fn unit() -> Result<f64, getrandom::Error> {
    // The upper 53 bits fill a double's mantissa exactly.
    Ok((getrandom::u64()? >> 11) as f64 / (1_u64 << 53) as f64)
}

/// `wanted` different numbers below `count` (all of them if there are not so many), from `seed`
/// (Floyd's algorithm).
pub fn sample(count: u32, wanted: u32, seed: Seed) -> Vec<u32> {
    let mut chosen = std::collections::HashSet::new();
    let mut order = Vec::new();
    for upper in count.saturating_sub(wanted)..count {
        let draw = (seed.of_game(upper).0 % (u64::from(upper) + 1)) as u32;
        let pick = if chosen.insert(draw) { draw } else { upper };
        chosen.insert(pick);
        order.push(pick);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases in the ledger name their puzzles by the seed of the draw.
    #[test]
    fn the_same_seed_draws_the_same_sample_in_every_version() {
        let sum =
            |picks: &[u32]| -> u64 { (1..).zip(picks).map(|(n, pick)| n * u64::from(*pick)).sum() };
        assert_eq!(sample(1000, 5, Seed(9)), [395, 10, 554, 404, 59]);
        assert_eq!(
            sum(&sample(1_000_000, 1024, Seed(u64::MAX))),
            266_693_400_579
        );
        assert_eq!(sum(&sample(30, 1024, Seed(1))), 8_990);
    }

    #[test]
    fn a_sample_has_no_number_twice() {
        for (count, wanted) in [(0, 4), (3, 10), (10, 10), (1000, 64)] {
            let mut picks = sample(count, wanted, Seed(9));
            assert_eq!(picks.len() as u32, wanted.min(count));
            assert!(picks.iter().all(|n| *n < count));
            picks.sort_unstable();
            picks.dedup();
            assert_eq!(picks.len() as u32, wanted.min(count));
        }
    }
}
