//! A rest: every thread lets go of its networks, says so, and waits for the end, its games in hand.
//!
//! ```text
//! Pauser --Rest--> thread: networks go, "at rest", waits ... networks are read again, games go on
//!    |                                              ^
//! Paused: waits until all are at rest, and ends it when it is dropped
//! ```

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use super::Order;

/// A handle by which all threads can be made to rest. The threads do not end before it is dropped.
#[derive(Debug, Clone)]
pub struct Pauser {
    threads: Vec<mpsc::Sender<Order>>,
}

impl Pauser {
    pub(super) const fn new(threads: Vec<mpsc::Sender<Order>>) -> Self {
        Self { threads }
    }

    /// Has every thread rest after the batch that it is at.
    #[must_use = "the rest ends when this is dropped"]
    pub fn pause(&self) -> Paused {
        let rest = Arc::new(Rest::new(self.threads.len()));
        for thread in &self.threads {
            // A thread ends before this handle only by a panic, and then has nothing any more.
            if thread.send(Order::Rest(Arc::clone(&rest))).is_err() {
                rest.note();
            }
        }
        Paused(rest)
    }
}

/// Threads that rest until this is dropped.
#[derive(Debug)]
pub struct Paused(Arc<Rest>);

impl Paused {
    /// Waits until every thread has let go of its networks; false if that takes longer than `patience`.
    pub fn wait(&self, patience: Duration) -> bool {
        let Rest { state, changed } = &*self.0;
        let busy = |state: &mut State| state.busy > 0;
        let waited = changed.wait_timeout_while(lock(state), patience, busy);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.busy == 0
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.changed.notify_all();
    }
}

/// A rest, as threads see it.
#[derive(Debug)]
pub(super) struct Rest {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Threads that are not at rest yet.
    busy: usize,
    is_over: bool,
}

impl Rest {
    fn new(threads: usize) -> Self {
        let state = State {
            busy: threads,
            is_over: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Whether there is no need to rest any more.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    /// Notes that a thread has let go of its networks.
    fn note(&self) {
        lock(&self.state).busy -= 1;
        self.changed.notify_all();
    }

    /// Says that the calling thread has let go of its networks, and waits for the end.
    pub(super) fn wait(&self) {
        self.note();
        let state = lock(&self.state);
        let rested = self.changed.wait_while(state, |state| !state.is_over);
        drop(rested);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
