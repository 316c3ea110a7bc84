//! Getting a job with all that it needs: the lease, a folder in the spool, the networks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rookery_client::RetryPolicy;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::jobs::Job;

use super::Shared;
use super::lease::{Lease, give_back};
use super::request::request_job;
use super::resume::leave;
use crate::api::ApiError;
use crate::networks::{NetworkError, NetworkFile};
use crate::play::{GamesError, JobWork, check_games};
use crate::shutdown::Phase;
use crate::spool::{JobError, SpoolError, check_size};

/// Until the next question, after a job that cannot be played.
const TROUBLE_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks whether the spool has room again.
const ROOM_PAUSE: Duration = Duration::from_secs(5);
/// Downloads of one network that may fail before its job is given back.
const DOWNLOADS: u32 = 10;

/// A job that is ready to be played.
#[derive(Debug)]
pub(super) struct Acquired {
    pub(super) work: JobWork,
    pub(super) lease: Lease,
}

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub(super) enum AcquireError {
    /// The program is ending.
    #[error("the program is ending")]
    Interrupted,
    /// Another job, or the same later, may do better.
    #[error(transparent)]
    Job(JobTrouble),
    /// The user has to do something.
    #[error(transparent)]
    Fatal(#[from] anyhow::Error),
}

/// Asks for jobs until there is one that can be played.
pub(super) async fn acquire(shared: Shared) -> Result<Acquired, AcquireError> {
    let mut failures = 0;
    loop {
        wait_for_room(&shared).await?;
        let job = request_job(&shared).await?;
        match prepare(&shared, job).await {
            Err(AcquireError::Job(error)) => {
                failures += 1;
                let pause = error.pause(failures).max(TROUBLE_PAUSE);
                let seconds = pause.as_secs();
                tracing::error!("a job was not begun: {error}; next try in {seconds} s");
                wait(&shared, pause).await?;
            }
            ended => return ended,
        }
    }
}

/// Waits until the spool may hold another job. A coordinator that gives jobs and takes no games must not fill the disk.
async fn wait_for_room(shared: &Shared) -> Result<(), AcquireError> {
    let mut told = false;
    while !shared.spool.has_room().await.map_err(anyhow::Error::from)? {
        if !told {
            tracing::warn!(
                "RK-0511: too many finished games wait to be uploaded; no more jobs are asked for until the coordinator has \
                 taken some"
            );
            told = true;
        }
        wait(shared, ROOM_PAUSE).await?;
    }
    Ok(())
}

/// Why one job cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobTrouble {
    /// A network cannot be had.
    #[error(transparent)]
    Network(NetworkError),
    /// It is of another run than was asked for.
    #[error("job {job} is of run {run}, and only {wanted} is played here")]
    Run {
        /// The job.
        job: JobId,
        /// Its run.
        run: RunName,
        /// The run that was asked for.
        wanted: RunName,
    },
    /// The spool does not take it, or cannot be written at present.
    #[error(transparent)]
    Spool(SpoolError),
    /// One of its games cannot be played: a position or a move is not legal.
    #[error("RK-0512: job {job} cannot be played: {error}")]
    Games {
        /// The job.
        job: JobId,
        /// What is wrong with a game.
        error: GamesError,
    },
}

impl JobTrouble {
    /// Whether the job is in hand, so that its lease is needed.
    const fn is_known(&self) -> bool {
        matches!(
            self,
            Self::Spool(SpoolError::Job {
                error: JobError::Known,
                ..
            })
        )
    }

    /// Back-off before the next job request, by the number of failures.
    fn pause(&self, failures: u32) -> Duration {
        let asked = match self {
            Self::Network(error) => error.api().and_then(ApiError::retry_after),
            Self::Run { .. } | Self::Spool(_) | Self::Games { .. } => None,
        };
        RetryPolicy::default().pause(failures, asked)
    }
}

