//! Time, behind a trait so that tests move it by hand.

use jiff::{Timestamp, ToSpan as _};
use parking_lot::Mutex;

pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub const fn new(now: Timestamp) -> Self {
        Self(Mutex::new(now))
    }

    pub fn advance_seconds(&self, seconds: i64) {
        let mut now = self.0.lock();
        *now = now
            .saturating_add(seconds.seconds())
            .unwrap_or(Timestamp::MAX);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}
