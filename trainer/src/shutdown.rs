//! Ending cleanly: the first signal asks everything to stop at its next safe point, the second ends
//! the process at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The exit status after a second signal, as shells give it for Ctrl-C.
const INTERRUPTED: i32 = 130;

/// For so long after a signal, another is the same one: whatever has started the program may pass on what the
/// terminal has sent to both.
const SAME: Duration = Duration::from_millis(200);

/// Whether the user asked to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Shutdown {
    /// A shutdown that follows Ctrl-C and SIGTERM; call it inside a tokio runtime.
    pub fn on_signals() -> Self {
        let shutdown = Self::default();
        let requested = shutdown.clone();
        tokio::spawn(async move {
            requested.follow(signal, SAME).await;
            std::process::exit(INTERRUPTED);
        });
        shutdown
    }

    /// Asks to stop at the first signal, and returns at another, unless it comes within `same` after the first.
    async fn follow<S: Future<Output = ()>>(&self, mut next: impl FnMut() -> S, same: Duration) {
        next().await;
        tracing::info!("stopping at the next safe point; Ctrl-C again stops at once");
        self.request();
        tokio::time::sleep(same).await;
        next().await;
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

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        drop(tokio::signal::ctrl_c().await);
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    drop(tokio::signal::ctrl_c().await);
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    /// Whether many signals end the process at once, where those within `same` after the first are one.
    async fn ends_at_once(same: Duration) -> bool {
        let (shutdown, signals) = (Shutdown::default(), Notify::new());
        let signalling = async {
            let mut since_first = 0;
            while since_first < 20 {
                signals.notify_waiters();
                since_first += u32::from(shutdown.is_requested());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = shutdown.follow(|| signals.notified(), same) => true,
            () = signalling => false,
        }
    }

    #[tokio::test]
    async fn a_signal_that_comes_twice_at_once_is_one() {
        assert!(!ends_at_once(Duration::from_secs(3600)).await);
        assert!(ends_at_once(Duration::ZERO).await);
    }
}