/// Enters a new job into the spool and fetches its networks.
async fn prepare(shared: &Shared, mut job: Job) -> Result<Acquired, AcquireError> {
    // Shown once, and not kept with the job: they may be of any length.
    shared.notices.show(&std::mem::take(&mut job.notices));
    let (id, backend) = (job.id, shared.machine.devices.job_info().class);
    if let Err(error) = check_run(&job, shared.settings.run.as_ref()) {
        give_back(&shared.client, id).await;
        return Err(AcquireError::Job(error));
    }
    let (job, checked) = checked(job).await?;
    if let Err(error) = checked {
        give_back(&shared.client, id).await;
        return Err(AcquireError::Job(error));
    }
    let job = match shared.spool.begin(job, backend).await {
        Ok(job) => job,
        Err(error @ (SpoolError::File { .. } | SpoolError::Job { .. })) => {
            let error = JobTrouble::Spool(error);
            if !error.is_known() {
                give_back(&shared.client, id).await;
            }
            return Err(AcquireError::Job(error));
        }
        Err(error) => return Err(AcquireError::Fatal(error.into())),
    };
    let lease = Lease::hold(shared, Arc::clone(&job), 0);
    let games = (0..job.work.games()).collect();
    equip(shared, job, lease, games).await
}

/// Checks whether a job can be played, on a thread where that may take its time.
async fn checked(job: Job) -> Result<(Job, Result<(), JobTrouble>), AcquireError> {
    let checked = tokio::task::spawn_blocking(move || {
        let checked = check(&job);
        (job, checked)
    });
    let checked = checked.await.context("a job's games cannot be set up");
    checked.map_err(AcquireError::Fatal)
}

/// Checks a job's size, and only then sets up its games, as playing does: that takes memory and time by what it asks for.
fn check(job: &Job) -> Result<(), JobTrouble> {
    let id = job.id;
    let refused = |error| JobTrouble::Spool(SpoolError::Job { id, error });
    check_size(job).map_err(refused)?;
    check_games(job).map_err(|error| JobTrouble::Games { job: id, error })
}

/// Checks that a job is of the run that was asked for, if one was.
fn check_run(job: &Job, wanted: Option<&RunName>) -> Result<(), JobTrouble> {
    match wanted {
        Some(wanted) if *wanted != job.run => Err(JobTrouble::Run {
            job: job.id,
            run: job.run.clone(),
            wanted: wanted.clone(),
        }),
        _ => Ok(()),
    }
}

/// Fetches a job's networks. If that fails, the job is left.
pub(super) async fn equip(
    shared: &Shared,
    job: Arc<Job>,
    lease: Lease,
    games: Vec<u32>,
) -> Result<Acquired, AcquireError> {
    // Before anything is fetched: parts of networks that never came whole take room as well.
    if let Ok(open) = shared.spool.open_jobs().await {
        let networks = open.iter().flat_map(|open| open.job.work.networks());
        shared.networks.prune(&networks.collect::<Vec<_>>()).await;
    }
    let fetched = tokio::select! {
        fetched = networks(shared, &job) => fetched,
        () = shared.shutdown.reached(Phase::Finishing) => Err(AcquireError::Interrupted),
    };
    match fetched {
        Ok(networks) => {
            let counters = Arc::clone(&lease.counters);
            Ok(Acquired {
                work: JobWork {
                    job,
                    games,
                    networks,
                    counters,
                },
                lease,
            })
        }
        Err(error) => {
            leave(shared, job.id);
            Err(error)
        }
    }
}

async fn networks(shared: &Shared, job: &Job) -> Result<Vec<NetworkFile>, AcquireError> {
    let offered = job.run_key.as_ref();
    let trusted = shared.trust.key(&shared.client, &job.run, offered).await;
    let key = trusted.map_err(refused)?;
    let mut files = Vec::new();
    for hash in job.work.networks() {
        let Some(network) = job.networks.iter().find(|network| network.hash == hash) else {
            let error = JobError::Network(hash);
            let error = SpoolError::Job { id: job.id, error };
            return Err(AcquireError::Job(JobTrouble::Spool(error)));
        };
        let mut attempts = shared.retry.attempts(Phase::Finishing);
        let file = loop {
            let call = shared.networks.get(&shared.client, network, key.as_ref());
            match call.await {
                Ok(file) => break file,
                Err(error) if error.may_pass() && attempts.failures() < DOWNLOADS => {
                    let paused = attempts.pause(&error.to_string(), error.api()).await;
                    paused.map_err(|_| AcquireError::Interrupted)?;
                }
                Err(error) => return Err(refused(error)),
            }
        };
        files.push(file);
    }
    Ok(files)
}

