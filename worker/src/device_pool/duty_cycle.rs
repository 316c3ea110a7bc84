//! The share of the time for which a GPU computes at most (`--gpu-share`).
//!
//! ```text
//! share 0.5:  batch ---- rest ---- batch -- rest --
//! ```
//!
//! A rest is as long as the batch before it takes to make up the share. It comes before the next batch, so that the thread
//! whose batch is done goes on at once, and it can be skipped.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Longest rest: a batch also takes long where the program was stopped meanwhile.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A device whose threads take turns.
#[derive(Debug)]
pub(super) struct DutyCycle {
    /// Above 0 and below 1.
    share: f64,
    /// Held by the thread whose batch the device computes, or that waits for the end of its rest.
    turn: Mutex<()>,
    rest: Mutex<Rest>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Rest {
    until: Option<Instant>,
    is_skipped: bool,
}

impl DutyCycle {
    pub(super) fn new(share: f64) -> Self {
        Self {
            share,
            turn: Mutex::default(),
            rest: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Computes as soon as no other thread does and the device has rested.
    pub(super) fn compute<T>(&self, compute: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock();
        self.wait_for_rest();
        let begun = Instant::now();
        let done = compute();
        let ended = Instant::now();
        self.rest.lock().until = Some(ended + rest_after(ended - begun, self.share));
        done
    }

    fn wait_for_rest(&self) {
        let mut rest = self.rest.lock();
        while let Some(until) = rest.until
            && !rest.is_skipped
            && Instant::now() < until
        {
            self.changed.wait_until(&mut rest, until);
        }
    }

    /// Ends the rest that a thread waits for, and lets the device have no other.
    pub(super) fn skip_rests(&self) {
        self.rest.lock().is_skipped = true;
        self.changed.notify_all();
    }

    /// Lets the device rest again.
    pub(super) fn rest_again(&self) {
        self.rest.lock().is_skipped = false;
    }

    /// Whether a thread has its turn.
    #[cfg(test)]
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_locked()
    }
}

/// How long a device rests after it was busy.
fn rest_after(busy: Duration, share: f64) -> Duration {
    busy.min(LONGEST_REST)
        .mul_f64(1.0 / share - 1.0)
        .min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_gpu_rests_in_proportion_and_never_for_hours() {
        let busy = Duration::from_millis(30);
        for (share, rest) in [(0.75, 10), (0.5, 30), (0.1, 270)] {
            let found = rest_after(busy, share).as_secs_f64();
            assert!(
                (found - f64::from(rest) / 1e3).abs() < 1e-6,
                "{share}: {found}"
            );
        }
        // The program was stopped while it computed.
        for share in [0.5, 1e-9] {
            assert_eq!(rest_after(Duration::MAX, share), LONGEST_REST);
        }
    }

    #[test]
    fn threads_that_wait_for_a_rest_go_on_where_it_is_skipped() {
        let duty_cycle = DutyCycle::new(0.5);
        let never = Instant::now() + Duration::from_secs(1 << 30);
        duty_cycle.rest.lock().until = Some(never);
        thread::scope(|scope| {
            let (sender, done) = mpsc::channel();
            for number in 0..2 {
                let (sender, duty_cycle) = (sender.clone(), &duty_cycle);
                scope.spawn(move || {
                    duty_cycle.compute(|| duty_cycle.rest.lock().until = Some(never));
                    sender.send(number).unwrap();
                });
            }
            duty_cycle.skip_rests();
            let numbers: Vec<i32> = done.iter().take(2).collect();
            assert_eq!(numbers.len(), 2);
        });
        duty_cycle.rest_again();
        assert!(!duty_cycle.rest.lock().is_skipped);
    }
}
