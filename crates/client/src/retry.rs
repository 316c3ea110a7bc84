//! How long to wait before a call is tried again: one policy for all calls to a coordinator.
//!
//! The pause doubles from failure to failure, is random enough that many clients do not come back together, and
//! respects `Retry-After`.

use std::time::Duration;

/// The pauses between attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause that failures alone lead to.
    pub longest: Duration,
    /// The longest `Retry-After` that is believed.
    pub longest_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(120),
            longest_asked: Duration::from_secs(600),
        }
    }
}

impl RetryPolicy {
    /// The pause after failure number `failure`, counted from 0. `asked` is the answer's `Retry-After`.
    pub fn pause(&self, failure: u32, asked: Option<Duration>) -> Duration {
        self.pause_by(chance(), failure, asked)
    }

    fn pause_by(&self, chance: f64, failure: u32, asked: Option<Duration>) -> Duration {
        let grown = self
            .first
            .saturating_mul(1 << failure.min(16))
            .min(self.longest);
        let own = grown.mul_f64(0.5 + chance / 2.0);
        match asked {
            Some(asked) => asked
                .min(self.longest_asked)
                .mul_f64(1.0 + chance / 4.0)
                .max(own),
            None => own,
        }
    }
}

/// A random number from 0 to 1. Where the system has none to give, one half.
pub fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_random() {
        let policy = RetryPolicy::default();
        let seconds = |failure, chance| policy.pause_by(chance, failure, None).as_secs_f64();
        assert_eq!(
            [seconds(0, 1.0), seconds(1, 1.0), seconds(3, 1.0)],
            [1.0, 2.0, 8.0]
        );
        assert_eq!([seconds(0, 0.0), seconds(3, 0.0)], [0.5, 4.0]);
        assert_eq!([seconds(60, 1.0), seconds(u32::MAX, 1.0)], [120.0, 120.0]);
    }

    #[test]
    fn retry_after_is_respected_within_reason() {
        let policy = RetryPolicy::default();
        let pause = |asked| {
            policy
                .pause_by(0.0, 0, Some(Duration::from_secs(asked)))
                .as_secs()
        };
        assert_eq!(pause(30), 30);
        assert_eq!(pause(86_400), 600);
    }
}
