//! Rate limits: units a second for each key, with a burst (token bucket).
//!
//! The generic cell rate algorithm (ITU-T I.371): of every key one time is kept, at which its
//! bucket is full again. A unit moves it by `1 / per_second`; a request is refused if it would lie
//! further ahead than the burst allows. Keys whose bucket is full need no memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Keys that a limiter remembers at most; some 40 bytes each.
const KEYS: usize = 1 << 17;

/// Units a second, and the burst after a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    /// Units at once.
    pub burst: f64,
}

/// A rate that every key has for itself.
#[derive(Debug)]
pub struct RateLimiter<K> {
    rate: Rate,
    capacity: usize,
    full_at: Mutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq + Copy> RateLimiter<K> {
    pub fn new(rate: Rate) -> Self {
        Self::with_capacity(rate, KEYS)
    }

    fn with_capacity(rate: Rate, capacity: usize) -> Self {
        Self {
            rate,
            capacity,
            full_at: Mutex::default(),
        }
    }

    /// Takes `units` for `key`. A request of more than the burst passes if the bucket is full, and
    /// is paid for afterwards.
    /// The error is the time after which the same request will pass, if nothing else is taken meanwhile.
    pub fn take(&self, key: K, units: f64, now: Instant) -> Result<(), Duration> {
        let cost = Duration::from_secs_f64(units / self.rate.per_second);
        let burst = Duration::from_secs_f64(self.rate.burst / self.rate.per_second);
        let mut full_at = self.full_at.lock();
        let before = full_at.get(&key).map_or(now, |at| (*at).max(now));
        let ahead = before + cost.min(burst) - now;
        if let Some(wait) = ahead.checked_sub(burst).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        self.remember(&mut full_at, key, before + cost, now);
        Ok(())
    }

    /// Counts `units` that `key` has taken already, whether or not there was room for them: what
    /// comes next waits until they are paid for.
    pub fn charge(&self, key: K, units: f64, now: Instant) {
        let cost = Duration::from_secs_f64(units / self.rate.per_second);
        let mut full_at = self.full_at.lock();
        let before = full_at.get(&key).map_or(now, |at| (*at).max(now));
        self.remember(&mut full_at, key, before + cost, now);
    }

    /// Gives back `units` that `key` has taken, as far as its bucket is not full.
    pub fn pay_back(&self, key: K, units: f64, now: Instant) {
        let cost = Duration::from_secs_f64(units / self.rate.per_second);
        let mut full_at = self.full_at.lock();
        if let Some(at) = full_at.get_mut(&key) {
            *at = at.checked_sub(cost).unwrap_or(now).max(now);
        }
    }

    fn remember(&self, full_at: &mut HashMap<K, Instant>, key: K, at: Instant, now: Instant) {
        if full_at.len() >= self.capacity && !full_at.contains_key(&key) {
            make_room(full_at, self.capacity, now);
        }
        full_at.insert(key, at);
    }
}

/// Forgets keys whose bucket is full; where that is not enough, the half that took least. Strangers
/// with many addresses must be able neither to fill the memory nor to lock others out.
fn make_room<K>(full_at: &mut HashMap<K, Instant>, capacity: usize, now: Instant) {
    full_at.retain(|_, at| *at > now);
    if full_at.len() < capacity {
        return;
    }
    let mut times: Vec<Instant> = full_at.values().copied().collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    full_at.retain(|_, at| *at > median);
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 2.0,
        burst: 4.0,
    };

    #[test]
    fn a_burst_passes_then_the_rate_and_the_wait_is_honest() {
        let limiter = RateLimiter::new(RATE);
        let start = Instant::now();
        for _ in 0..4 {
            limiter.take("a", 1.0, start).unwrap();
        }
        let wait = limiter.take("a", 1.0, start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(500));
        limiter.take("b", 1.0, start).unwrap();
        let almost = start + wait - Duration::from_millis(1);
        assert!(limiter.take("a", 1.0, almost).is_err());
        limiter.take("a", 1.0, start + wait).unwrap();
        // Refusals cost nothing; a long pause gives the burst back and no more.
        let later = start + Duration::from_secs(60);
        for _ in 0..4 {
            limiter.take("a", 1.0, later).unwrap();
        }
        assert!(limiter.take("a", 1.0, later).is_err());
    }

    #[test]
    fn more_than_the_burst_passes_once_and_is_paid_for() {
        let limiter = RateLimiter::new(RATE);
        let start = Instant::now();
        limiter.take("a", 10.0, start).unwrap();
        assert_eq!(
            limiter.take("a", 1.0, start),
            Err(Duration::from_millis(3500))
        );
    }

    #[test]
    fn what_was_taken_without_asking_is_paid_for() {
        let limiter = RateLimiter::new(RATE);
        let start = Instant::now();
        for _ in 0..4 {
            limiter.take("a", 0.0, start).unwrap();
            limiter.charge("a", 1.0, start);
        }
        limiter.take("a", 0.0, start).unwrap();
        limiter.charge("a", 3.0, start);
        let wait = limiter.take("a", 0.0, start).unwrap_err();
        assert_eq!(wait, Duration::from_millis(1500));
        limiter.take("a", 0.0, start + wait).unwrap();
        limiter.take("b", 0.0, start).unwrap();
    }

    #[test]
    fn the_slowest_rate_that_can_be_set_is_counted() {
        let limiter = RateLimiter::new(Rate {
            per_second: 1e-6 / 3600.0,
            burst: 1.0,
        });
        let start = Instant::now();
        limiter.take("a", 1024.0, start).unwrap();
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        assert!(limiter.take("a", 1.0, start).unwrap_err() > century);
    }

    #[test]
    fn memory_is_bounded_and_those_who_took_most_are_remembered() {
        let limiter = RateLimiter::with_capacity(RATE, 100);
        let start = Instant::now();
        for _ in 0..4 {
            limiter.take(u32::MAX, 1.0, start).unwrap();
        }
        for key in 0..10_000 {
            // No key is refused for the requests of another.
            limiter.take(key, 1.0, start).unwrap();
            assert!(limiter.full_at.lock().len() <= 100);
        }
        assert!(limiter.take(u32::MAX, 1.0, start).is_err());
        limiter
            .take(0, 1.0, start + Duration::from_secs(9))
            .unwrap();
    }
}
