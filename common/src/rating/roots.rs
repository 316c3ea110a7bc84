//! Bisection: slow, and it never fails.

/// Bisections made at most; each halves the interval, so this resolves roots near 0 as well.
const MAX_HALVINGS: usize = 400;

/// The place between `low` and `high` where `is_below` turns from true to false.
pub(super) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..MAX_HALVINGS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low + (high - low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::bisect;

    #[test]
    fn finds_a_root_to_the_last_bit() {
        let root = bisect(0.0, 2.0, |x| x * x < 2.0);
        assert!((root - std::f64::consts::SQRT_2).abs() <= f64::EPSILON * 2.0);
    }

    #[test]
    fn keeps_relative_precision_near_zero() {
        let root = bisect(0.0, 1.0, |x| x < 3e-40);
        assert!((root / 3e-40 - 1.0).abs() < 1e-12);
    }
}
