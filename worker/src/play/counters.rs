//! Counters that threads move and everyone reads, and the switch by which a job is ended.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

use rookery_common::protocol::boards::SharedBoard;

use super::watched::Watched;

/// What was played since the start, all jobs together.
#[derive(Debug, Default)]
pub struct Counters {
    /// Positions evaluated by networks.
    pub evaluations: AtomicU64,
    /// Evaluations that a cache made needless.
    pub cache_hits: AtomicU64,
    /// Positions searched.
    pub positions: AtomicU64,
    /// Games that ended, but for those of audits.
    pub games: AtomicU64,
    /// Games of other contributors that were searched again.
    pub audits: AtomicU64,
    /// Batches evaluated.
    pub batches: AtomicU64,
}

/// What is to become of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Control {
    /// Play all its games.
    Play,
    /// Finish the games in hand, begin no more.
    FinishInHand,
    /// Drop the games in hand.
    Drop,
}

/// How far one job is.
#[derive(Debug, Default)]
pub struct JobCounters {
    positions: AtomicU64,
    unstarted: AtomicUsize,
    in_hand: AtomicUsize,
    threads: AtomicUsize,
    control: AtomicU8,
    /// A game for people to watch, if the worker's owner shares it.
    pub(super) watched: Option<Watched>,
}

impl JobCounters {
    /// The counters of a job whose games people may watch.
    pub fn shared() -> Self {
        Self {
            watched: Some(Watched::default()),
            ..Self::default()
        }
    }

    /// The newest moves of the game that people may watch.
    pub fn board(&self) -> Option<SharedBoard> {
        self.watched.as_ref()?.board()
    }

    /// Sets the counters for a job with this number of games and of threads.
    pub(super) fn begin(&self, games: usize, threads: usize) {
        self.unstarted.store(games, Relaxed);
        self.threads.store(threads, Relaxed);
    }

    /// Positions searched.
    pub fn positions(&self) -> u64 {
        self.positions.load(Relaxed)
    }

    /// Games that no thread has begun.
    pub fn unstarted(&self) -> usize {
        self.unstarted.load(Relaxed)
    }

    /// Games that were begun and have not ended.
    pub fn in_hand(&self) -> usize {
        self.in_hand.load(Relaxed)
    }

    /// What is to become of the job.
    pub fn control(&self) -> Control {
        match self.control.load(Relaxed) {
            0 => Control::Play,
            1 => Control::FinishInHand,
            _ => Control::Drop,
        }
    }

    /// Ends the job earlier; an order as strong that was given before stays. Whether this one is new.
    pub fn order(&self, control: Control) -> bool {
        self.control.fetch_max(control as u8, Relaxed) < control as u8
    }

    pub(super) fn add_positions(&self, positions: u64) {
        self.positions.fetch_add(positions, Relaxed);
    }

    pub(super) fn add_started(&self, games: u64) {
        let games = usize::try_from(games).unwrap_or(usize::MAX);
        self.unstarted
            .fetch_sub(games.min(self.unstarted()), Relaxed);
        self.in_hand.fetch_add(games, Relaxed);
    }

    /// Counts games that ended; they were counted as started before.
    pub(super) fn add_finished(&self, games: u64) {
        let games = usize::try_from(games).unwrap_or(usize::MAX);
        self.in_hand.fetch_sub(games.min(self.in_hand()), Relaxed);
    }

    /// Notes that a thread has left the job; whether it was the last.
    pub(super) fn leave(&self) -> bool {
        self.threads.fetch_sub(1, Relaxed) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_only_get_stronger() {
        let counters = JobCounters::default();
        assert_eq!(counters.control(), Control::Play);
        assert!(counters.order(Control::Drop));
        assert!(!counters.order(Control::FinishInHand));
        assert!(!counters.order(Control::Drop));
        assert_eq!(counters.control(), Control::Drop);
    }

    #[test]
    fn games_are_counted_and_the_last_thread_is_told_so() {
        let counters = JobCounters::default();
        counters.begin(10, 2);
        counters.add_started(4);
        assert_eq!((counters.unstarted(), counters.in_hand()), (6, 4));
        counters.add_finished(3);
        assert_eq!((counters.unstarted(), counters.in_hand()), (6, 1));
        assert!(!counters.leave());
        assert!(counters.leave());
    }
}
