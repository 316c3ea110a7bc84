//! How the program ends, in two steps: first the games in hand are finished and uploaded, then
//! everything stops at once.
//!
//! [`Shutdown`] is a cheap handle that every part holds. Signals, a fatal answer of the
//! coordinator and the end of the last wanted job all move it on; it never moves back.

use std::time::Duration;

use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Playing.
    Running,
    /// No new jobs; games in hand are finished and uploaded.
    Finishing,
    /// Games in hand are dropped; leases are given back.
    Stopping,
}

/// A handle on the program's phase.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Sender<Phase>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Running),
        }
    }
}

impl Shutdown {
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
}

/// For so long after a signal, others are the same one: whatever has started the program may pass on what the
/// terminal has sent to both.
const SAME: Duration = Duration::from_millis(200);

/// Moves on with every Ctrl-C and, where there are such, every SIGTERM, until told to end.
pub async fn listen_to_signals(shutdown: Shutdown) {
    follow(shutdown, next_signal, SAME).await;
}

/// Moves on with every signal but those that come within `same` after another.
async fn follow<S: Future<Output = ()>>(
    shutdown: Shutdown,
    mut next: impl FnMut() -> S,
    same: Duration,
) {
    loop {
        next().await;
        match shutdown.phase() {
            Phase::Running => {
                tracing::info!("finishing the games in hand, then ending; once more stops at once");
                shutdown.advance(Phase::Finishing);
            }
            Phase::Finishing => {
                tracing::info!("stopping at once; finished games are kept");
                shutdown.advance(Phase::Stopping);
            }
            Phase::Stopping => std::process::exit(130),
        }
        tokio::time::sleep(same).await;
    }
}

/// Begins the end after so long, unless it has begun.
pub async fn finish_after(time: Duration, shutdown: Shutdown) {
    tokio::time::sleep(time).await;
    if shutdown.phase() == Phase::Running {
        tracing::info!("the time is over: finishing the games in hand, then ending");
        shutdown.advance(Phase::Finishing);
    }
}

#[cfg(unix)]
async fn next_signal() {
    use tokio::signal::unix::{SignalKind, signal};

    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            () = ctrl_c() => (),
            _ = terminate.recv() => (),
        },
        Err(_) => ctrl_c().await,
    }
}

#[cfg(not(unix))]
async fn next_signal() {
    ctrl_c().await;
}

async fn ctrl_c() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!("Ctrl-C cannot be listened to: {error}");
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

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

    /// The phase after many signals, of which those within `same` after another are one.
    async fn after_signals(same: Duration) -> Phase {
        let (shutdown, signals) = (Shutdown::default(), Notify::new());
        let following = follow(shutdown.clone(), || signals.notified(), same);
        let signalling = async {
            let mut since_first = 0;
            while since_first < 20 && !shutdown.has_reached(Phase::Stopping) {
                signals.notify_waiters();
                since_first += u32::from(shutdown.has_reached(Phase::Finishing));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            () = following => {}
            () = signalling => {}
        }
        shutdown.phase()
    }

    #[tokio::test]
    async fn a_signal_that_comes_twice_at_once_is_one() {
        let hour = Duration::from_secs(3600);
        assert_eq!(after_signals(hour).await, Phase::Finishing);
        assert_eq!(after_signals(Duration::ZERO).await, Phase::Stopping);
    }

    #[tokio::test]
    async fn time_ends_play_and_no_more() {
        let shutdown = Shutdown::default();
        finish_after(Duration::from_millis(1), shutdown.clone()).await;
        assert_eq!(shutdown.phase(), Phase::Finishing);
        shutdown.advance(Phase::Stopping);
        finish_after(Duration::from_millis(1), shutdown.clone()).await;
        assert_eq!(shutdown.phase(), Phase::Stopping);
    }
}
