//! How long those wait who join a queue of the ledger now, as far as the last batches tell.
//!
//! Up to a batch may always wait. Beyond that, who would wait too long is told so at once, and when to
//! come again: its connection, and whatever its request holds in memory, are free meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::db::error::{DbError, Result};

/// Requests of a batch at most.
pub(crate) const MOST: usize = 256;
/// The longest wait that is expected of anybody: clients give an answer up after a minute, and the
/// ledger may turn out to be slower than it was.
const LONGEST: Duration = Duration::from_secs(15);
/// The least requests of a batch whose time says how long many of them take: of a few it is mostly
/// the commit's.
const TELLING: usize = MOST / 4;
/// What is measured is forgotten over so many seconds of work, so that it is of the last few.
const REMEMBERED: f64 = 3.0;

/// Who waits, and how fast they are served.
#[derive(Debug, Default)]
pub(crate) struct Load {
    waiting: AtomicUsize,
    pace: Mutex<Pace>,
    /// Whether the last one who came was sent away.
    shedding: AtomicBool,
}

/// One who waits, until this is dropped.
#[derive(Debug)]
pub(crate) struct QueueTicket(Arc<Load>);

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Load {
    /// Takes a place in the queue, unless the wait would be too long.
    pub(crate) fn join(self: &Arc<Self>) -> Result<QueueTicket> {
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = QueueTicket(self.clone());
        if ahead < MOST {
            self.shedding.store(false, Ordering::Relaxed);
            return Ok(place);
        }
        let wait = self.pace(|pace| pace.wait(ahead, Instant::now()));
        if wait <= LONGEST {
            return Ok(place);
        }
        if !self.shedding.swap(true, Ordering::Relaxed) {
            let seconds = wait.as_secs();
            tracing::warn!(
                waiting = ahead,
                seconds,
                "RK-0211: The ledger is overloaded: further requests get 503 with Retry-After."
            );
        }
        Err(DbError::Behind { wait })
    }

    /// A batch of so many is begun.
    pub(crate) fn begin(&self, requests: usize) {
        self.pace(|pace| pace.in_hand = Some((requests, Instant::now())));
    }

    /// The batch in hand is served.
    pub(crate) fn end(&self) {
        self.pace(|pace| {
            if let Some((requests, begun)) = pace.in_hand.take() {
                pace.measure(requests, begun.elapsed());
            }
        });
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// As if a batch of so many had taken so long.
    #[cfg(test)]
    pub(crate) fn measured(&self, requests: usize, took: Duration) {
        self.pace(|pace| pace.measure(requests, took));
    }

    fn pace<T>(&self, ask: impl FnOnce(&mut Pace) -> T) -> T {
        ask(&mut self.pace.lock())
    }
}

/// How fast requests are served while many wait.
#[derive(Debug, Default)]
struct Pace {
    /// Requests of the last telling batches, and the seconds that these took.
    requests: f64,
    seconds: f64,
    /// The batch in hand, and when it was begun.
    in_hand: Option<(usize, Instant)>,
}

impl Pace {
    fn measure(&mut self, requests: usize, took: Duration) {
        if requests < TELLING {
            return;
        }
        let took = took.as_secs_f64();
        let kept = (-took / REMEMBERED).exp();
        self.requests = self.requests * kept + requests as f64;
        self.seconds = self.seconds * kept + took;
    }

    /// Until so many are served, those in hand among them: at the measured pace, and later by as much
    /// as the batch in hand is late.
    fn wait(&self, waiting: usize, now: Instant) -> Duration {
        let takes = |requests: usize| {
            let each = self.seconds / self.requests.max(1.0);
            Duration::from_secs_f64(requests as f64 * each)
        };
        let late = self.in_hand.map_or(Duration::ZERO, |(requests, begun)| {
            now.duration_since(begun).saturating_sub(takes(requests))
        });
        takes(waiting) + late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A queue in which so many wait.
    fn filled(load: &Arc<Load>, waiting: usize) -> Vec<QueueTicket> {
        (0..waiting).map(|_| load.join().unwrap()).collect()
    }

    #[test]
    fn a_fast_ledger_sends_nobody_away() {
        let load = Arc::new(Load::default());
        load.measured(MOST, Duration::from_millis(100));
        let all = filled(&load, 20_000);
        assert_eq!(load.waiting(), all.len());
        drop(all);
        assert_eq!(load.waiting(), 0);
    }

    #[test]
    fn a_request_that_would_wait_long_is_refused_with_its_wait() {
        let load = Arc::new(Load::default());
        // Ten a second.
        load.measured(100, seconds(10));
        let all = filled(&load, MOST);
        let Err(DbError::Behind { wait }) = load.join() else {
            panic!("256 wait, and 10 are served in a second");
        };
        assert_eq!(wait.as_secs(), 25);
        drop(all);
        filled(&load, MOST);
    }

    #[test]
    fn a_batch_that_does_not_end_is_counted() {
        let pace = |in_hand| Pace {
            requests: 1_000.0,
            seconds: 1.0,
            in_hand,
        };
        let begun = Instant::now();
        let later = begun + seconds(20);
        assert_eq!(pace(None).wait(500, later), Duration::from_millis(500));
        let late = pace(Some((1_000, begun))).wait(500, later);
        assert_eq!(late, Duration::from_millis(19_500));
        // Nothing was measured before.
        let first = Pace {
            in_hand: Some((3, begun)),
            ..Pace::default()
        };
        assert_eq!(first.wait(500, later), seconds(20));
        assert_eq!(Pace::default().wait(500, later), Duration::ZERO);
    }

    #[test]
    fn small_batches_and_old_ones_do_not_tell() {
        let mut pace = Pace::default();
        pace.measure(TELLING - 1, seconds(60));
        assert_eq!(pace.wait(1_000, Instant::now()), Duration::ZERO);
        pace.measure(MOST, seconds(30));
        for _ in 0..40 {
            pace.measure(MOST, Duration::from_millis(500));
        }
        let wait = pace.wait(MOST, Instant::now()).as_secs_f64();
        assert!((0.5..0.6).contains(&wait), "{wait}");
    }
}
