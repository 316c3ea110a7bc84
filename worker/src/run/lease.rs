//! A lease: heartbeats for as long as a job is in hand, and giving it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::{Heartbeat, Instruction, Job, WorkKind};

use super::{Event, Shared};
use crate::api::{self, Client};
use crate::play::{Control, JobCounters};
use crate::random;
use crate::retry::CallError;
use crate::shutdown::Phase;

/// Timeout for giving a lease back; after it, the lease expires by itself.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// A lease with its heartbeat, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    beating: tokio::task::JoinHandle<()>,
    /// Games of the job that are on disk.
    pub(super) finished: Arc<AtomicU32>,
    pub(super) counters: Arc<JobCounters>,
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
        let is_game = job.work.kind() != WorkKind::Audit;
        let counters = Arc::new(if shared.settings.share_live && is_game {
            JobCounters::shared()
        } else {
            JobCounters::default()
        });
        let beat = Beat {
            shared: shared.clone(),
            job,
            finished: Arc::clone(&finished),
            counters: Arc::clone(&counters),
        };
        Self {
            beating: tokio::spawn(beat.run()),
            finished,
            counters,
        }
    }
}

struct Beat {
    shared: Shared,
    job: Arc<Job>,
    finished: Arc<AtomicU32>,
    counters: Arc<JobCounters>,
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
            if let Ok(reply) = &answer {
                self.shared.notices.show(&reply.notices);
            }
            match answer {
                Ok(reply) if reply.instruction == Instruction::Continue => continue,
                Ok(_) => {
                    tracing::debug!("job {} is no longer wanted", self.job.id);
                    tracing::info!("a job is no longer wanted; its finished games are uploaded");
                }
                Err(CallError::Refused(error)) => {
                    tracing::warn!(
                        "a job's lease has ended ({error}); its finished games are kept"
                    );
                }
                // Without a supervisor the program has ended.
                Err(CallError::Fatal(error)) => {
                    return drop(self.shared.events.send(Event::Fatal(error)));
                }
                Err(CallError::Interrupted) => return,
            }
            // Threads leave the job, also if it reaches them only once its networks are here.
            self.counters.order(Control::Drop);
            return;
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        Heartbeat {
            games_finished: self.finished.load(Ordering::Relaxed),
            positions: self.counters.positions(),
            evals_per_second: self.shared.status.evals_per_second(),
            board: self.counters.board(),
        }
    }
}

/// The coordinator's wish, within reason and well within the lease.
fn interval(job: &Job) -> Duration {
    let longest = (job.lease_seconds / 2).max(1);
    Duration::from_secs(u64::from(job.heartbeat_seconds.clamp(1, longest)))
}

/// Gives a job's lease back; whether the coordinator has taken it in time.
pub(super) async fn give_back(client: &Client, job: JobId) -> bool {
    is_taken(job, client.give_back(job), GIVE_BACK).await
}

async fn is_taken(
    job: JobId,
    call: impl Future<Output = api::Result<()>>,
    patience: Duration,
) -> bool {
    match tokio::time::timeout(patience, call).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => tracing::debug!("job {job} was not given back: {error}"),
        Err(_) => tracing::debug!("job {job} was not given back in time"),
    }
    false
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use rookery_client::testing::Answer;
    use rookery_common::protocol::ProblemCode;
    use rookery_common::protocol::jobs::HeartbeatReply;

    use super::super::testing::Fixture;
    use super::*;
    use crate::api::ApiError;

    #[tokio::test]
    async fn a_job_that_is_no_longer_wanted_is_dropped_before_the_supervisor_knows_it() {
        let abandon = HeartbeatReply {
            lease_seconds: 60,
            instruction: Instruction::Abandon,
            notices: Vec::new(),
        };
        for answer in [
            Answer::json(&abandon),
            Answer::problem(ProblemCode::LeaseEnded),
        ] {
            let fixture = Fixture::new(move |_| answer.clone()).await;
            let mut job = crate::spool::testing::job(1);
            job.heartbeat_seconds = 1;
            let mut lease = Lease::hold(&fixture.shared, Arc::new(job), 0);
            (&mut lease.beating).await.unwrap();
            assert_eq!(lease.counters.control(), Control::Drop);
        }
    }

    #[tokio::test]
    async fn giving_back_a_lease_has_a_timeout() {
        let job = crate::spool::testing::job(1).id;
        assert!(is_taken(job, ready(Ok(())), GIVE_BACK).await);
        let away = ready(Err(ApiError::Unreachable("test".into())));
        assert!(!is_taken(job, away, GIVE_BACK).await);
        assert!(!is_taken(job, pending(), Duration::from_millis(1)).await);
    }
}
