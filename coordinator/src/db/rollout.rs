//! How a new best network reaches a large fleet: by and by. Were it in every next job, all workers
//! would fetch its file in the minutes of one job.
//!
//! ```text
//! share of workers that are given the new one
//! 1 |        ________
//!   |      /            a worker's place is a hash of its name and the network's: another one for
//!   |    /              each network, and the same at all coordinators of a ledger
//! 0 |__/____________    time since the promotion
//!      0     spread
//! ```
//!
//! This is about training games alone; matches and audits name the networks that they are about.

use rookery_common::ids::{ContentHash, UserId};

/// Workers that begin to fetch a new network each second: as many files of some megabytes as a line
/// of a gigabit carries, or redirections to an object store, which cost next to nothing.
const FETCHES: u64 = 50;
/// Fleets smaller than this are told at once: their downloads take seconds.
const LARGE: u64 = 100;
/// The longest spread, in milliseconds. Games of the network before are worth less to the trainer, and
/// jobs take minutes, so that workers do not come all at once anyway.
const LONGEST_MS: u64 = 5 * 60 * 1000;

/// Who asks for a job, as far as its place in the order counts.
#[derive(Debug, Clone, Copy)]
pub struct RolloutTarget<'a> {
    pub user: UserId,
    pub worker: &'a str,
    /// Workers that were heard lately, its own among them.
    pub fleet: u64,
}

impl RolloutTarget<'_> {
    /// Whether this worker still plays with the network before `best`, which became best so many
    /// milliseconds ago.
    pub fn waits_for(&self, best: &ContentHash, age_ms: i64) -> bool {
        let spread = spread_ms(self.fleet);
        let age = u64::try_from(age_ms).unwrap_or_default();
        age < spread && self.place(best) >= age as f64 / spread as f64
    }

    /// The worker's place among all that wait for a network, from 0 to 1.
    fn place(&self, network: &ContentHash) -> f64 {
        let mut named = network.as_bytes().to_vec();
        named.extend(self.user.0.to_be_bytes());
        named.extend(self.worker.as_bytes());
        let hash = ContentHash::of(&named);
        let [a, b, c, d, ..] = *hash.as_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }
}

/// How long it takes until a fleet of so many workers is told of a new network.
const fn spread_ms(fleet: u64) -> u64 {
    if fleet < LARGE {
        return 0;
    }
    let spread = fleet.saturating_mul(1000) / FETCHES;
    if spread < LONGEST_MS {
        spread
    } else {
        LONGEST_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of so many workers wait for a network of this age.
    fn waiting(fleet: u64, network: u8, age_ms: i64) -> Vec<u64> {
        let best = ContentHash::of(&[network]);
        let waits = |worker: &u64| {
            let asker = RolloutTarget {
                user: UserId(7),
                worker: &format!("w{worker}"),
                fleet,
            };
            asker.waits_for(&best, age_ms)
        };
        (0..fleet).filter(waits).collect()
    }

    #[test]
    fn small_fleets_wait_for_nothing_and_none_waits_for_long() {
        assert_eq!([0, 99].map(spread_ms), [0, 0]);
        assert_eq!(
            [100, 20_000, u64::MAX].map(spread_ms),
            [2_000, 300_000, 300_000]
        );
        assert!(waiting(99, 1, 0).is_empty());
        assert!(waiting(2_000, 1, 40_000).is_empty());
    }

    #[test]
    fn as_many_fetch_each_second_as_in_every_other() {
        // A clock that was set back makes nobody fetch.
        assert_eq!(waiting(2_000, 1, -5).len(), 2_000);
        let mut before = waiting(2_000, 1, 0);
        assert_eq!(before.len(), 2_000);
        for second in (4..=40).step_by(4) {
            let now = waiting(2_000, 1, second * 1000);
            assert!(now.iter().all(|worker| before.contains(worker)), "{second}");
            let begun = before.len() - now.len();
            assert!((140..=260).contains(&begun), "{begun} in four seconds");
            before = now;
        }
    }

    #[test]
    fn no_worker_is_always_the_last() {
        let last = waiting(2_000, 1, 36_000);
        let again = waiting(2_000, 2, 36_000);
        let both = last.iter().filter(|worker| again.contains(worker));
        assert!(both.count() < last.len() / 2);
    }
}
