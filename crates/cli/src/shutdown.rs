//! Ending cleanly, in steps that every part of a program sees.
//!
//! [`Shutdown`] is a cheap handle. Signals and whatever else ends the program move it on; it never moves back. Commands
//! with one step use [`Shutdown::on_signals`]: the first signal asks everything to stop at its next safe point, the second
//! ends the process at once. The volunteer's program follows signals in two steps of its own.

use std::ops::ControlFlow;

use rookery_common::signals::{StopSignal, StopSignals};
use tokio::sync::watch;

/// The exit status after a second signal, as shells give it for Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing has been asked for yet.
    Starting,
    /// At work.
    Running,
    /// Nothing new is begun; what is in hand is brought to a safe point.
    Finishing,
    /// What is in hand is dropped.
    Stopping,
}

/// A handle on the program's phase; cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Sender<Phase>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Starting),
        }
    }
}

impl Shutdown {
    /// A shutdown that follows Ctrl-C, SIGTERM and a closed terminal; call it inside a tokio runtime.
    pub fn on_signals() -> Self {
        let shutdown = Self::default();
        let requested = shutdown.clone();
        tokio::spawn(each_signal(move |signal| requested.heed(signal)));
        shutdown
    }

    /// Asks to stop at the first signal. A second one ends the process, but for a closed terminal: the shell and the
    /// system may both report it.
    fn heed(&self, signal: StopSignal) {
        match (signal, self.is_requested()) {
            (StopSignal::Interrupt, true) => std::process::exit(INTERRUPTED),
            (StopSignal::Interrupt, false) => {
                tracing::info!("stopping at the next safe point; Ctrl-C again stops at once");
            }
            (StopSignal::Hangup, _) => {
                tracing::info!("the terminal was closed: stopping at the next safe point");
            }
        }
        self.request();
    }

    /// The present phase.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Whether `phase` has come.
    pub fn has_reached(&self, phase: Phase) -> bool {
        self.phase() >= phase
    }

    /// Moves on to `phase`; does nothing if it has come already.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|present| {
            let later = *present < phase;
            *present = phase.max(*present);
            later
        });
    }

    /// Waits until `phase` has come.
    pub async fn reached(&self, phase: Phase) {
        let mut watched = self.phase.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(watched.wait_for(|present| *present >= phase).await);
    }

    /// Asks to stop at the next safe point.
    pub fn request(&self) {
        self.advance(Phase::Finishing);
    }

    /// Whether to stop at the next safe point.
    pub fn is_requested(&self) -> bool {
        self.has_reached(Phase::Finishing)
    }

    /// Breaks off whatever calls back over and over, once it is time to stop.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Waits until it is time to stop at the next safe point.
    pub async fn requested(&self) {
        self.reached(Phase::Finishing).await;
    }
}

/// Calls back with every signal that asks the program to end, for as long as the program lives.
pub async fn each_signal(mut heed: impl FnMut(StopSignal)) {
    match StopSignals::listen() {
        Ok(mut signals) => loop {
            heed(signals.next().await);
        },
        Err(error) => tracing::warn!("Ctrl-C cannot be listened to: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_only_move_on() {
        let shutdown = Shutdown::default();
        let waiter = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.reached(Phase::Finishing).await }
        });
        assert!(!shutdown.has_reached(Phase::Finishing));
        shutdown.advance(Phase::Stopping);
        shutdown.advance(Phase::Finishing);
        assert_eq!(shutdown.phase(), Phase::Stopping);
        waiter.await.unwrap();
        shutdown.reached(Phase::Running).await;
    }

    #[tokio::test]
    async fn a_closed_terminal_asks_to_stop_however_often_it_is_reported() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.is_requested());
        shutdown.heed(StopSignal::Hangup);
        shutdown.heed(StopSignal::Hangup);
        shutdown.requested().await;
        assert_eq!(shutdown.phase(), Phase::Finishing);
    }
}
