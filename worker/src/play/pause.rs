//! A pause: every thread lets go of its networks, says so, and waits for the end, its games in hand.
//!
//! ```text
//! PauseHandle --PauseGate--> thread: networks go, "paused", waits ... networks are read again, games go on
//!    |                                              ^
//! Paused: waits until all are paused, and ends it when it is dropped
//! ```

use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Order;

/// A handle by which all threads can be paused. The threads do not end before it is dropped.
#[derive(Debug, Clone)]
pub struct PauseHandle {
    threads: Vec<mpsc::Sender<Order>>,
}

impl PauseHandle {
    pub(super) const fn new(threads: Vec<mpsc::Sender<Order>>) -> Self {
        Self { threads }
    }

    /// Pauses every thread after the batch that it is at.
    #[must_use = "the pause ends when this is dropped"]
    pub fn pause(&self) -> Paused {
        let gate = Arc::new(PauseGate::new(self.threads.len()));
        for thread in &self.threads {
            // A thread ends before this handle only by a panic, and then has nothing any more.
            if thread.send(Order::Pause(Arc::clone(&gate))).is_err() {
                gate.note();
            }
        }
        Paused(gate)
    }
}

/// Threads that are paused until this is dropped.
#[derive(Debug)]
pub struct Paused(Arc<PauseGate>);

impl Paused {
    /// Waits until every thread has let go of its networks; false if that takes longer than `patience`.
    pub fn wait(&self, patience: Duration) -> bool {
        let PauseGate { state, changed } = &*self.0;
        let busy = |state: &mut State| state.busy > 0;
        let mut state = state.lock();
        changed.wait_while_for(&mut state, busy, patience);
        state.busy == 0
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// A pause, as threads see it.
#[derive(Debug)]
pub(super) struct PauseGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Threads that are not paused yet.
    busy: usize,
    is_over: bool,
}

impl PauseGate {
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

    /// Whether the pause is over.
    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_over
    }

    /// Notes that a thread has let go of its networks.
    fn note(&self) {
        self.state.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Says that the calling thread has let go of its networks, and waits for the end.
    pub(super) fn wait(&self) {
        self.note();
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !state.is_over);
    }
}
