//! Asking the coordinator for a job until it has one, and telling people why it has none.

use std::time::Duration;

use rookery_common::ids::RunName;
use rookery_common::protocol::jobs::{Job, JobRequest};
use rookery_common::protocol::runs::{RunInfo, RunStatus};
use rookery_common::protocol::{PROTOCOL_VERSION, ProblemCode};

use super::Shared;
use super::acquire::{AcquireError, wait};
use super::login::fatal_error;
use super::registration::runs_there;
use crate::api::{ApiError, JobOffer};
use crate::random;
use crate::retry::{CallError, Failure};
use crate::shutdown::Phase;

/// Until the next question, where the coordinator has nothing and does not say when to ask.
const NOTHING_PAUSE: Duration = Duration::from_secs(30);
/// Shortest and longest wait that the coordinator may ask for.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// How long the answer to a request for a job is waited for when the program ends: the job is given back.
const REQUEST_GRACE: Duration = Duration::from_secs(5);

/// A job from the coordinator, however long it takes.
pub(super) async fn request_job(shared: &Shared) -> Result<Job, AcquireError> {
    let mut told = None;
    loop {
        match ask(shared).await {
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
                let runs = other_runs(shared, &error).await;
                return Err(fatal_error(error, &format!("no job could be fetched{runs}")).into());
            }
            Err(CallError::Interrupted) => return Err(AcquireError::Interrupted),
        }
    }
}

/// What the coordinator offers, after as many attempts as it takes. None is made during a pause: the job would wait.
async fn ask(shared: &Shared) -> Result<JobOffer, CallError> {
    // The answer may hold a lease, which has to be given back.
    let retry = shared.retry.with_grace(REQUEST_GRACE);
    let mut attempts = retry.attempts(Phase::Finishing);
    loop {
        tokio::select! {
            biased;
            () = shared.shutdown.reached(Phase::Finishing) => return Err(CallError::Interrupted),
            () = shared.activity.resumed() => {}
        }
        let request = request(shared);
        let call = async {
            let answer = shared.client.take_job(&request).await;
            shared.status.note_request(&answer);
            answer
        };
        match retry.once(Phase::Finishing, call).await {
            Ok(offer) => return Ok(offer),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Passing(error)) => {
                let trouble = format!("no job could be fetched; finished games are kept: {error}");
                attempts.pause(&trouble, Some(&error)).await?;
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use rookery_client::testing::Answer;
    use serde_json::json;

    use super::super::activity::PauseReason;
    use super::super::testing::Fixture;
    use super::*;

    fn run(name: &str, status: &str, best: Option<u32>) -> RunInfo {
        let run = json!({
            "name": name, "description": "", "status": status, "params": {}, "best": best,
            "networks": 0, "games": 0, "training_positions": 0, "positions": 0, "chunks": 0,
            "chunk_bytes": 0, "created_at": "",
        });
        serde_json::from_value(run).unwrap()
    }

    #[tokio::test]
    async fn a_paused_worker_asks_for_no_job() {
        let fixture = Fixture::new(|_| Answer::new(204, "")).await;
        let shared = &fixture.shared;
        let _asked = shared.activity.pause(PauseReason::Asked);
        // The end leaves a question that was asked the time for an answer.
        let (job, ()) = tokio::join!(request_job(shared), async {
            shared.shutdown.advance(Phase::Finishing);
        });
        assert!(matches!(job, Err(AcquireError::Interrupted)));
        assert!(fixture.asked().is_empty());
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
}
