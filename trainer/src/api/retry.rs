//! How long to wait between attempts: twice as long each time, with jitter, so that many clients do
//! not come back at once.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Waits of one call.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Begins at `first` and grows to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            next: first,
            longest,
        }
    }

    /// The next wait, from half of the present step to all of it; never shorter than what the
    /// coordinator asked for, within an hour.
    pub fn next_wait(&mut self, asked: Option<Duration>) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.longest);
        let jittered = step.mul_f64(0.5 + 0.5 * chance());
        let asked = asked.unwrap_or_default().min(Duration::from_secs(3600));
        jittered.max(asked)
    }
}

/// Uniform from 0 to 1: the keys that the system gives to hash maps are random.
fn chance() -> f64 {
    let random = RandomState::new().hash_one(0_u8);
    random as f64 / u64::MAX as f64
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_respect_the_coordinator() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(4));
        for step in [1, 2, 4, 4] {
            let wait = backoff.next_wait(None);
            assert!(
                wait >= seconds(step) / 2 && wait <= seconds(step),
                "{step}: {wait:?}"
            );
        }
        assert_eq!(backoff.next_wait(Some(seconds(30))), seconds(30));
        assert_eq!(backoff.next_wait(Some(seconds(1 << 40))), seconds(3600));
    }
}
