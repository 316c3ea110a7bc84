//! The standard Gaussian.

/// The two-sided 95 % quantile of the standard Gaussian.
pub(super) const Z95: f64 = 1.959_963_984_540_054;

/// Where the series hands over to the continued fraction.
const SERIES_LIMIT: f64 = 4.0;

/// The probability that a standard Gaussian is below `z`.
///
/// Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), 26.2.11 (series) and
/// 26.2.14 (continued fraction of the tail).
pub(super) fn cdf(z: f64) -> f64 {
    if z.is_nan() {
        return 0.5;
    }
    let tail_or_half = if z.abs() < SERIES_LIMIT {
        return 0.5 + density(z) * central_series(z);
    } else {
        density(z) / tail_fraction(z.abs())
    };
    if z > 0.0 {
        1.0 - tail_or_half
    } else {
        tail_or_half
    }
}

fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// `z + z^3/3 + z^5/(3*5) + ...`
fn central_series(z: f64) -> f64 {
    let mut term = z;
    let mut sum = z;
    let mut divisor = 3.0;
    while term.abs() > 1e-17 * sum.abs() {
        term *= z * z / divisor;
        sum += term;
        divisor += 2.0;
    }
    sum
}

/// `z + 1/(z + 2/(z + 3/(z + ...)))` for `z` at or above the limit of the series.
fn tail_fraction(z: f64) -> f64 {
    (1..=60)
        .rev()
        .fold(z, |rest, numerator| z + f64::from(numerator) / rest)
}

#[cfg(test)]
mod tests {
    use super::{Z95, cdf};

    /// Reference: `scipy.stats.norm.cdf`.
    #[test]
    fn agrees_with_scipy() {
        let cases = [
            (-8.0, 6.22096057427174e-16),
            (-5.0, 2.866515718791933e-07),
            (-3.999, 3.180534005420198e-05),
            (-1.0, 0.15865525393145707),
            (0.0, 0.5),
            (0.3, 0.6179114221889526),
            (2.5, 0.9937903346742238),
            (4.5, 0.9999966023268753),
        ];
        for (z, expected) in cases {
            let relative = (cdf(z) - expected).abs() / expected;
            assert!(
                relative < 1e-9,
                "cdf({z}) = {}, expected {expected}",
                cdf(z)
            );
        }
    }

    #[test]
    fn is_symmetric_and_reaches_its_limits() {
        assert!((cdf(Z95) - 0.975).abs() < 1e-14);
        assert!((cdf(1.3) + cdf(-1.3) - 1.0).abs() < 1e-15);
        assert_eq!(cdf(f64::INFINITY), 1.0);
        assert_eq!(cdf(f64::NEG_INFINITY), 0.0);
    }
}
