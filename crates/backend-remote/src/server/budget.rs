//! How many requests of one client may be in flight, and how many bytes.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Requests without a written answer, and the bytes of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct InFlight {
    pub(super) requests: usize,
    pub(super) bytes: usize,
}

/// Holds a client back that has too much in flight.
#[derive(Debug)]
pub(super) struct Budget {
    most: InFlight,
    used: Mutex<InFlight>,
    freed: Condvar,
}

/// Room for one request, until its answer has been written.
#[derive(Debug)]
pub(super) struct Permit {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(most: InFlight) -> Arc<Self> {
        Arc::new(Self {
            most,
            used: Mutex::default(),
            freed: Condvar::new(),
        })
    }

    /// Waits until there is room. A single request may have any size.
    pub(super) fn acquire(self: &Arc<Self>, bytes: usize) -> Permit {
        let mut used = self.used.lock();
        let is_full = |used: &mut InFlight| {
            let fits = used.requests < self.most.requests && used.bytes + bytes <= self.most.bytes;
            used.requests > 0 && !fits
        };
        self.freed.wait_while(&mut used, is_full);
        used.requests += 1;
        used.bytes += bytes;
        Permit {
            budget: Arc::clone(self),
            bytes,
        }
    }

    #[cfg(test)]
    pub(super) fn used(&self) -> InFlight {
        *self.used.lock()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = self.budget.used.lock();
        used.requests -= 1;
        used.bytes -= self.bytes;
        self.budget.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_too_much_in_flight_waits_for_an_answer() {
        let budget = Budget::new(InFlight {
            requests: 2,
            bytes: 100,
        });
        // The first is let in whatever its size, so that nothing is too large for ever.
        drop(budget.acquire(1000));
        let (first, second) = (budget.acquire(60), budget.acquire(40));
        let waiting = std::thread::spawn({
            let budget = Arc::clone(&budget);
            move || budget.acquire(50)
        });
        drop(second);
        assert!(!waiting.is_finished(), "110 bytes would be in flight");
        drop(first);
        let third = waiting.join().unwrap();
        let expected = InFlight {
            requests: 1,
            bytes: 50,
        };
        assert_eq!(budget.used(), expected);
        drop(third);
        assert_eq!(budget.used(), InFlight::default());
    }
}
