//! Signals that ask a program to end: Ctrl-C, SIGTERM, and SIGHUP of a terminal that is closed.
//!
//! Behind the feature `command-line`.

use std::io;
use std::time::{Duration, Instant};

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Within this time after an interrupt, another is the same one: whatever has started the program may pass on what
/// the terminal has sent to both.
const SAME_INTERRUPT: Duration = Duration::from_millis(200);

/// A signal that asks the program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C or SIGTERM.
    Interrupt,
    /// The terminal was closed.
    Hangup,
}

/// The signals that ask this program to end. They no longer end it by themselves.
#[derive(Debug)]
pub struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    /// None under `nohup`.
    #[cfg(unix)]
    hangup: Option<Signal>,
    last_interrupt: Option<Instant>,
}

impl StopSignals {
    /// Begins to listen. It must be called in a runtime.
    ///
    /// # Errors
    ///
    /// If the system does not let the program handle these signals.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            hangup: (!hangup_is_ignored())
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
            last_interrupt: None,
        })
    }

    /// Waits for the next signal. An interrupt that repeats the one just before it is left out.
    pub async fn next(&mut self) -> StopSignal {
        loop {
            let stop = self.receive().await;
            let now = Instant::now();
            if stop == StopSignal::Hangup {
                return stop;
            }
            let repeats = repeats(self.last_interrupt, now);
            self.last_interrupt = Some(now);
            if !repeats {
                return stop;
            }
        }
    }

    #[cfg(unix)]
    async fn receive(&mut self) -> StopSignal {
        let Self {
            interrupt,
            terminate,
            hangup,
            ..
        } = self;
        let hangup = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => StopSignal::Interrupt,
            _ = terminate.recv() => StopSignal::Interrupt,
            _ = hangup => StopSignal::Hangup,
        }
    }

    #[cfg(not(unix))]
    async fn receive(&mut self) -> StopSignal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        StopSignal::Interrupt
    }
}

/// Whether an interrupt at `now` is the one before it, which came twice.
fn repeats(last: Option<Instant>, now: Instant) -> bool {
    last.is_some_and(|last| now.duration_since(last) < SAME_INTERRUPT)
}

/// Whether the program was started with SIGHUP ignored, as `nohup` does. Only Linux tells; elsewhere a program counts
/// as started by `nohup` if what it says does not go to a terminal.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    use std::io::IsTerminal as _;
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => ignores_hangup(&status),
        Err(_) => !io::stderr().is_terminal(),
    }
}

/// Whether a process ignores SIGHUP, by its `/proc/PID/status`.
#[cfg(unix)]
fn ignores_hangup(status: &str) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_that_comes_twice_at_once_is_one() {
        let first = Instant::now();
        assert!(!repeats(None, first));
        assert!(repeats(Some(first), first + SAME_INTERRUPT / 2));
        assert!(!repeats(Some(first), first + SAME_INTERRUPT));
    }

    #[cfg(unix)]
    #[test]
    fn nohup_shows_in_the_mask_of_ignored_signals() {
        let status = |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
        assert!(ignores_hangup(&status("0000000000001001")));
        assert!(!ignores_hangup(&status("0000000000001000")));
        assert!(!ignores_hangup("Name:\tx\n"));
    }
}
