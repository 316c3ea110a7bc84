//! One short line in the log for each job that is taken; audits, which come in bursts, share one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::text::quantity;

use super::status::networks;

/// Audits that are taken within this time share a log line.
const BURST: Duration = Duration::from_secs(10);

/// What was taken and not yet told of.
#[derive(Debug, Default)]
pub(crate) struct JobLog {
    /// Audits of the burst that goes on: games of others that are searched again.
    audits: Mutex<usize>,
}

impl JobLog {
    /// Logs a job and the number of games to play.
    pub(super) fn taken(self: &Arc<Self>, job: &Job, games: usize) {
        tracing::debug!(job = %job.id, run = %job.run, games, "job taken");
        if job.work.kind() != WorkKind::Audit {
            tracing::info!("job taken: {}", words(job, games));
            return;
        }
        if self.add_audits(games) {
            let log = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(BURST).await;
                let audits = quantity(log.take_audits(), "audit");
                tracing::info!("jobs taken: {audits}");
            });
        }
    }

    /// Adds audits to the burst; whether they are its first.
    fn add_audits(&self, games: usize) -> bool {
        let mut audits = self.audits.lock();
        let is_first = *audits == 0;
        *audits += games;
        is_first
    }

    /// Ends a burst; gives its audits.
    fn take_audits(&self) -> usize {
        std::mem::take(&mut *self.audits.lock())
    }
}

/// A job's games and networks.
fn words(job: &Job, games: usize) -> String {
    let kind = match job.work.kind() {
        WorkKind::SelfPlay => "self-play game",
        WorkKind::Puzzles => "puzzle game",
        WorkKind::Match => "match game",
        WorkKind::Audit => "audit",
    };
    let networks = networks(job).join(" against ");
    format!("{} of network {networks}", quantity(games, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_one_short_line() {
        let job = crate::spool::testing::job(3);
        assert_eq!(words(&job, 128), "128 self-play games of network #0");
        assert_eq!(words(&job, 1), "1 self-play game of network #0");
    }

    #[test]
    fn audits_of_a_burst_are_told_of_once() {
        let log = JobLog::default();
        assert!(log.add_audits(8), "the first begin a burst");
        assert!(!log.add_audits(4));
        assert_eq!(log.take_audits(), 12);
        assert!(log.add_audits(1), "the next begin another");
    }
}