/// A network that cannot be had: another job may do better, or the user has to do something.
fn refused(error: impl Into<NetworkError>) -> AcquireError {
    let error = error.into();
    if error.is_final() {
        AcquireError::Fatal(error.into())
    } else {
        AcquireError::Job(JobTrouble::Network(error))
    }
}

pub(super) async fn wait(shared: &Shared, pause: Duration) -> Result<(), AcquireError> {
    tokio::select! {
        () = tokio::time::sleep(pause) => Ok(()),
        () = shared.shutdown.reached(Phase::Finishing) => Err(AcquireError::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use rookery_client::testing::Answer;
    use rookery_common::ids::ContentHash;
    use rookery_common::protocol::ProblemCode;

    use super::super::testing::Fixture;
    use super::*;

    /// Its network was checked long ago, and is read when a thread has room for it.
    #[tokio::test]
    async fn the_network_of_a_job_that_waits_is_kept_while_others_are_fetched() {
        let fixture = Fixture::new(|_| Answer::problem(ProblemCode::NotFound)).await;
        let (waiting, mut next) = (crate::spool::testing::job(1), crate::spool::testing::job(2));
        fixture.begin(&waiting, 0).await;
        let file = |hash: ContentHash| {
            let file = format!("networks/{hash}.safetensors");
            fixture.folder.path().join(file)
        };
        (0_u8..20).for_each(|n| std::fs::write(file(ContentHash::of(&[n])), b"x").unwrap());
        let needed = file(waiting.work.networks()[0]);
        let old = SystemTime::UNIX_EPOCH;
        let old = FileTimes::new().set_accessed(old).set_modified(old);
        File::create(&needed).unwrap().set_times(old).unwrap();
        let other = ContentHash::of(b"other");
        next.networks[0].hash = other;
        if let rookery_common::protocol::jobs::Work::SelfPlay { network, .. } = &mut next.work {
            *network = other;
        }
        fixture.begin(&next, 0).await;
        let next = Arc::new(next);
        let lease = Lease::hold(&fixture.shared, Arc::clone(&next), 0);
        let fetched = equip(&fixture.shared, next, lease, Vec::new()).await;
        assert!(matches!(fetched, Err(AcquireError::Job(_))));
        assert!(needed.is_file());
    }

    /// To set up its games would take all memory.
    #[tokio::test]
    async fn a_job_of_any_size_is_given_back_before_its_games_are_set_up() {
        let fixture = Fixture::new(|_| Answer::problem(ProblemCode::NotFound)).await;
        let job = crate::spool::testing::job(u32::MAX);
        let given_back = format!("DELETE jobs/{}", job.id);
        let error = prepare(&fixture.shared, job).await.unwrap_err().to_string();
        assert!(error.contains("it asks for 4294967295 games"), "{error}");
        assert_eq!(fixture.asked(), [given_back]);
    }

    #[test]
    fn only_the_run_that_was_asked_for_is_played() {
        let job = crate::spool::testing::job(1);
        let other: RunName = "other".parse().unwrap();
        assert!(check_run(&job, None).is_ok());
        assert!(check_run(&job, Some(&job.run)).is_ok());
        let error = check_run(&job, Some(&other)).unwrap_err().to_string();
        assert!(error.contains("only other is played here"), "{error}");
    }

    #[test]
    fn a_job_in_hand_keeps_its_lease() {
        let trouble = |error| {
            let id = crate::spool::testing::job(1).id;
            JobTrouble::Spool(SpoolError::Job { id, error })
        };
        assert!(trouble(JobError::Known).is_known());
        assert!(!trouble(JobError::Games { games: 0 }).is_known());
    }
}
