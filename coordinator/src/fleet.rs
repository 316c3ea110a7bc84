//! How many workers there are, and when those ask again for which there is nothing to do.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rookery_common::ids::RunName;
use rookery_common::protocol::runs::{RunInfo, RunStatus};

use crate::db::{ACTIVE, Result, SharedDatabase};

/// How old the number of workers may be that were heard lately.
const FRESH: SignedDuration = SignedDuration::from_secs(15);

/// Requests a second of all for whom there is nothing, so that they keep no core busy: a request for a
/// job costs some hundred microseconds.
const ASKS: i64 = 200;
/// The time between two of them.
const BETWEEN: SignedDuration = SignedDuration::from_millis(1000 / ASKS);
const SHORT: SignedDuration = SignedDuration::from_secs(3);
/// The shortest wait where every run that may give something is paused, for which an operator comes back.
const PAUSED: SignedDuration = SignedDuration::from_secs(15);
/// The longest wait, without what chance adds: who waits should notice soon that there is work again.
const LONG: SignedDuration = SignedDuration::from_secs(80);
/// What part of a wait chance may add, so that those who came together do not come back so.
const SPREAD: f64 = 0.5;

/// What is known of the workers.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Those that were heard lately, and when they were counted.
    active: Mutex<Option<(Timestamp, u64)>>,
    /// Until when those for whom there was nothing fill all that [`ASKS`] allows. The ledger does not
    /// know who waits, so each coordinator counts its own.
    reserved: Mutex<Timestamp>,
}

impl Fleet {
    /// Workers that were heard lately, of all runs, as they were at most some seconds ago.
    pub async fn active_workers(&self, db: &SharedDatabase, now: Timestamp) -> Result<u64> {
        let known = *self.active.lock();
        if let Some((at, workers)) = known
            && (SignedDuration::ZERO..FRESH).contains(&now.duration_since(at))
        {
            return Ok(workers);
        }
        let workers = db.workers(None, now - ACTIVE, 0).await?.all;
        *self.active.lock() = Some((now, workers));
        Ok(workers)
    }

    /// How many seconds somebody waits for whom there is nothing, by chance from 0 to 1. `runs` are all
    /// runs, `wanted` the one that was asked for.
    pub fn wait(
        &self,
        runs: &[RunInfo],
        wanted: Option<&RunName>,
        chance: f64,
        now: Timestamp,
    ) -> u32 {
        let mut asked = runs
            .iter()
            .filter(|run| wanted.is_none_or(|wanted| run.name == *wanted))
            .peekable();
        let paused = asked.peek().is_some() && asked.all(|run| run.status == RunStatus::Paused);
        let wait = self
            .reserve_ask(now)
            .max(if paused { PAUSED } else { SHORT });
        (wait.as_secs_f64() * (1.0 + SPREAD * chance)).ceil() as u32
    }
    /// The time until the next request that [`ASKS`] allows, which is taken by this.
    fn reserve_ask(&self, now: Timestamp) -> SignedDuration {
        let mut reserved = self.reserved.lock();
        let ahead = reserved.duration_since(now).max(SignedDuration::ZERO);
        let wait = ahead.saturating_add(BETWEEN).min(LONG);
        *reserved = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        wait
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn runs(statuses: &[&str]) -> Vec<RunInfo> {
        let run = |(place, status): (usize, &&str)| {
            let run = json!({
                "name": format!("run{place}"), "description": "", "status": status, "params": {},
                "best": null, "networks": 0, "games": 0, "training_positions": 0, "positions": 0,
                "chunks": 0, "chunk_bytes": 0, "created_at": "",
            });
            serde_json::from_value(run).unwrap()
        };
        statuses.iter().enumerate().map(run).collect()
    }

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + milliseconds).unwrap()
    }

    /// Requests a second of this number of workers, if there is no work for minutes and each one backs off.
    fn asks(workers: usize) -> Vec<usize> {
        let (fleet, open) = (Fleet::default(), runs(&["open"]));
        let mut waiting = std::collections::BinaryHeap::new();
        // All have come at once.
        waiting.extend((0..workers).map(|worker| std::cmp::Reverse((0, worker))));
        let mut seconds = vec![0; 600];
        while let Some(std::cmp::Reverse((time, worker))) = waiting.pop() {
            let Some(asks) = seconds.get_mut(time as usize / 1000) else {
                break;
            };
            *asks += 1;
            let chance = (worker * 61 % 97) as f64 / 97.0;
            let wait = fleet.wait(&open, None, chance, at(time));
            waiting.push(std::cmp::Reverse((time + i64::from(wait) * 1000, worker)));
        }
        seconds
    }

    #[test]
    fn who_waits_asks_the_less_often_the_more_wait() {
        for (workers, most) in [(20, 20), (1_000, 500), (20_000, 500)] {
            let seconds = asks(workers);
            let busiest = seconds[5..].iter().max().unwrap();
            assert!(*busiest <= most, "{busiest} of {workers} in a second");
            let all: usize = seconds[300..].iter().sum();
            let usual = (workers / 4).min(ASKS as usize);
            assert!((usual / 2..=usual * 3 / 2).contains(&(all / 300)), "{all}");
        }
    }

    #[test]
    fn nobody_waits_for_minutes_and_nobody_asks_at_once() {
        let (fleet, open) = (Fleet::default(), runs(&["open"]));
        assert_eq!(fleet.wait(&open, None, 0.0, at(0)), 3);
        assert_eq!(fleet.wait(&open, None, 1.0, at(0)), 5);
        let last = (0..100_000).map(|_| fleet.wait(&open, None, 1.0, at(0)));
        assert_eq!(last.last(), Some(120));
        // Nor after the clock was set back, and none of that lasts.
        assert_eq!(fleet.wait(&open, None, 0.0, at(-86_400_000)), 80);
        assert_eq!(fleet.wait(&open, None, 0.0, at(0)), 3);
    }

    #[test]
    fn a_pause_is_waited_for_longer() {
        let (fleet, runs) = (Fleet::default(), runs(&["paused", "open"]));
        let wait = |runs: &[RunInfo], wanted: Option<&str>| {
            let wanted = wanted.map(|name| name.parse().unwrap());
            fleet.wait(runs, wanted.as_ref(), 0.0, at(0))
        };
        assert_eq!(wait(&runs, None), 3);
        assert_eq!(wait(&runs, Some("run0")), 15);
        assert_eq!(wait(&runs, Some("run1")), 3);
        assert_eq!(wait(&runs[..1], None), 15);
        assert_eq!(wait(&[], None), 3, "no run yet");
    }
}
