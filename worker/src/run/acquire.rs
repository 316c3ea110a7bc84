//! Getting a job with all that it needs: the lease, a folder in the spool, the networks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rookery_client::RetryPolicy;
use rookery_common::ids::{JobId, RunName};
use rookery_common::protocol::jobs::{Backend, Job, JobRequest};
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use rookery_common::protocol::{PROTOCOL_VERSION, ProblemCode};

use super::Shared;
use super::lease::{Lease, give_back};
use super::login::fatal_error;
use super::registration::runs_there;
use super::resume::leave;
use crate::api::{ApiError, JobOffer};
use crate::networks::{NetworkError, NetworkFile};
use crate::play::{GamesError, JobWork, check_games};
use crate::random;
use crate::retry::CallError;
use crate::shutdown::Phase;
use crate::spool::{JobError, SpoolError};

/// Until the next question, where the coordinator has nothing and does not say when to ask.
const NOTHING_PAUSE: Duration = Duration::from_secs(30);
/// Shortest and longest wait that the coordinator may ask for.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Until the next question, after a job that cannot be played.
const TROUBLE_PAUSE: Duration = Duration::from_secs(5);
/// Between two looks whether the spool has room again.
const ROOM_PAUSE: Duration = Duration::from_secs(5);
/// How long the answer to a request for a job is waited for when the program ends: the job is given back.
const REQUEST_GRACE: Duration = Duration::from_secs(5);
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
        let job = take(&shared).await?;
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

/// A job from the coordinator, however long it takes.
async fn take(shared: &Shared) -> Result<Job, AcquireError> {
    let mut told = None;
    loop {
        let request = request(shared);
        let call = || async {
            let answer = shared.client.take_job(&request).await;
            shared.status.note_request(&answer);
            answer
        };
        // The answer may hold a lease, which has to be given back.
        let retry = shared.retry.with_grace(REQUEST_GRACE);
        let what = "no job could be fetched; finished games are kept";
        match retry.until(Phase::Finishing, what, call).await {
            Ok(JobOffer::Job(job)) => return Ok(*job),
            Ok(JobOffer::Nothing(asked)) => {
                let pause = random::jittered(nothing_pause(asked));
                if is_news(told, pause) {
                    let seconds = pause.as_secs_f64().ceil();
                    let reason = reason(shared).await.unwrap_or_default();
                    tracing::info!(
                        "there is nothing to play at present{reason}; asking about every {seconds} s"
                    );
                    told = Some(pause);
                }
                wait(shared, pause).await?;
            }
            Err(CallError::Refused(error) | CallError::Fatal(error)) => {
                let what = match does_not_know(&error, request.backend) {
                    Some(why) => why,
                    None => format!(
                        "no job could be fetched{}",
                        other_runs(shared, &error).await
                    ),
                };
                return Err(fatal_error(error, &what).into());
            }
            Err(CallError::Interrupted) => return Err(AcquireError::Interrupted),
        }
    }
}

/// What to do about a coordinator that is too old to know the class of these results, if that is what the error says. Results
/// are not given out as another device's: audits would judge them by its tolerance.
fn does_not_know(error: &ApiError, class: Backend) -> Option<String> {
    let unknown = format!("unknown variant `{}`", class.name());
    let is_older =
        error.code() == Some(ProblemCode::BadRequest) && error.to_string().contains(&unknown);
    is_older.then(|| {
        format!(
            "RK-0308: this coordinator is older than this worker and does not take what is computed in {}: ask its operator to \
             update it, or play with --device cpu until then",
            class.name()
        )
    })
}

/// The coordinator's runs, if it does not know the one that was asked for.
async fn other_runs(shared: &Shared, error: &ApiError) -> String {
    let Some(wanted) = &shared.settings.run else {
        return String::new();
    };
    match (error.code(), shared.client.runs().await) {
        (Some(ProblemCode::NotFound), Ok(runs)) if runs.iter().all(|run| run.name != *wanted) => {
            let known: Vec<RunName> = runs.into_iter().map(|run| run.name).collect();
            format!(" of run {wanted}: {} (--run)", runs_there(&known))
        }
        _ => String::new(),
    }
}

/// Whether people should be told of a pause who were told of another one, or of none: the more workers
/// wait, the longer the coordinator lets each do so.
fn is_news(told: Option<Duration>, pause: Duration) -> bool {
    told.is_none_or(|told| pause > told * 2)
}

/// Why there is nothing to play, as far as the coordinator's runs tell.
async fn reason(shared: &Shared) -> Option<String> {
    let runs = tokio::select! {
        runs = shared.client.runs() => runs.ok(),
        () = shared.shutdown.reached(Phase::Finishing) => None,
    };
    let wanted = shared.settings.run.as_ref();
    idle(&runs?, wanted).map(|reason| format!(": {reason}"))
}

/// What keeps all of these runs, or the one that is wanted, from giving anybody something to play.
fn idle(runs: &[RunInfo], wanted: Option<&RunName>) -> Option<String> {
    let asked = runs
        .iter()
        .filter(|run| wanted.is_none_or(|wanted| run.name == *wanted));
    let asked: Vec<&RunInfo> = asked.collect();
    let open = asked.iter().copied();
    let open: Vec<&RunInfo> = open.filter(|run| run.status == RunStatus::Open).collect();
    let all = |runs: &[&RunInfo], idle: &str| match runs {
        [run] => format!("run {} {idle}", run.name),
        _ => format!("every run {idle}"),
    };
    if asked.is_empty() {
        Some("the coordinator has no run yet".to_owned())
    } else if open.is_empty() {
        Some(all(&asked, "is paused"))
    } else if open.iter().all(|run| run.best.is_none()) {
        let idle = "waits for its first network, which a trainer makes";
        Some(all(&open, idle))
    } else {
        None
    }
}

