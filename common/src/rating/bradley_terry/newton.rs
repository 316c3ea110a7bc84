//! Newton's method on a log-concave posterior, each step cut to where its line stops rising.

use super::matrix::Cholesky;
use super::model::Posterior;
use crate::rating::error::RatingError;

/// Steps made at most; a dozen is usual.
const MAX_STEPS: usize = 500;
/// Bisections of one step made at most.
const MAX_BISECTIONS: usize = 100;
/// The rise promised by a full step, in nats, below which that step is the last.
const LAST_RISE: f64 = 1e-9;
/// The share of the slope at a line's foot that may be left where the step ends.
const SLOPE_LEFT: f64 = 0.3;

/// The top of a posterior.
pub(super) struct Top {
    /// Log strengths of the players that are free, then the logarithm of `nu`.
    pub(super) point: Vec<f64>,
    /// Factors of the negative Hessian there.
    pub(super) curvature: Cholesky,
}

impl Top {
    /// Davidson's `nu`.
    pub(super) fn nu(&self) -> f64 {
        self.point.last().copied().unwrap_or_default().exp()
    }
}

/// Climbs to the top of the posterior.
///
/// # Errors
///
/// If steps go on without end, for counts beyond double precision.
pub(super) fn maximise(posterior: &Posterior) -> Result<Top, RatingError> {
    const STUCK: RatingError = RatingError::NotConverged {
        what: "the rating fit",
    };
    let mut point = posterior.start();
    for _ in 0..MAX_STEPS {
        let gradient = posterior.gradient(&point);
        let step = posterior
            .curvature(&point)
            .cholesky()
            .ok_or(STUCK)?
            .solve(&gradient);
        let rise = along(&gradient, &step);
        if rise < LAST_RISE {
            let point = moved(&point, &step, 1.0);
            let curvature = posterior.curvature(&point).cholesky().ok_or(STUCK)?;
            return Ok(Top { point, curvature });
        }
        let share = climb(posterior, &point, &step, rise);
        point = moved(&point, &step, share);
    }
    Err(STUCK)
}

/// The share of a step after which the slope along it has nearly gone; at most the whole.
///
/// The posterior is log-concave, so slopes along a line only fall and bisection finds the place.
/// Slopes are compared, not heights, because these drown in rounding for long records.
fn climb(posterior: &Posterior, point: &[f64], step: &[f64], foot: f64) -> f64 {
    let slope = |share| along(&posterior.gradient(&moved(point, step, share)), step);
    if slope(1.0) >= -SLOPE_LEFT * foot {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..MAX_BISECTIONS {
        let middle = (low + high) / 2.0;
        let left = slope(middle);
        if left.abs() <= SLOPE_LEFT * foot {
            return middle;
        }
        if left > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The slope in the direction of a step.
fn along(gradient: &[f64], step: &[f64]) -> f64 {
    gradient
        .iter()
        .zip(step)
        .map(|(slope, length)| slope * length)
        .sum()
}

fn moved(point: &[f64], step: &[f64], share: f64) -> Vec<f64> {
    point
        .iter()
        .zip(step)
        .map(|(at, by)| at + share * by)
        .collect()
}
