//! Drawing moves from a policy.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rookery_common::play::choice::place_at;

/// Samples a place with probability proportional to `weight^(1 / temperature)`; the weights are
/// not negative and not all zero. A temperature of 0 is for the caller.
pub(crate) fn sample(
    weights: impl Iterator<Item = f64> + Clone,
    temperature: f32,
    rng: &mut ChaCha8Rng,
) -> usize {
    let highest = weights.clone().fold(0.0, f64::max);
    let power = 1.0 / f64::from(temperature);
    let heated = weights.map(|weight| (weight / highest).powf(power));
    place_at(rng.random::<f64>() * heated.clone().sum::<f64>(), heated)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn frequencies(weights: &[f64], temperature: f32) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = vec![0.0; weights.len()];
        for _ in 0..20_000 {
            counts[sample(weights.iter().copied(), temperature, &mut rng)] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn temperature_one_samples_in_proportion() {
        let shares = frequencies(&[0.0, 3.0, 1.0, 0.0], 1.0);
        assert!((shares[1] - 0.75).abs() < 0.02, "{shares:?}");
        assert_eq!(shares[0] + shares[3], 0.0);
    }

    #[test]
    fn temperature_sharpens_and_flattens() {
        let shares = frequencies(&[3.0, 1.0], 0.5);
        assert!((shares[0] - 0.9).abs() < 0.02, "3^2 : 1^2, {shares:?}");
        let shares = frequencies(&[1e5, 1.0], 0.001);
        assert_eq!(shares[1], 0.0);
    }
}