/// Until the next question, where the coordinator has nothing and asks for this pause.
fn nothing_pause(asked: Option<Duration>) -> Duration {
    asked
        .unwrap_or(NOTHING_PAUSE)
        .clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

fn request(shared: &Shared) -> JobRequest {
    JobRequest {
        protocol: PROTOCOL_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        worker: shared.settings.worker.clone(),
        backend: shared.machine.devices.job_info().class,
        run: shared.settings.run.clone(),
        concurrent_games: u32::try_from(shared.machine.all_games()).unwrap_or(u32::MAX),
        evals_per_second: shared.status.evals_per_second(),
        programs: true,
        solver: true,
    }
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
    #[error("job {job} cannot be played: {error}")]
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
        return Err(AcquireError::Job(JobTrouble::Games { job: id, error }));
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

/// Sets up all games of a job, as playing does, to see whether they can be played.
async fn checked(job: Job) -> Result<(Job, Result<(), GamesError>), AcquireError> {
    let checked = tokio::task::spawn_blocking(move || {
        let checked = check_games(&job);
        (job, checked)
    });
    let checked = checked.await.context("a job's games cannot be set up");
    checked.map_err(AcquireError::Fatal)
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

async fn wait(shared: &Shared, pause: Duration) -> Result<(), AcquireError> {
    tokio::select! {
        () = tokio::time::sleep(pause) => Ok(()),
        () = shared.shutdown.reached(Phase::Finishing) => Err(AcquireError::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use rookery_common::ids::ContentHash;
    use rookery_common::protocol::Problem;
    use serde_json::json;

    use super::super::testing::{Fixture, problem};
    use super::*;

    /// Its network was checked long ago, and is read when a thread has room for it.
    #[tokio::test]
    async fn the_network_of_a_job_that_waits_is_kept_while_others_are_fetched() {
        let fixture = Fixture::new(|_| problem(ProblemCode::NotFound)).await;
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

    fn run(name: &str, status: &str, best: Option<u32>) -> RunInfo {
        let run = json!({
            "name": name, "description": "", "status": status, "params": {}, "best": best,
            "networks": 0, "games": 0, "training_positions": 0, "positions": 0, "chunks": 0,
            "chunk_bytes": 0, "created_at": "",
        });
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn people_are_told_why_there_is_nothing_to_play() {
        let one: RunName = "one".parse().unwrap();
        let paused = run("one", "paused", Some(3));
        let waiting = run("one", "open", None);
        let playing = run("two", "open", Some(0));
        let told = |runs: &[&RunInfo], wanted: Option<&RunName>| {
            let runs: Vec<RunInfo> = runs.iter().copied().cloned().collect();
            idle(&runs, wanted)
        };
        let of_one = "run one waits for its first network, which a trainer makes";
        for (runs, wanted, said) in [
            (&[&paused][..], None, Some("run one is paused")),
            (&[&paused, &paused][..], None, Some("every run is paused")),
            (
                &[&paused, &playing][..],
                Some(&one),
                Some("run one is paused"),
            ),
            (&[&waiting, &playing][..], Some(&one), Some(of_one)),
            (&[&waiting, &paused][..], None, Some(of_one)),
            (&[&waiting, &playing][..], None, None),
        ] {
            assert_eq!(told(runs, wanted).as_deref(), said);
        }
        let none = told(&[], None);
        assert_eq!(none.as_deref(), Some("the coordinator has no run yet"));
    }

    #[test]
    fn a_coordinator_that_is_too_old_for_a_device_is_told_from_other_refusals() {
        // As coordinators answer that know no GPUs but CUDA's.
        let error = |code, why: &str| ApiError::Problem {
            problem: Box::new(Problem::new(code, why)),
            retry_after: None,
        };
        let older = "backend: unknown variant `gpu-f32`, expected one of `cpu-f32`, `cuda-f16`";
        let older = error(ProblemCode::BadRequest, older);
        let told = does_not_know(&older, Backend::GpuF32).unwrap();
        assert!(
            told.contains("older") && told.contains("--device cpu"),
            "{told}"
        );
        assert_eq!(does_not_know(&older, Backend::CpuF32), None);
        let other = error(ProblemCode::BadRequest, "worker: too long");
        assert_eq!(does_not_know(&other, Backend::GpuF32), None);
    }

    #[test]
    fn coordinators_are_not_asked_without_a_pause() {
        let seconds = Duration::from_secs;
        assert_eq!(nothing_pause(None), NOTHING_PAUSE);
        assert_eq!(nothing_pause(Some(seconds(0))), SHORTEST_PAUSE);
        assert_eq!(nothing_pause(Some(seconds(7))), seconds(7));
        assert_eq!(nothing_pause(Some(seconds(86_400))), LONGEST_PAUSE);
    }

    #[test]
    fn people_are_told_of_pauses_that_grow_and_not_of_each() {
        let (short, long) = (Duration::from_secs(4), Duration::from_secs(90));
        assert!(is_news(None, short));
        assert!(!is_news(Some(short), short + Duration::from_secs(2)));
        assert!(is_news(Some(short), long));
        assert!(!is_news(Some(long), short));
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
