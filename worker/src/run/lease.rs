//! A lease: heartbeats for as long as a job is in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::{Heartbeat, Instruction, Job};

use super::{Event, Shared};
use crate::api::ApiError;
use crate::play::JobGauge;
use crate::random;
use crate::retry::CallError;
use crate::shutdown::Phase;

/// What a lease tells.
#[derive(Debug)]
pub(crate) enum LeaseEvent {
    /// The games are no longer wanted.
    Abandon(JobId),
    /// The lease has ended.
    Lost(JobId, ApiError),
    /// The user has to do something.
    Fatal(ApiError),
}

/// A lease with its heartbeat, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    beating: tokio::task::JoinHandle<()>,
    /// Games of the job that are on disk.
    pub(super) finished: Arc<AtomicU32>,
    pub(super) gauge: Arc<JobGauge>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Lease {
    /// Begins to send heartbeats.
    pub(super) fn hold(shared: &Shared, job: Arc<Job>, finished: u32) -> Self {
        let finished = Arc::new(AtomicU32::new(finished));
        let gauge = Arc::new(JobGauge::default());
        let beat = Beat {
            shared: shared.clone(),
            job,
            finished: Arc::clone(&finished),
            gauge: Arc::clone(&gauge),
        };
        Self {
            beating: tokio::spawn(beat.run()),
            finished,
            gauge,
        }
    }
}

struct Beat {
    shared: Shared,
    job: Arc<Job>,
    finished: Arc<AtomicU32>,
    gauge: Arc<JobGauge>,
}

impl Beat {
    async fn run(self) {
        loop {
            tokio::time::sleep(random::jittered(interval(&self.job))).await;
            let call = || {
                let (client, job, beat) = (&self.shared.client, self.job.id, self.heartbeat());
                async move { client.heartbeat(job, &beat).await }
            };
            // Its networks may still be on their way.
            let what = "no heartbeat could be sent; the job stays in hand";
            let answer = self.shared.retry.until(Phase::Stopping, what, call).await;
            let event = match answer {
                Ok(reply) if reply.instruction == Instruction::Continue => continue,
                Ok(_) => LeaseEvent::Abandon(self.job.id),
                Err(CallError::Refused(error)) => LeaseEvent::Lost(self.job.id, error),
                Err(CallError::Fatal(error)) => LeaseEvent::Fatal(error),
                Err(CallError::Interrupted) => return,
            };
            // Without a supervisor there is no job to tell of.
            drop(self.shared.events.send(Event::Lease(event)));
            return;
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            games_finished: self.finished.load(Ordering::Relaxed),
            positions: self.gauge.positions(),
            evals_per_second: self.shared.status.evals_per_second(),
        }
    }
}

/// The coordinator's wish, within reason and well within the lease.
fn interval(job: &Job) -> Duration {
    let longest = (job.lease_seconds / 2).max(1);
    Duration::from_secs(u64::from(job.heartbeat_seconds.clamp(1, longest)))
}
