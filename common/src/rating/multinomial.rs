//! Counts of equally spaced outcomes, and what their likelihood loses under a constraint.
//!
//! The sequential test and the intervals ask the same question: by how much does the best
//! log-likelihood of the counts fall when the mean, or the mean over the standard deviation, is
//! forced to a value? The answer is the Kullback-Leibler distance from the observed shares to the
//! nearest distribution that obeys: M. Van den Bergh, "The GSPRT approximation and the MLE of a
//! multinomial", <https://www.cantate.be/Fishtest/support_MLE_multinomial.pdf>, Proposition 1.1;
//! the same as Owen's empirical likelihood, *Biometrika* 75 (1988).

use super::error::RatingError;
use super::roots::bisect;

/// What a count of zero is taken for, as fishtest's `LLRcalc.regularize` does: a prior too small to
/// matter that keeps every outcome possible.
const ZERO_COUNT: f64 = 1e-3;

/// Fixed-point steps made at most for a constrained ratio of mean and deviation.
const MAX_STEPS: usize = 2000;

/// Observed shares of `N` outcomes worth `0, 1/(N-1), ..., 1`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares<const N: usize> {
    values: [f64; N],
    shares: [f64; N],
    total: f64,
}

impl<const N: usize> Shares<N> {
    /// Shares of the counts of outcomes, worst first.
    pub(super) fn new(counts: &[u64; N]) -> Self {
        let regular = counts.map(|count| if count == 0 { ZERO_COUNT } else { count as f64 });
        let total: f64 = regular.iter().sum();
        let values = std::array::from_fn(|outcome| outcome as f64 / (N - 1) as f64);
        Self {
            values,
            shares: regular.map(|count| count / total),
            total,
        }
    }

    /// How many outcomes were observed.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// Mean value, 0 to 1.
    pub(super) fn mean(&self) -> f64 {
        self.moments(&self.shares).0
    }

    /// Standard deviation of one outcome's value.
    pub(super) fn deviation(&self) -> f64 {
        self.moments(&self.shares).1
    }

    /// The log-likelihood lost, in nats for each outcome, if the mean must be `mean`, which lies
    /// strictly between 0 and 1.
    pub(super) fn loss_at_mean(&self, mean: f64) -> f64 {
        let offsets = self.values.map(|value| value - mean);
        self.tilt(&offsets)
            .map_or(f64::INFINITY, |factors| self.loss(&factors))
    }

    /// The log-likelihood lost, in nats for each outcome, if `(mean - 1/2) / deviation` must be
    /// `ratio`.
    ///
    /// M. Van den Bergh, <https://www.cantate.be/Fishtest/normalized_elo_practical.pdf>, section
    /// 4.1: the constraint is linearised around the last estimate until that settles.
    ///
    /// # Errors
    ///
    /// If it does not settle, as happens for ratios near 1.
    pub(super) fn loss_at_ratio(&self, ratio: f64) -> Result<f64, RatingError> {
        let mut estimate = [1.0 / N as f64; N];
        for _ in 0..MAX_STEPS {
            let Some(factors) = self.tilt(&self.linearised(&estimate, ratio)) else {
                break;
            };
            let next = std::array::from_fn(|k| self.shares[k] / factors[k]);
            let moved = (0..N)
                .map(|k| f64::abs(next[k] - estimate[k]))
                .fold(0.0, f64::max);
            if moved < 1e-12 {
                return Ok(self.loss(&factors));
            }
            estimate = next;
        }
        Err(RatingError::NotConverged {
            what: "the likelihood at a normalised Elo",
        })
    }

    /// What each outcome adds to the constraint on the ratio, to first order around `estimate`.
    fn linearised(&self, estimate: &[f64; N], ratio: f64) -> [f64; N] {
        let (mean, deviation) = self.moments(estimate);
        self.values.map(|value| {
            let standard = (mean - value) / deviation;
            value - 0.5 - ratio * deviation * (1.0 + standard * standard) / 2.0
        })
    }

    fn moments(&self, shares: &[f64; N]) -> (f64, f64) {
        let weighed = || self.values.iter().zip(shares);
        let mean: f64 = weighed().map(|(value, share)| value * share).sum();
        let variance: f64 = weighed()
            .map(|(value, share)| share * (value - mean).powi(2))
            .sum();
        (mean, variance.sqrt())
    }

    /// `sum p ln(p / q)` where `q = p / factor`.
    fn loss(&self, factors: &[f64; N]) -> f64 {
        self.shares
            .iter()
            .zip(factors)
            .map(|(share, factor)| share * factor.ln())
            .sum()
    }

    /// Solves `sum p b / (1 + x b) = 0` for the offsets `b`; gives the factors `1 + x b`, by which
    /// the shares are divided so that the offsets average to 0. None unless the offsets have both
    /// signs.
    ///
    /// `x` lies between the poles `-1/max b` and `-1/min b`, often within a rounding error of one,
    /// so the unknown is its distance from the nearer pole.
    fn tilt(&self, offsets: &[f64; N]) -> Option<[f64; N]> {
        let low = offsets.iter().copied().fold(f64::INFINITY, f64::min);
        let high = offsets.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !(low < 0.0 && high > 0.0) {
            return None;
        }
        let half = (1.0 / high - 1.0 / low) / 2.0;
        let near = |pole: f64, step: f64| offsets.map(|b| (1.0 - b / pole) + step * b);
        let sum = |factors: [f64; N]| -> f64 {
            (0..N)
                .map(|k| self.shares[k] * offsets[k] / factors[k])
                .sum()
        };
        Some(if sum(near(high, half)) < 0.0 {
            near(high, bisect(0.0, half, |step| sum(near(high, step)) > 0.0))
        } else {
            near(low, -bisect(0.0, half, |step| sum(near(low, -step)) < 0.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_at_the_observed_mean() {
        let shares = Shares::new(&[5, 40, 80, 60, 15]);
        assert!((shares.mean() - 0.55).abs() < 1e-15);
        assert!(shares.loss_at_mean(0.55).abs() < 1e-12);
        let ratio = (shares.mean() - 0.5) / shares.deviation();
        assert!(shares.loss_at_ratio(ratio).unwrap().abs() < 1e-12);
    }

    #[test]
    fn two_outcomes_lose_what_the_binomial_does() {
        // With no draws the constrained estimate of the share of wins is the mean itself.
        let shares = Shares::new(&[3, 7]);
        let expected = 0.3 * (0.3_f64 / 0.6).ln() + 0.7 * (0.7_f64 / 0.4).ln();
        assert!((shares.loss_at_mean(0.4) - expected).abs() < 1e-12);
    }

    #[test]
    fn an_unreachable_mean_loses_everything() {
        let shares = Shares::new(&[1, 2, 3]);
        assert_eq!(shares.loss_at_mean(1.5), f64::INFINITY);
    }

    #[test]
    fn counts_of_any_size_give_numbers() {
        let shares = Shares::new(&[0, 0, 0, 0, u64::MAX]);
        assert!(shares.loss_at_mean(0.5).is_finite());
        assert!(shares.loss_at_ratio(0.1).unwrap().is_finite());
    }
}
