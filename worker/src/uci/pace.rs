//! How long batches take, by their size.

use std::time::Duration;

/// Sizes 1, 2, 4 … 1024.
const SIZES: usize = 11;
/// How much of what was known stays when a batch is measured.
const MEMORY: f64 = 0.7;

/// Measured times of batches.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    /// Seconds for a batch of each power of two, where known.
    seconds: [Option<f64>; SIZES],
}

impl Pace {
    /// Learns that a batch of this size took so long. One slow batch among fast ones is remembered
    /// for a while: it may happen again.
    pub(super) fn note(&mut self, size: usize, time: Duration) {
        let seconds = time.as_secs_f64();
        let known = &mut self.seconds[index(size)];
        *known = Some(match *known {
            Some(before) if before > seconds => before * MEMORY + seconds * (1.0 - MEMORY),
            _ => seconds,
        });
    }

    /// The time that a batch of this size will take: as measured, or in proportion to the next
    /// smaller one that was. Nothing where nothing is known.
    pub(super) fn time_of(&self, size: usize) -> Duration {
        let at = index(size);
        let known = (0..=at).rev().find_map(|i| Some((i, self.seconds[i]?)));
        known.map_or(Duration::ZERO, |(i, seconds)| {
            let times = 1_u32 << (at - i);
            Duration::from_secs_f64(seconds * f64::from(times))
        })
    }

    /// The largest batch, a power of two and at most `most`, that is expected to take no longer than `time`; 1 if none is.
    pub(super) fn largest_within(&self, time: Duration, most: usize) -> usize {
        let sizes = (0..=index(most)).rev().map(|i| 1 << i);
        let mut fitting = sizes.filter(|size| self.time_of(*size) <= time);
        fitting.next().unwrap_or(1)
    }
}

/// The place of the power of two at or below a size.
fn index(size: usize) -> usize {
    (size.max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_was_not_measured_is_expected_in_proportion() {
        let mut pace = Pace::default();
        assert_eq!(pace.time_of(64), Duration::ZERO);
        pace.note(4, 2 * MS);
        assert_eq!((pace.time_of(4), pace.time_of(32)), (2 * MS, 16 * MS));
        assert_eq!(pace.time_of(1), Duration::ZERO);
        pace.note(35, 3 * MS);
        assert_eq!((pace.time_of(8), pace.time_of(63)), (4 * MS, 3 * MS));
    }

    #[test]
    fn batches_are_as_large_as_the_time_allows() {
        let mut pace = Pace::default();
        assert_eq!(pace.largest_within(MS, 100), 64);
        pace.note(1, MS);
        assert_eq!(pace.largest_within(9 * MS, 100), 8);
        assert_eq!(pace.largest_within(9 * MS, 4), 4);
        assert_eq!(pace.largest_within(MS / 2, 100), 1);
    }

    #[test]
    fn a_slow_batch_is_remembered_for_a_while() {
        let mut pace = Pace::default();
        pace.note(1, MS);
        pace.note(1, 50 * MS);
        pace.note(1, MS);
        assert!(pace.time_of(1) > 30 * MS);
        (0..20).for_each(|_| pace.note(1, MS));
        assert!(pace.time_of(1) < 2 * MS);
    }
}
