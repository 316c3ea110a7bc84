//! The move to play after a search.

use std::sync::LazyLock;

use super::rules::{GameRules, MoveChoice};
use crate::chunk::record::Effort;
use crate::ids::Seed;
use crate::params::RootSearch;

/// Numbers of visits whose logarithm is kept.
const LOGARITHMS: usize = 1024;

/// More moves than a position has.
const MOST_MOVES: usize = 256;

/// Tells the stream of choices from the other streams of a game's seed.
const CHOICES: u64 = 0x6368_6f69_6365_7321;

static LN: LazyLock<[f64; LOGARITHMS]> =
    LazyLock::new(|| std::array::from_fn(|n| libm::log(n as f64)));

fn ln(n: u32) -> f64 {
    match LN.get(n as usize) {
        Some(ln) => *ln,
        None => libm::log(f64::from(n)),
    }
}

/// What record, seed and parameters say of the move to play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// The move at this place in canonical order.
    Place(usize),
    /// One of the moves with most visits: which of them, only the search knows.
    MostVisited,
}

impl GameRules {
    /// The move to play at `ply`, counted from the first searched one, of the game with this seed.
    ///
    /// A PUCT search's move is drawn from its visits, or from what pruning of forced playouts has left of
    /// them: from the record, so that every reader of it draws the same move. What sequential halving leaves is
    /// among the most visited moves.
    pub fn choose(
        &self,
        seed: Seed,
        ply: u32,
        visits: &[u32],
        target: Option<&[u16]>,
        effort: Effort,
    ) -> Chosen {
        let MoveChoice::Sample(temperature) = self.choice(ply) else {
            return Chosen::MostVisited;
        };
        if self.search.root != RootSearch::Puct {
            return Chosen::MostVisited;
        }
        let draw = uniform(seed, ply);
        Chosen::Place(match target {
            Some(target) if effort == Effort::Full => {
                sample(target.iter().map(|n| u32::from(*n)), temperature, draw)
            }
            _ => sample(visits.iter().copied(), temperature, draw),
        })
    }
}

/// The number from 0 to 1 by which the move at `ply` is drawn. It depends on nothing else, whatever else
/// the ply has drawn.
fn uniform(seed: Seed, ply: u32) -> f64 {
    let bits = Seed(seed.0 ^ CHOICES).of_game(ply).0 >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// The place that `draw`, from 0 to 1, gives where each has a probability proportional to
/// `weight^(1 / temperature)`. The weights are not all zero, at most 256, and the temperature is above 0.
fn sample(weights: impl Iterator<Item = u32> + Clone, temperature: f32, draw: f64) -> usize {
    let highest = ln(weights.clone().max().unwrap_or(1));
    let power = 1.0 / f64::from(temperature);
    let mut heated = [0.0; MOST_MOVES];
    let mut sum = 0.0;
    for (heated, weight) in heated.iter_mut().zip(weights) {
        if weight > 0 {
            *heated = if temperature == 1.0 {
                f64::from(weight)
            } else {
                libm::exp(power * (ln(weight) - highest))
            };
            sum += *heated;
        }
    }
    place_at(draw * sum, heated)
}

/// The place at which the sum of the weights so far goes beyond `left`, or the last one that has a weight.
pub fn place_at(mut left: f64, weights: impl IntoIterator<Item = f64>) -> usize {
    let mut last = 0;
    for (place, weight) in weights.into_iter().enumerate() {
        if weight > 0.0 {
            last = place;
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

/// What the weights of a Gumbel search's policy target add up to, but for rounding: finer ones would make
/// chunks larger by what is noise to training (`docs/results/chunk-size.md`).
pub const TARGET_UNITS: u16 = 500;

/// A policy as integer weights. The highest weight is never 0, as there are at most 218 moves.
pub fn quantize(policy: &[f32]) -> Vec<u16> {
    let units = f32::from(TARGET_UNITS);
    policy.iter().map(|p| (p * units).round() as u16).collect()
}

/// Visits as 16-bit weights: as they are where they fit, else in proportion.
pub fn visit_weights(visits: &[u32]) -> Vec<u16> {
    let most = visits.iter().copied().max().unwrap_or_default();
    let limit = u32::from(u16::MAX);
    if most <= limit {
        return visits.iter().map(|n| *n as u16).collect();
    }
    let scale = f64::from(limit) / f64::from(most);
    let scaled = visits.iter().map(|n| f64::from(*n) * scale);
    scaled.map(|n| n.round() as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_stay_as_they_are_where_they_fit() {
        assert_eq!(visit_weights(&[65_535, 1, 0]), [65_535, 1, 0]);
        assert_eq!(visit_weights(&[131_070, 2, 0]), [65_535, 1, 0]);
    }

    #[test]
    fn quantized_weights_keep_the_proportions() {
        assert_eq!(quantize(&[0.5, 0.25, 0.0, 1e-9]), [250, 125, 0, 0]);
    }

    fn frequencies(weights: &[u32], temperature: f32) -> Vec<f64> {
        let mut counts = vec![0.0; weights.len()];
        for ply in 0..20_000 {
            let draw = uniform(Seed(1), ply);
            counts[sample(weights.iter().copied(), temperature, draw)] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn temperature_one_samples_in_proportion() {
        let shares = frequencies(&[0, 3, 1, 0], 1.0);
        assert!((shares[1] - 0.75).abs() < 0.02, "{shares:?}");
        assert_eq!(shares[0] + shares[3], 0.0);
    }

    #[test]
    fn temperature_sharpens_and_flattens() {
        let shares = frequencies(&[3, 1], 0.5);
        assert!((shares[0] - 0.9).abs() < 0.02, "3^2 : 1^2, {shares:?}");
        let shares = frequencies(&[9, 1], 2.0);
        assert!((shares[0] - 0.75).abs() < 0.02, "3 : 1, {shares:?}");
        let shares = frequencies(&[100_000, 1], 0.001);
        assert_eq!(shares[1], 0.0);
    }

    /// The draws are part of the protocol: other ones make honest games refused.
    #[test]
    fn draws_stay_as_they_are() {
        let places = (0..12).map(|ply| {
            let weights = [5_u32, 0, 20, 1, 3, 2000, 7];
            sample(weights.into_iter(), 2.5, uniform(Seed(77), ply))
        });
        assert_eq!(places.collect::<Vec<_>>(), GOLDEN);
    }

    const GOLDEN: [usize; 12] = [5, 5, 5, 5, 5, 5, 5, 5, 5, 2, 5, 0];
}
