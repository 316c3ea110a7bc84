//! A job in the spool: begun, played, sent, and given up.

use rookery_common::protocol::jobs::Work;

use super::*;
use crate::api::Token;

#[test]
fn a_job_goes_through_and_leaves_nothing_behind() {
    let fixture = Fixture::new(5);
    let mut spool = fixture.begin();
    let id = fixture.job.id;
    for (done, game) in fixture.games.iter().enumerate() {
        spool.record(id, game).unwrap();
        assert_eq!(spool.open_jobs()[0].missing.len(), 4 - done);
        if done == 1 {
            spool.cut(id).unwrap();
        }
    }
    assert_eq!(spool.unsent(), 5);
    assert_eq!(spool.close(id).unwrap(), 0);
    assert_eq!(send_all(&mut spool), [0, 1, 2, 3, 4]);
    assert_eq!(spool.unsent(), 0);
    assert!(!fixture.job_folder().exists());
}

#[test]
fn chunks_are_what_the_coordinator_verifies() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin_with(&fixture.games);
    let job = &fixture.job;
    spool.close(job.id).unwrap();
    let chunk = pending(&mut spool);
    let lease = chunk::Lease {
        run: &job.run,
        job: job.id,
        seed: job.seed,
        work: &job.work,
        tables: None,
    };
    let verified = chunk::verify(&chunk.bytes, &Caps::default(), &lease).unwrap();
    assert_eq!(verified.games.len(), 3);
    assert_eq!(verified.header.backend, Backend::CpuF32);
}

#[test]
fn a_game_that_is_handed_in_twice_counts_once() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    record(
        &mut spool,
        fixture.job.id,
        &[fixture.games[0].clone(), fixture.games[0].clone()],
    );
    assert_eq!(spool.open_jobs()[0].missing.len(), 1);
    assert_eq!(spool.unsent(), 1);
}

#[test]
fn a_restart_knows_what_is_missing() {
    let fixture = Fixture::new(4);
    let kept = &fixture.games[..3];
    drop(fixture.begin_with(kept));
    let played: Vec<u32> = kept.iter().map(|game| game.index).collect();
    let open = fixture.open().open_jobs();
    assert_eq!(open[0].finished, 3);
    assert_eq!(open[0].missing.len(), 1);
    assert!(!played.contains(&open[0].missing[0]));
    assert_eq!(*open[0].job, fixture.job);
}

#[test]
fn two_workers_cannot_share_a_spool() {
    let fixture = Fixture::new(1);
    let first = fixture.open();
    assert!(matches!(
        Spool::open(fixture.folder.path()),
        Err(SpoolError::Locked(_))
    ));
    drop(first);
    fixture.open();
}

#[test]
fn a_job_that_is_there_already_is_not_begun_again() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin_with(&fixture.games);
    let again = spool.begin(fixture.job.clone(), Backend::CpuF32);
    let error = again.unwrap_err();
    assert!(
        error.to_string().contains("being played already"),
        "{error}"
    );
    assert_eq!(spool.unsent(), 2);
    drop(spool);
    assert_eq!(fixture.open().open_jobs()[0].finished, 2);
}

#[test]
fn refused_chunks_are_kept_with_the_reason() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin_with(&fixture.games[..1]);
    spool.close(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    let file = spool.refuse(chunk.job, chunk.hash, "lease-ended").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), chunk.bytes);
    assert_eq!(
        std::fs::read_to_string(file.with_extension("txt")).unwrap(),
        "lease-ended\n"
    );
    assert_eq!(spool.next_pending().unwrap(), None);
    assert!(!fixture.job_folder().exists());
}

#[test]
fn chunks_of_a_job_that_the_coordinator_does_not_know_wait_for_the_next_start() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin_with(&fixture.games);
    spool.close(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    assert_eq!(spool.postpone(chunk.job).unwrap(), fixture.job_folder());
    assert_eq!(spool.next_pending().unwrap(), None);
    assert_eq!(spool.unsent(), 1);
    drop(spool);
    assert_eq!(fixture.open().next_pending().unwrap(), Some(chunk));
}

#[test]
fn a_chunk_that_was_passed_over_waits_for_the_others() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    for game in &fixture.games {
        spool.record(fixture.job.id, game).unwrap();
        spool.cut(fixture.job.id).unwrap();
    }
    let first = pending(&mut spool);
    spool.defer(first.hash);
    let second = pending(&mut spool);
    assert_ne!(second, first);
    spool.accept(second.job, second.hash).unwrap();
    let third = pending(&mut spool);
    assert!(third != first && third != second);
    spool.defer(third.hash);
    assert_eq!(pending(&mut spool), first);
    assert_eq!(send_all(&mut spool).len(), 2);
}

fn owner(server: &str, name: &str) -> Owner {
    let token = Token::parse(&format!("rk_{name}")).unwrap();
    Owner::new(&server.parse().unwrap(), Some(name), &token)
}

#[test]
fn games_of_another_account_wait_untouched() {
    let fixture = Fixture::new(3);
    let (ann, bob) = (owner("http://a", "ann"), owner("http://a", "bob"));
    let mut spool = fixture.open();
    assert!(spool.work_for(ann.clone()).is_empty());
    spool.begin(fixture.job.clone(), Backend::CpuF32).unwrap();
    record(&mut spool, fixture.job.id, &fixture.games[..2]);
    spool.cut(fixture.job.id).unwrap();
    drop(spool);
    let mut spool = fixture.open();
    let others: Vec<_> = spool.work_for(bob).into_iter().collect();
    assert_eq!(others, [(ann.clone(), 2)]);
    assert!(spool.open_jobs().is_empty());
    assert_eq!((spool.next_pending().unwrap(), spool.unsent()), (None, 0));
    drop(spool);
    let mut spool = fixture.open();
    assert!(spool.work_for(ann).is_empty());
    assert_eq!(spool.open_jobs()[0].finished, 2);
    assert_eq!(send_all(&mut spool).len(), 2);
}

#[test]
fn jobs_of_journals_that_name_no_owner_are_whoevers_has_the_spool() {
    let fixture = Fixture::new(2);
    drop(fixture.begin());
    let mut spool = fixture.open();
    assert!(spool.work_for(owner("http://a", "ann")).is_empty());
    assert_eq!(spool.open_jobs().len(), 1);
}

#[test]
fn a_job_that_cannot_be_played_leaves_no_trace() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.open();
    let error = spool.begin(job(u32::MAX), Backend::CpuF32).unwrap_err();
    assert!(error.to_string().contains("4294967295 games"), "{error}");
    drop(spool);
    assert!(fixture.open().open_jobs().is_empty());
}

#[test]
fn finished_games_of_a_job_that_cannot_be_played_on_are_sent() {
    let fixture = Fixture::new(2);
    let mut endless = fixture.job.clone();
    if let Work::SelfPlay { games, .. } = &mut endless.work {
        *games = u32::MAX;
    }
    // An earlier version of this program took such jobs.
    let taken = JobStarted {
        job: endless,
        version: "0.0.0".to_owned(),
        backend: Backend::CpuF32,
        owner: None,
    };
    drop(fixture.open());
    let begun = SpooledJob::begin(&fixture.job_folder(), taken);
    begun.unwrap().record(&fixture.games[0]).unwrap();
    let mut spool = fixture.open();
    assert!(spool.open_jobs().is_empty());
    assert_eq!(send_all(&mut spool), [fixture.games[0].index]);
    assert!(!fixture.job_folder().exists());
}
