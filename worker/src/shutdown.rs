//! How the program ends, in two steps: first the games in hand are finished and uploaded, then
//! everything stops at once. A closed terminal takes both steps at once.
//!
//! [`Shutdown`] is a cheap handle that every part holds. Signals, a fatal answer of the
//! coordinator and the end of the last wanted job all move it on; it never moves back.

use std::time::Duration;

use rookery_common::signals::{StopSignal, StopSignals};
use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing has been asked for yet.
    Starting,
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
            phase: watch::Sender::new(Phase::Starting),
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

/// Moves on with every signal that asks the program to end.
pub async fn follow_signals(shutdown: Shutdown) {
    let mut signals = match StopSignals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::warn!("Ctrl-C cannot be listened to: {error}");
            return;
        }
    };
    loop {
        match step(signals.next().await, shutdown.phase()) {
            Step::Advance(phase, why) => {
                tracing::info!("{why}");
                shutdown.advance(phase);
            }
            Step::Stay => {}
            Step::Exit => std::process::exit(130),
        }
    }
}

/// What a signal does.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Moves on, for this reason.
    Advance(Phase, &'static str),
    /// Nothing.
    Stay,
    /// Ends the process at once.
    Exit,
}

/// What this signal does in this phase. After the terminal is closed, no user waits for the games in hand, and the shell
/// and the system may both tell of it.
const fn step(signal: StopSignal, phase: Phase) -> Step {
    match (signal, phase) {
        (StopSignal::Interrupt, Phase::Starting) => Step::Advance(
            Phase::Finishing,
            "ending; no games were begun at this start",
        ),
        (StopSignal::Interrupt, Phase::Running) => Step::Advance(
            Phase::Finishing,
            "finishing the games in hand, then ending; a second signal stops at once",
        ),
        (StopSignal::Interrupt, Phase::Finishing) => {
            Step::Advance(Phase::Stopping, "stopping at once; finished games are kept")
        }
        (StopSignal::Interrupt, Phase::Stopping) => Step::Exit,
        (StopSignal::Hangup, Phase::Starting | Phase::Running | Phase::Finishing) => Step::Advance(
            Phase::Stopping,
            "the terminal was closed: stopping at once; finished games are kept",
        ),
        (StopSignal::Hangup, Phase::Stopping) => Step::Stay,
    }
}

/// Begins the end after so long, unless it has begun.
pub async fn finish_after(time: Duration, shutdown: Shutdown) {
    tokio::time::sleep(time).await;
    if !shutdown.has_reached(Phase::Finishing) {
        tracing::info!("the time is over: finishing the games in hand, then ending");
        shutdown.advance(Phase::Finishing);
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

    #[test]
    fn a_closed_terminal_stops_at_once_and_interrupts_in_two_steps() {
        let phase_after = |signal, phase| match step(signal, phase) {
            Step::Advance(phase, _) => Some(phase),
            Step::Stay => Some(phase),
            Step::Exit => None,
        };
        use Phase::{Finishing, Running, Starting, Stopping};
        for (signal, phase, after) in [
            (StopSignal::Interrupt, Starting, Some(Finishing)),
            (StopSignal::Interrupt, Running, Some(Finishing)),
            (StopSignal::Interrupt, Finishing, Some(Stopping)),
            (StopSignal::Interrupt, Stopping, None),
            (StopSignal::Hangup, Starting, Some(Stopping)),
            (StopSignal::Hangup, Running, Some(Stopping)),
            (StopSignal::Hangup, Finishing, Some(Stopping)),
            (StopSignal::Hangup, Stopping, Some(Stopping)),
        ] {
            assert_eq!(phase_after(signal, phase), after, "{signal:?} {phase:?}");
        }
        let Step::Advance(_, why) = step(StopSignal::Interrupt, Starting) else {
            panic!("it goes on")
        };
        assert!(!why.contains("in hand"), "there are none yet: {why}");
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
