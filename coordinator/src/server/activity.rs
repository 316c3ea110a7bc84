//! Whether requests are being answered on a connection, and since when none is.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Whether a connection is being used.
#[derive(Debug, Default)]
pub(super) struct Activity {
    state: Mutex<State>,
    asked: Notify,
}

#[derive(Debug)]
struct State {
    answering: u32,
    since: Instant,
    leaving: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            answering: 0,
            since: Instant::now(),
            leaving: false,
        }
    }
}

impl Activity {
    /// A request is being answered, until what this gives is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.state.lock().answering += 1;
        Answering(self.clone())
    }

    /// Since when no request is being answered, if none is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        (state.answering == 0).then_some(state.since)
    }

    /// Lets no request have been answered since this time.
    #[cfg(test)]
    pub(super) fn set_idle_since(&self, since: Instant) {
        self.state.lock().since = since;
    }

    /// Until no request has been answered for this time.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let until = self.idle_since().unwrap_or(now) + limit;
            if until <= now {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    /// Has the connection end, once it has answered what was asked.
    pub(super) fn ask_to_go(&self) {
        self.state.lock().leaving = true;
        self.asked.notify_one();
    }

    /// Whether it was asked.
    pub(super) fn is_leaving(&self) -> bool {
        self.state.lock().leaving
    }

    /// Until it is to end.
    pub(super) async fn asked_to_go(&self) {
        self.asked.notified().await;
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.answering -= 1;
        state.since = Instant::now();
    }
}
