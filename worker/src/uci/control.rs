//! What the GUI says to a search that runs.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The requests of the GUI about one `go`.
#[derive(Debug, Default)]
pub(super) struct Control {
    requests: Mutex<Requests>,
    changed: Condvar,
}

/// What was asked for so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requests {
    /// End now.
    pub(super) stop: bool,
    /// When the opponent played the expected move: the clock runs since then.
    pub(super) ponder_hit: Option<Instant>,
}

impl Control {
    /// Asks for the end.
    pub(super) fn stop(&self) {
        self.requests.lock().stop = true;
        self.changed.notify_all();
    }

    /// Says that the clock runs from now.
    pub(super) fn ponder_hit(&self, now: Instant) {
        self.requests.lock().ponder_hit.get_or_insert(now);
        self.changed.notify_all();
    }

    /// What was asked for so far.
    pub(super) fn requests(&self) -> Requests {
        *self.requests.lock()
    }

    /// Waits until something is asked for that was not in `before`, or for `time`.
    pub(super) fn wait(&self, before: Requests, time: Duration) {
        let mut requests = self.requests.lock();
        let same =
            |now: &mut Requests| now.stop == before.stop && now.ponder_hit == before.ponder_hit;
        // Woken or not, the caller looks again.
        self.changed.wait_while_for(&mut requests, same, time);
    }
}
