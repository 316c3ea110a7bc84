//! How the program ends, in two steps: first the games in hand are finished and uploaded, then
//! everything stops at once. A closed terminal takes both steps at once.
//!
//! Signals, a fatal answer of the coordinator and the end of the last wanted job all move the [`Shutdown`] on.

use std::time::Duration;

use rookery_cli::shutdown::{INTERRUPTED, each_signal};
pub use rookery_cli::shutdown::{Phase, Shutdown};
use rookery_common::signals::StopSignal;

/// Moves on with every signal that asks the program to end.
pub async fn follow_signals(shutdown: Shutdown) {
    each_signal(|signal| match step(signal, shutdown.phase()) {
        Step::Advance(phase, why) => {
            tracing::info!("{why}");
            shutdown.advance(phase);
        }
        Step::Stay => {}
        Step::Exit => std::process::exit(INTERRUPTED),
    })
    .await;
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
