//! Whether requests are being answered on a connection, and since when none is.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Whether a connection is being used.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    answering: u32,
    since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(State {
            answering: 0,
            since: Instant::now(),
        }))
    }
}

impl Activity {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A request is being answered, until what this gives is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.change(|state| state.answering += 1);
        Answering(self.clone())
    }

    /// Until no request has been answered for this time.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let mut until = Instant::now() + limit;
            self.change(|state| {
                if state.answering == 0 {
                    until = state.since + limit;
                }
            });
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.answering -= 1;
            state.since = Instant::now();
        });
    }
}
