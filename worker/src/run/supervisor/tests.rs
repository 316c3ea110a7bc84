//! Tests of how the supervisor follows its jobs.

use std::io::{Error, ErrorKind};
use std::sync::Arc;

use rookery_client::testing::Answer;
use rookery_common::protocol::jobs::Backend;

use super::super::testing::Fixture;
use super::*;
use crate::judges::Judges;
use crate::priority::Priority;

fn nothing() -> Answer {
    Answer::new(204, "")
}

/// The fixture's supervisor, with threads to which nothing is given.
fn supervisor(fixture: &mut Fixture) -> Supervisor {
    let shared = fixture.shared.clone();
    let inbox = std::mem::replace(&mut fixture.inbox, mpsc::unbounded_channel().1);
    let (machine, spool) = (&shared.machine, &shared.spool);
    let judges = Judges::default();
    let player = Player::start(machine, Priority::Unchanged, &judges, spool, |event| {
        panic!("{event:?}")
    });
    Supervisor::new(shared, player.unwrap(), inbox)
}

#[tokio::test]
async fn a_job_with_games_that_cannot_be_kept_fails_once() {
    let mut fixture = Fixture::new(|_| nothing()).await;
    let mut supervisor = supervisor(&mut fixture);
    let job = Arc::new(crate::spool::testing::job(9));
    let id = job.id;
    let tracked = TrackedJob {
        state: JobState::Playing,
        lease: Some(Lease::hold(&fixture.shared, job, 0)),
        is_match: false,
    };
    supervisor.jobs.insert(id, tracked);
    for _ in 0..=FAILURES {
        let error = SpoolError::Entry("in a test".to_owned());
        let event = SpoolEvent::Unusable { job: id, error };
        supervisor.handle(Event::Spool(event)).await;
    }
    assert_eq!(supervisor.failures, 1);
    let lease = supervisor.lease(id).unwrap();
    assert_eq!(lease.counters.control(), Control::Drop);
}

#[tokio::test]
async fn a_paused_supervisor_fetches_no_job() {
    let mut fixture = Fixture::new(|_| nothing()).await;
    let mut supervisor = supervisor(&mut fixture);
    let event = || Event::Spool(SpoolEvent::WriteFailure);
    supervisor.handle(event()).await;
    supervisor.handle(event()).await;
    supervisor.fetch_ahead();
    assert!(supervisor.acquiring.is_none());
    assert!(!supervisor.is_over());
    let event = Event::Spool(SpoolEvent::WriteRecovery);
    supervisor.handle(event).await;
    supervisor.fetch_ahead();
    assert!(supervisor.acquiring.is_some());
}

#[tokio::test]
async fn a_lease_is_kept_until_its_finished_games_are_uploaded() {
    let fixture = Fixture::new(|_| nothing()).await;
    let job = crate::spool::testing::job(2);
    fixture.begin(&job, 1).await;
    let shared = fixture.shared.clone();
    shared.spool.close(job.id).await.unwrap();
    give_back(&shared, HashSet::from([job.id])).await;
    assert!(fixture.asked().is_empty());
    let chunk = shared.spool.next_pending().await.unwrap().unwrap();
    shared.spool.accept(job.id, chunk.hash).await.unwrap();
    give_back(&shared, HashSet::from([job.id])).await;
    assert_eq!(fixture.asked(), [format!("DELETE jobs/{}", job.id)]);
}

#[tokio::test]
async fn a_job_that_is_not_resumed_is_given_back_after_its_games_are_uploaded() {
    let mut fixture = Fixture::new(|_| nothing()).await;
    Arc::make_mut(&mut fixture.shared.settings).max_jobs = Some(0);
    let job = crate::spool::testing::job(2);
    fixture.begin(&job, 1).await;
    let found = OpenJob {
        job: Arc::new(job.clone()),
        missing: vec![1],
        finished: 1,
        backend: Backend::CudaF16,
    };
    let end = supervisor(&mut fixture).run(vec![found]).await;
    assert_eq!(end.returning, HashSet::from([job.id]));
    assert!(fixture.asked().is_empty());
    // It is closed: nothing is played of it any more.
    assert_eq!(fixture.shared.spool.unsent_of(job.id).await.unwrap(), 1);
    let chunk = fixture.shared.spool.next_pending().await.unwrap();
    assert_eq!(chunk.map(|chunk| chunk.job), Some(job.id));
}

#[test]
fn a_job_that_is_gone_does_not_hold_up_the_end() {
    let file = |kind: ErrorKind| SpoolError::File {
        action: "write",
        path: "spool".into(),
        source: Error::from(kind),
    };
    let gone = file(ErrorKind::NotFound);
    use CloseFailure::{GiveUp, Leave, Retry};
    assert_eq!(close_failure(&gone, CLOSES, Phase::Running), Retry);
    assert_eq!(close_failure(&gone, 1, Phase::Finishing), Retry);
    assert_eq!(close_failure(&gone, CLOSES, Phase::Finishing), GiveUp);
    assert_eq!(close_failure(&gone, 1, Phase::Stopping), Leave);
    // Room may be made on a disk.
    let full = file(ErrorKind::StorageFull);
    assert_eq!(close_failure(&full, u32::MAX, Phase::Finishing), Retry);
    let none = SpoolError::NoJob(crate::spool::testing::job(1).id);
    assert_eq!(close_failure(&none, 1, Phase::Running), GiveUp);
}
