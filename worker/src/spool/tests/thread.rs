//! The spool on its thread, spoken to by its handle.

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().unwrap()
}

#[test]
fn games_that_cannot_be_written_are_not_said_to_be_kept() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin_with(&fixture.games[..1]);
    let id = fixture.job.id;
    spool.jobs.get_mut(&id).unwrap().break_journal();
    let events = |event| assert!(matches!(event, SpoolEvent::WriteFailure), "{event:?}");
    let handle = SpoolHandle::start(spool, events).unwrap();
    for game in &fixture.games[1..] {
        handle.keep(id, Box::new(game.clone()));
    }
    runtime().block_on(async {
        // The job stays open for the games that wait.
        let error = handle.close(id).await.unwrap_err();
        assert!(matches!(error, SpoolError::File { .. }), "{error}");
        let remains = Remains { kept: 1, lost: 2 };
        assert_eq!(handle.end().await.unwrap(), remains);
    });
    assert!(handle.is_stuck());
}

#[test]
fn the_actor_tells_of_every_kept_game() {
    let fixture = Fixture::new(3);
    let (events, inbox) = std::sync::mpsc::channel();
    let handle = SpoolHandle::start(fixture.open(), move |event| drop(events.send(event))).unwrap();
    runtime().block_on(async {
        handle
            .begin(fixture.job.clone(), Backend::CpuF32)
            .await
            .unwrap();
        fixture
            .games
            .iter()
            .for_each(|game| handle.keep(fixture.job.id, Box::new(game.clone())));
        assert_eq!(handle.close(fixture.job.id).await.unwrap(), 0);
        handle.ready().await;
        let remains = Remains { kept: 3, lost: 0 };
        assert_eq!(handle.end().await.unwrap(), remains);
    });
    let kept = inbox.try_iter().filter(|event| match event {
        SpoolEvent::Kept { job } => *job == fixture.job.id,
        other => panic!("{other:?}"),
    });
    assert_eq!(kept.count(), 3);
    assert!(!handle.is_stuck());
}
