//! Taking up the jobs that an earlier start left in the spool.

use std::sync::Arc;

use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::{Backend, Heartbeat, Instruction};
use rookery_common::text::quantity;

use super::acquire::{AcquireError, Acquired, equip};
use super::lease::{self, Lease};
use super::login::fatal_error;
use super::{Event, Shared};
use crate::api::Client;
use crate::play::PlayEvent;
use crate::retry::CallError;
use crate::shutdown::Phase;
use crate::spool::OpenJob;

/// The job ready to be played on; none if it is left instead.
pub(super) async fn resume(shared: &Shared, found: OpenJob) -> anyhow::Result<Option<Acquired>> {
    let OpenJob {
        job,
        missing,
        finished,
        backend,
    } = found;
    if missing.is_empty() {
        leave(shared, job.id);
        return Ok(None);
    }
    let here = shared.machine.devices.job_info().class;
    if backend != here {
        let how = elsewhere(backend, here);
        tracing::info!("an unfinished job was begun {how} and is given back");
        leave(shared, job.id);
        return Ok(None);
    }
    match is_alive(shared, &job, finished).await? {
        Alive::Yes => {}
        Alive::No => {
            tracing::info!("an unfinished job's lease has ended; its finished games are kept");
            leave(shared, job.id);
            return Ok(None);
        }
        Alive::Unknown => return Ok(None),
    }
    tracing::info!(
        "going on with a job: finished are {}, {} to play",
        quantity(finished, "game"),
        missing.len()
    );
    let lease = Lease::hold(shared, Arc::clone(&job), finished);
    match equip(shared, job, lease, missing).await {
        Ok(acquired) => Ok(Some(acquired)),
        Err(AcquireError::Interrupted) => Ok(None),
        Err(AcquireError::Job(error)) => {
            tracing::error!("a job is given back: {error}");
            Ok(None)
        }
        Err(AcquireError::Fatal(error)) => Err(error),
    }
}

/// Where a job was begun whose rest cannot be computed here: in another precision, or on another device.
fn elsewhere(begun: Backend, here: Backend) -> String {
    match (begun.name().split_once('-'), here.name().split_once('-')) {
        (Some((device, precision)), Some((here, _))) if device == here => {
            format!("in another precision ({precision})")
        }
        _ => format!("on another device ({begun})", begun = begun.name()),
    }
}

/// Has a job closed that is not played any further, and given back once its finished games are uploaded.
pub(super) fn leave(shared: &Shared, job: JobId) {
    // Without a supervisor the program has ended.
    drop(shared.events.send(Event::Play(PlayEvent::Left(job))));
}

/// Gives back the leases of jobs that cannot be read any more, so that others get their games before the leases expire.
pub(super) async fn give_back_unreadable(client: Client, jobs: Vec<JobId>) {
    for job in jobs {
        if lease::give_back(&client, job).await {
            tracing::info!("a job that cannot be read any more was given back: {job}");
        }
    }
}

enum Alive {
    Yes,
    No,
    /// The program is ending.
    Unknown,
}

async fn is_alive(
    shared: &Shared,
    job: &rookery_common::protocol::jobs::Job,
    finished: u32,
) -> anyhow::Result<Alive> {
    let beat = Heartbeat {
        games_finished: finished,
        ..Heartbeat::default()
    };
    let call = || shared.client.heartbeat(job.id, &beat);
    let what = "an unfinished job could not be taken up; its finished games are kept";
    match shared.retry.until(Phase::Finishing, what, call).await {
        Ok(reply) if reply.instruction == Instruction::Continue => Ok(Alive::Yes),
        Ok(_) | Err(CallError::Refused(_)) => Ok(Alive::No),
        Err(CallError::Fatal(error)) => Err(fatal_error(
            error,
            "an unfinished job could not be taken up",
        )),
        Err(CallError::Interrupted) => Ok(Alive::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use rookery_client::testing::Answer;

    use super::super::testing::Fixture;
    use super::*;
    use crate::spool::Spool;

    #[tokio::test]
    async fn the_lease_of_a_job_that_cannot_be_read_is_given_back() {
        let fixture = Fixture::new(|_| Answer::new(204, "")).await;
        let job = crate::spool::testing::job(1);
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        spool.begin(job.clone(), Backend::CpuF32).unwrap();
        drop(spool);
        let journal = folder.path().join(job.id.to_string()).join("journal");
        std::fs::write(journal, b"nonsense").unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        let client = fixture.shared.client.clone();
        give_back_unreadable(client, spool.take_unreadable()).await;
        assert_eq!(fixture.asked(), [format!("DELETE jobs/{}", job.id)]);
    }

    #[test]
    fn other_numbers_of_one_device_are_told_from_another_device() {
        use Backend::{CpuBf16, CpuF32, CudaF16, Mps};
        for (begun, here, how) in [
            (CpuBf16, CpuF32, "in another precision (bf16)"),
            (CpuF32, CudaF16, "on another device (cpu-f32)"),
            (Mps, CpuF32, "on another device (mps)"),
        ] {
            assert_eq!(elsewhere(begun, here), how);
        }
    }
}
