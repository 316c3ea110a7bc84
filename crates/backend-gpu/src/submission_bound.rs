//! How many positions a submission may have, so that it ends soon and the device has memory for it.
//!
//! ```text
//! bound = min(by time, by the size of an array that can be bound, by free memory)
//! ```
//!
//! The first estimate of the time may be far too low, as it contains the waiting for other threads' submissions. So a full
//! submission that ends soon doubles it, and several in a row that take far too long halve it: a card that is hot, or that
//! other programs use, is slower than it was. A shortage of memory passes, so that bound is doubled now and then.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Most positions of one submission.
pub(crate) const MOST_POSITIONS: usize = 1024;
/// How long a submission may take. Windows resets a driver after two seconds.
pub(crate) const LONGEST: Duration = Duration::from_millis(50);
/// Positions of a submission at least, however long they take.
pub(crate) const FEWEST_POSITIONS: usize = 8;
/// A submission is slow if it takes this many times as long as it may.
const SLOW: u32 = 4;
/// Slow submissions in a row that halve the bound.
const SLOW_RUN: u32 = 3;
/// How long a shortage of memory is taken to last.
const SHORTAGE: Duration = Duration::from_secs(60);

/// The bound of one network, which its evaluators share.
#[derive(Debug)]
pub(crate) struct SubmissionBound {
    longest: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    by_time: usize,
    by_arrays: usize,
    /// Slow submissions since the last one that was not.
    slow: u32,
    shortage: Option<Shortage>,
}

/// For how many positions there was memory.
#[derive(Debug)]
struct Shortage {
    positions: usize,
    /// When twice as many are tried.
    until: Instant,
}

impl SubmissionBound {
    /// A bound by [`MOST_POSITIONS`] alone, with the time that a submission may take.
    pub(crate) const fn new(longest: Duration) -> Self {
        Self {
            longest,
            state: Mutex::new(State {
                by_time: MOST_POSITIONS,
                by_arrays: MOST_POSITIONS,
                slow: 0,
                shortage: None,
            }),
        }
    }

    /// Most positions of a submission now, at least one.
    pub(crate) fn positions(&self, now: Instant) -> usize {
        let mut state = self.state.lock();
        if let Some(shortage) = &mut state.shortage
            && now >= shortage.until
        {
            shortage.positions *= 2;
            shortage.until = now + SHORTAGE;
        }
        state
            .shortage
            .take_if(|shortage| shortage.positions >= MOST_POSITIONS);
        let by_memory = state.shortage.as_ref().map(|shortage| shortage.positions);
        let most = state.by_time.min(state.by_arrays);
        most.min(by_memory.unwrap_or(most)).max(1)
    }

    /// Estimates how many positions take as long as a submission may.
    pub(crate) fn set_by_time(&self, positions: usize) {
        self.state.lock().by_time = positions.clamp(1, MOST_POSITIONS);
    }

    /// Notes for how many positions arrays can be bound.
    pub(crate) fn set_by_arrays(&self, positions: usize) {
        self.state.lock().by_arrays = positions.clamp(1, MOST_POSITIONS);
    }

    /// Notes that there is memory for this many positions and not for twice as many. True where that is news.
    pub(crate) fn note_shortage(&self, positions: usize, now: Instant) -> bool {
        let mut state = self.state.lock();
        let known = state.shortage.as_ref();
        let is_known = known.is_some_and(|known| known.positions <= 2 * positions);
        state.shortage = Some(Shortage {
            positions,
            until: now + SHORTAGE,
        });
        !is_known
    }

    /// Notes how long a submission took that `queued` submissions shared the device with, itself among them. A full one that
    /// took less than half of the time doubles the bound, whatever it waited for. Slow ones halve it, for which the time is
    /// divided among all that were queued.
    pub(crate) fn note_time(&self, positions: usize, time: Duration, queued: usize) {
        let mut state = self.state.lock();
        if time > self.longest.saturating_mul(SLOW * queued as u32) {
            state.slow += 1;
            if state.slow == SLOW_RUN {
                let halved = (state.by_time / 2).max(FEWEST_POSITIONS);
                state.by_time = halved.min(state.by_time);
                state.slow = 0;
            }
            return;
        }
        state.slow = 0;
        if positions >= state.by_time && time < self.longest / 2 {
            state.by_time = (2 * positions).min(MOST_POSITIONS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_submissions_that_end_soon_raise_a_bound_that_was_estimated_too_low() {
        let (bound, now) = (SubmissionBound::new(LONGEST), Instant::now());
        bound.set_by_time(8);
        bound.note_time(7, Duration::ZERO, 1);
        assert_eq!(bound.positions(now), 8, "it was not full");
        bound.note_time(8, LONGEST / 2, 1);
        assert_eq!(bound.positions(now), 8, "twice as many take too long");
        for expected in [16, 32, 64, 128, 256, 512, 1024, 1024] {
            bound.note_time(bound.positions(now), LONGEST / 3, 1);
            assert_eq!(bound.positions(now), expected);
        }
        // What cannot be bound is not tried again.
        bound.set_by_arrays(100);
        bound.note_time(100, Duration::ZERO, 1);
        assert_eq!(bound.positions(now), 100);
    }

    #[test]
    fn slow_submissions_in_a_row_halve_the_bound_of_a_card_that_throttles() {
        let (bound, now) = (SubmissionBound::new(LONGEST), Instant::now());
        let slow = SLOW * LONGEST + Duration::from_millis(1);
        let halved = |expected| {
            (1..SLOW_RUN).for_each(|_| bound.note_time(100, slow, 1));
            assert_eq!(bound.positions(now), 2 * expected, "they may be few");
            bound.note_time(100, slow, 1);
            assert_eq!(bound.positions(now), expected);
        };
        halved(512);
        halved(256);
        // One that is not slow begins anew.
        (1..SLOW_RUN).for_each(|_| bound.note_time(100, slow, 1));
        bound.note_time(100, LONGEST, 1);
        halved(128);
        // It was the others' submissions that took so long.
        (0..10).for_each(|_| bound.note_time(100, slow, 2));
        assert_eq!(bound.positions(now), 128);
        // As few as take far too long are the fewest.
        (0..100).for_each(|_| bound.note_time(100, Duration::MAX, 1));
        assert_eq!(bound.positions(now), FEWEST_POSITIONS);
        bound.set_by_time(3);
        (0..100).for_each(|_| bound.note_time(3, slow, 1));
        assert_eq!(bound.positions(now), 3);
        bound.note_time(8, LONGEST / 3, 1);
        assert_eq!(bound.positions(now), 16, "it has recovered");
    }

    #[test]
    fn a_shortage_of_memory_passes() {
        let (bound, now) = (SubmissionBound::new(LONGEST), Instant::now());
        assert!(bound.note_shortage(512, now));
        assert!(bound.note_shortage(128, now));
        assert_eq!(bound.positions(now), 128);
        let later = now + SHORTAGE;
        assert_eq!(bound.positions(later), 256);
        // It lasts: nothing new.
        assert!(!bound.note_shortage(128, later));
        assert_eq!(bound.positions(later), 128);
        for (minutes, expected) in [(1, 256), (2, 512), (3, 1024), (4, 1024)] {
            assert_eq!(bound.positions(later + minutes * SHORTAGE), expected);
        }
        assert!(bound.note_shortage(128, later), "a new one");
    }
}
