//! Ending cleanly: the first signal asks everything to stop at its next safe point, the second ends
//! the process at once.

use std::ops::ControlFlow;

use rookery_common::signals::{StopSignal, StopSignals};
use tokio::sync::watch;

/// The exit status after a second signal, as shells give it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Whether the user asked to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            sender: watch::Sender::new(false),
        }
    }
}

impl Shutdown {
    /// A shutdown that follows Ctrl-C, SIGTERM and a closed terminal; call it inside a tokio runtime.
    pub fn on_signals() -> Self {
        let shutdown = Self::default();
        let requested = shutdown.clone();
        tokio::spawn(async move {
            match StopSignals::listen() {
                Ok(mut signals) => loop {
                    requested.heed(signals.next().await);
                },
                Err(error) => tracing::warn!("Ctrl-C cannot be listened to: {error}"),
            }
        });
        shutdown
    }

    /// Asks to stop at the first signal. A second one ends the process, but for a closed terminal, of which the shell
    /// and the system may both tell.
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

    /// Asks to stop.
    pub fn request(&self) {
        self.sender.send_replace(true);
    }

    /// Whether to stop.
    pub fn is_requested(&self) -> bool {
        *self.sender.borrow()
    }

    /// Breaks off whatever calls back over and over, once it is time to stop.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Waits until it is time to stop.
    pub async fn requested(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        drop(receiver.wait_for(|requested| *requested).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_terminal_asks_to_stop_however_often_it_is_told() {
        let shutdown = Shutdown::default();
        assert!(!shutdown.is_requested());
        shutdown.heed(StopSignal::Hangup);
        shutdown.heed(StopSignal::Hangup);
        shutdown.requested().await;
    }
}
