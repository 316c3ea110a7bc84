//! From logits to probabilities, eight numbers at a time.
//!
//! The library's `expf` is called for one number after the other, for each legal move of each
//! leaf; this compiles to vector instructions, and gives the same bits on every machine.

/// Numbers that are worked on together.
const LANES: usize = 8;
/// More logits than a position has legal moves (218 at most).
const MOST: usize = 256;

/// Divides at most 218 logits by the temperature and gives the probability of each to `take`, in
/// their order.
pub(super) fn softmax(logits: &[f32], temperature: f32, take: impl FnMut(f32)) {
    let cooling = 1.0 / temperature;
    let mut weights = [f32::NEG_INFINITY; MOST];
    weights[..logits.len()].copy_from_slice(logits);
    let (lanes, _) = weights[..logits.len().next_multiple_of(LANES)].as_chunks_mut::<LANES>();
    let mut highest = [f32::NEG_INFINITY; LANES];
    for lane in lanes.iter() {
        for (highest, logit) in highest.iter_mut().zip(lane) {
            *highest = if *logit > *highest { *logit } else { *highest };
        }
    }
    let highest = highest.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0; LANES];
    for lane in lanes.iter_mut() {
        for (weight, sum) in lane.iter_mut().zip(&mut sums) {
            *weight = exp((*weight - highest) * cooling);
            *sum += *weight;
        }
    }
    let share = 1.0 / sums.iter().sum::<f32>();
    let probabilities = weights[..logits.len()].iter().map(|weight| weight * share);
    probabilities.for_each(take);
}

/// Numbers below this have a result of about 1e-38.
const LOWEST: f32 = -87.0;
/// `1.5 * 2^23`: added to a number that is small beside it, it rounds to a whole number, which
/// then stands in the lowest bits.
const ROUNDER: f32 = 12_582_912.0;

/// `exp(x)` of a number from minus infinity to 0; below -87 it stays `exp(-87)`. The relative
/// error is below `3e-7 + 1.2e-7 |x|`, the second part being that of rounding `x log2 e`.
///
/// `2^(x log2 e)` is split into a whole power of two and `2^f`, `|f| <= 1/2`, which is a
/// polynomial: the Taylor series, whose remainder is `(f ln 2)^8 / 8!`.
#[inline]
fn exp(x: f32) -> f32 {
    let power = if x < LOWEST { LOWEST } else { x } * std::f32::consts::LOG2_E;
    let rounded = power + ROUNDER;
    let y = (power - (rounded - ROUNDER)) * std::f32::consts::LN_2;
    let series = 1.0 / 120.0 + y * (1.0 / 720.0 + y * (1.0 / 5040.0));
    let series = 1.0 / 6.0 + y * (1.0 / 24.0 + y * series);
    let series = 1.0 + y * (1.0 + y * (0.5 + y * series));
    // The exponent's bits begin at the 23rd, where the rounder's own bits have gone.
    let scale = f32::from_bits(rounded.to_bits().wrapping_add(127) << 23);
    series * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_the_exponential_function() {
        for step in 0..87_000 {
            let x = -(step as f32) / 1000.0;
            let error = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
            let bound = 3e-7 + 1.2e-7 * f64::from(x.abs());
            assert!(error < bound, "exp({x}) is off by {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(f32::NEG_INFINITY) < 2e-38);
    }

    #[test]
    fn probabilities_are_shares_of_exponentials() {
        for (count, temperature) in [
            (1, 1.0),
            (7, 1.0),
            (8, 1.36),
            (9, 0.1),
            (27, 10.0),
            (218, 1.0),
        ] {
            let logits: Vec<f32> = (0..count).map(|n| (n * 7 % 13) as f32 - 6.5).collect();
            let weight = |logit: &f32| (f64::from(*logit) / f64::from(temperature)).exp();
            let sum: f64 = logits.iter().map(weight).sum();
            let mut found = Vec::new();
            softmax(&logits, temperature, |p| found.push(p));
            assert_eq!(found.len(), count);
            for (p, logit) in found.into_iter().zip(&logits) {
                assert!((f64::from(p) - weight(logit) / sum).abs() < 1e-6);
            }
        }
    }
}
