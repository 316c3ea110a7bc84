use std::path::Path;

use rookery_common::chunk::{self, Caps, GameRecord};
use rookery_common::protocol::jobs::{Backend, Job, Work};
use tempfile::TempDir;

use super::testing::{games, job};
use super::*;
use crate::config::Token;

/// A spool in a folder of its own.
struct Fixture {
    folder: TempDir,
    job: Job,
    games: Vec<GameRecord>,
}

impl Fixture {
    fn new(count: u32) -> Self {
        let job = job(count);
        let games = games(&job);
        Self {
            folder: tempfile::tempdir().unwrap(),
            job,
            games,
        }
    }

    fn open(&self) -> Spool {
        Spool::open(self.folder.path()).unwrap()
    }

    fn begin(&self) -> Spool {
        let mut spool = self.open();
        spool.begin(self.job.clone(), Backend::CpuF32).unwrap();
        spool
    }

    fn job_folder(&self) -> PathBuf {
        self.folder.path().join(self.job.id.to_string())
    }

    /// The journal of the job that was kept as damaged for the `n`th time.
    fn damaged_journal(&self, n: usize) -> Vec<u8> {
        let folder = self.folder.path().join(DAMAGED);
        let folder = folder.join(format!("{}.{n}", self.job.id));
        std::fs::read(folder.join("journal")).unwrap()
    }
}

/// Keeps games.
fn record(spool: &mut Spool, job: JobId, games: &[GameRecord]) {
    for game in games {
        spool.record(job, game).unwrap();
    }
}

/// Indices of the games in a chunk.
fn indices(bytes: &[u8]) -> Vec<u32> {
    let (_, games) = chunk::read(bytes, &Caps::default()).unwrap();
    games.iter().map(|game| game.index).collect()
}

/// Accepts everything that the spool wants to send; gives the indices of its games.
fn send_all(spool: &mut Spool) -> Vec<u32> {
    let mut sent = Vec::new();
    while let Some(chunk) = spool.next_pending().unwrap() {
        assert_eq!(ContentHash::of(&chunk.bytes), chunk.hash);
        sent.extend(indices(&chunk.bytes));
        spool.accept(chunk.job, chunk.hash).unwrap();
    }
    sent.sort_unstable();
    sent
}

#[test]
fn a_job_goes_through_and_leaves_nothing_behind() {
    let fixture = Fixture::new(5);
    let mut spool = fixture.begin();
    let id = fixture.job.id;
    for (done, game) in fixture.games.iter().enumerate() {
        assert_eq!(spool.record(id, game).unwrap() as usize, 4 - done);
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
    let mut spool = fixture.begin();
    let job = &fixture.job;
    record(&mut spool, job.id, &fixture.games);
    spool.close(job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
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
    assert_eq!(spool.record(fixture.job.id, &fixture.games[0]).unwrap(), 1);
    assert_eq!(spool.record(fixture.job.id, &fixture.games[0]).unwrap(), 1);
    assert_eq!(spool.unsent(), 1);
}

#[test]
fn a_restart_knows_what_is_missing() {
    let fixture = Fixture::new(4);
    let mut spool = fixture.begin();
    let kept = &fixture.games[..3];
    record(&mut spool, fixture.job.id, kept);
    let played: Vec<u32> = kept.iter().map(|game| game.index).collect();
    drop(spool);
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
fn refused_chunks_are_kept_with_the_reason() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin();
    spool.record(fixture.job.id, &fixture.games[0]).unwrap();
    spool.close(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
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
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.close(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
    assert_eq!(spool.postpone(chunk.job).unwrap(), fixture.job_folder());
    assert_eq!(spool.next_pending().unwrap(), None);
    assert_eq!(spool.unsent(), 1);
    drop(spool);
    assert_eq!(fixture.open().next_pending().unwrap(), Some(chunk));
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
    let taken = Taken {
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

#[test]
fn a_folder_that_tells_nothing_is_set_aside() {
    let fixture = Fixture::new(1);
    drop(fixture.begin());
    std::fs::write(fixture.job_folder().join("journal"), b"nonsense").unwrap();
    assert!(fixture.open().open_jobs().is_empty());
    assert!(
        fixture
            .folder
            .path()
            .join(DAMAGED)
            .join(format!("{}.0", fixture.job.id))
            .exists()
    );
}

#[test]
fn a_journal_that_does_not_tell_of_its_job_is_set_aside_as_it_is() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    drop(spool);
    let path = fixture.job_folder().join("journal");
    let mut journal = std::fs::read(&path).unwrap();
    // Within the first entry.
    journal[frame::MAGIC.len() + 20] ^= 1;
    std::fs::write(&path, &journal).unwrap();
    let spool = fixture.open();
    assert!(spool.open_jobs().is_empty() && !fixture.job_folder().exists());
    assert_eq!(fixture.damaged_journal(0), journal);
}

#[test]
fn one_damaged_game_costs_no_other() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    let path = fixture.job_folder().join("journal");
    let taken = std::fs::read(&path).unwrap().len();
    record(&mut spool, fixture.job.id, &fixture.games);
    drop(spool);
    let journal = std::fs::read(&path).unwrap();
    // In the first game's content, then in the highest byte of its length.
    for (n, place) in [taken + 20, taken + 3].into_iter().enumerate() {
        let mut damaged = journal.clone();
        damaged[place] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        // Once more finds nothing more to rescue.
        for _ in 0..2 {
            let open = fixture.open().open_jobs().remove(0);
            assert_eq!(open.finished, 2);
            assert_eq!(open.missing, [fixture.games[0].index]);
        }
        assert_eq!(fixture.damaged_journal(n), damaged);
        let copies = std::fs::read_dir(fixture.folder.path().join(DAMAGED));
        assert_eq!(copies.unwrap().count(), n + 1);
    }
}

#[test]
fn a_game_that_only_its_chunk_still_holds_is_sent_and_not_played_again() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    let path = fixture.job_folder().join("journal");
    let taken = std::fs::read(&path).unwrap().len();
    record(&mut spool, fixture.job.id, &fixture.games[..2]);
    spool.cut(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
    drop(spool);
    let mut journal = std::fs::read(&path).unwrap();
    journal[taken + 20] ^= 1;
    std::fs::write(&path, &journal).unwrap();
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].missing, [fixture.games[2].index]);
    assert_eq!(spool.next_pending().unwrap(), Some(chunk));
}

#[test]
fn games_whose_cut_is_damaged_are_sent_as_the_same_chunk() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    let path = fixture.job_folder().join("journal");
    record(&mut spool, fixture.job.id, &fixture.games[..2]);
    let played = std::fs::read(&path).unwrap().len();
    spool.cut(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
    record(&mut spool, fixture.job.id, &fixture.games[2..]);
    drop(spool);
    let mut journal = std::fs::read(&path).unwrap();
    journal[played + 20] ^= 1;
    std::fs::write(&path, &journal).unwrap();
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].finished, 3);
    assert_eq!(spool.next_pending().unwrap(), Some(chunk.clone()));
    spool.accept(chunk.job, chunk.hash).unwrap();
    assert_eq!(spool.unsent(), 1);
    assert_eq!(spool.next_pending().unwrap(), None);
}

#[test]
fn strange_files_and_folders_keep_no_job_from_being_opened() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    spool.record(fixture.job.id, &fixture.games[0]).unwrap();
    drop(spool);
    let inside = fixture.job_folder().join("notes");
    let file = fixture.folder.path().join(job(1).id.to_string());
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(&file, b"no folder").unwrap();
    assert_eq!(fixture.open().open_jobs()[0].finished, 1);
    assert!(inside.exists() && file.exists());
}

#[test]
fn a_job_whose_files_cannot_be_written_holds_up_no_other() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.close(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap().unwrap();
    let other = job(2);
    spool.begin(other.clone(), Backend::CpuF32).unwrap();
    drop(spool);
    // The chunk's file can be neither read nor replaced.
    let file = fixture.job_folder().join(format!("{}.chunk", chunk.hash));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].job.id, other.id);
    assert_eq!(spool.next_pending().unwrap(), None);
    drop(spool);
    std::fs::remove_dir(&file).unwrap();
    assert_eq!(fixture.open().next_pending().unwrap(), Some(chunk));
}

#[test]
fn a_chunk_file_that_is_gone_or_damaged_is_written_again() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.cut(fixture.job.id).unwrap();
    let before = spool.next_pending().unwrap().unwrap();
    let file = fixture.job_folder().join(format!("{}.chunk", before.hash));
    std::fs::write(&file, b"damaged").unwrap();
    assert_eq!(spool.next_pending().unwrap(), Some(before.clone()));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(spool.next_pending().unwrap(), Some(before));
}

#[test]
fn a_chunk_that_cannot_be_read_holds_up_no_other() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.close(fixture.job.id).unwrap();
    let other = job(2);
    spool.begin(other.clone(), Backend::CpuF32).unwrap();
    record(&mut spool, other.id, &games(&other));
    spool.close(other.id).unwrap();
    // The chunk's file can be neither read nor replaced.
    let unreadable = spool.next_pending().unwrap().unwrap();
    assert_eq!(unreadable.job, fixture.job.id);
    let file = format!("{}.chunk", unreadable.hash);
    let file = fixture.job_folder().join(file);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(spool.next_pending().unwrap().unwrap().job, other.id);
    let chunk = spool.next_pending().unwrap().unwrap();
    spool.accept(chunk.job, chunk.hash).unwrap();
    assert!(spool.next_pending().is_err());
}

#[test]
fn a_folder_that_is_removed_while_in_use_is_made_again() {
    let fixture = Fixture::new(4);
    let mut spool = fixture.begin();
    let id = fixture.job.id;
    spool.record(id, &fixture.games[0]).unwrap();
    spool.cut(id).unwrap();
    assert_eq!(send_all(&mut spool).len(), 1);
    spool.record(id, &fixture.games[1]).unwrap();
    spool.cut(id).unwrap();
    spool.record(id, &fixture.games[2]).unwrap();
    std::fs::remove_dir_all(fixture.folder.path().join(id.to_string())).unwrap();
    // The game that only its chunk held is lost, and missing again.
    assert_eq!(spool.record(id, &fixture.games[3]).unwrap(), 1);
    assert_eq!((spool.unsent(), spool.kept()), (2, 2));
    drop(spool);
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].missing, [fixture.games[1].index]);
    assert_eq!(spool.close(id).unwrap(), 1);
    let mut unsent = [fixture.games[2].index, fixture.games[3].index];
    unsent.sort_unstable();
    assert_eq!(send_all(&mut spool), unsent);
    assert!(!fixture.job_folder().exists());
}

#[test]
fn a_job_of_which_nothing_is_left_is_forgotten() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.close(fixture.job.id).unwrap();
    assert_eq!(spool.kept(), 1);
    std::fs::remove_dir_all(fixture.job_folder()).unwrap();
    assert_eq!(spool.kept(), 0);
    assert_eq!(spool.next_pending().unwrap(), None);
    assert!(spool.jobs.is_empty() && !fixture.job_folder().exists());
}

#[test]
fn a_chunk_whose_journal_is_removed_is_sent() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    spool.record(fixture.job.id, &fixture.games[0]).unwrap();
    spool.cut(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap();
    std::fs::remove_file(fixture.job_folder().join("journal")).unwrap();
    assert_eq!(spool.next_pending().unwrap(), chunk);
    drop(spool);
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].finished, 1);
    assert_eq!(spool.next_pending().unwrap(), chunk);
}

#[test]
fn a_chunk_is_answered_for_though_its_folder_is_removed() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    assert_eq!(spool.close(fixture.job.id).unwrap(), 0);
    let chunk = spool.next_pending().unwrap().unwrap();
    std::fs::remove_dir_all(fixture.folder.path()).unwrap();
    spool.accept(chunk.job, chunk.hash).unwrap();
    assert!(spool.jobs.is_empty());
    spool.begin(job(2), Backend::CpuF32).unwrap();
}

#[test]
fn a_job_that_is_there_already_is_not_begun_again() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    let again = spool.begin(fixture.job.clone(), Backend::CpuF32);
    let error = again.unwrap_err();
    assert!(error.to_string().contains("in hand already"), "{error}");
    assert_eq!(spool.unsent(), 2);
    drop(spool);
    assert_eq!(fixture.open().open_jobs()[0].finished, 2);
}

/// What is done to a job, step by step; every step is one the program may be killed after.
fn history(fixture: &Fixture) -> Vec<u8> {
    let mut spool = fixture.begin();
    let id = fixture.job.id;
    record(&mut spool, id, &fixture.games[..2]);
    spool.cut(id).unwrap();
    record(&mut spool, id, &fixture.games[2..3]);
    let first = spool.next_pending().unwrap().unwrap();
    spool.accept(id, first.hash).unwrap();
    spool.cut(id).unwrap();
    record(&mut spool, id, &fixture.games[3..]);
    std::fs::read(fixture.job_folder().join("journal")).unwrap()
}

/// The state of a killed program's folder: the journal up to a byte, with or without chunk files.
fn kill(fixture: &Fixture, journal: &[u8], chunks: &[(PathBuf, Vec<u8>)]) {
    let folder = fixture.job_folder();
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("journal"), journal).unwrap();
    std::fs::write(folder.join("x.partial"), b"half a chunk").unwrap();
    chunks
        .iter()
        .for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

fn chunk_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let chunks = files.filter(|path| path.extension().is_some_and(|e| e == "chunk"));
    chunks
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn killed_after_any_byte_no_kept_game_is_lost_or_sent_twice() {
    let fixture = Fixture::new(4);
    let journal = history(&fixture);
    let chunks = chunk_files(&fixture.job_folder());
    assert_eq!(chunks.len(), 1);
    let order: Vec<u32> = fixture.games.iter().map(|game| game.index).collect();
    let (mut before, mut seen) = (0, std::collections::BTreeSet::new());
    for end in frame::MAGIC.len()..=journal.len() {
        for chunks in [&chunks[..], &[]] {
            kill(&fixture, &journal[..end], chunks);
            let mut spool = fixture.open();
            let Some(open) = spool.open_jobs().pop() else {
                assert_eq!(before, 0, "the job is forgotten after {end} bytes");
                continue;
            };
            let finished = open.finished as usize;
            assert!(finished >= before, "a game is lost after {end} bytes");
            before = finished;
            let mut missing = order[finished..].to_vec();
            missing.sort_unstable();
            assert_eq!(open.missing, missing, "after {end} bytes");
            // Sending everything is slow: once for every state that can be told apart is enough.
            if seen.insert((finished, spool.unsent(), chunks.len())) {
                spool.close(fixture.job.id).unwrap();
                let mut unsent = order[..finished].to_vec();
                let sent = send_all(&mut spool);
                // The first chunk, of two games, was accepted before the third entry after it.
                if sent.len() + 2 == finished {
                    unsent.drain(..2);
                }
                unsent.sort_unstable();
                assert_eq!(sent, unsent, "after {end} bytes");
            }
        }
    }
    assert_eq!(before, 4);
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn a_chunk_file_is_the_same_after_a_restart() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin();
    record(&mut spool, fixture.job.id, &fixture.games);
    spool.cut(fixture.job.id).unwrap();
    let before = spool.next_pending().unwrap().unwrap();
    drop(spool);
    let file = fixture.job_folder().join(format!("{}.chunk", before.hash));
    for damage in [b"damaged".to_vec(), before.bytes.clone()] {
        std::fs::write(&file, damage).unwrap();
        assert_eq!(fixture.open().next_pending().unwrap(), Some(before.clone()));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().unwrap()
}

#[test]
fn games_that_cannot_be_written_are_not_said_to_be_kept() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    let id = fixture.job.id;
    spool.record(id, &fixture.games[0]).unwrap();
    spool.jobs.get_mut(&id).unwrap().break_journal();
    let handle = actor::start(spool, |event| panic!("{event:?}")).unwrap();
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
    let handle = actor::start(fixture.open(), move |event| drop(events.send(event))).unwrap();
    runtime().block_on(async {
        handle
            .begin(Box::new(fixture.job.clone()), Backend::CpuF32)
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
    let missing: Vec<u32> = inbox
        .try_iter()
        .map(|event| match event {
            actor::SpoolEvent::Kept { missing, .. } => missing,
            actor::SpoolEvent::Unusable { error, .. } => panic!("{error}"),
        })
        .collect();
    assert_eq!(missing, [2, 1, 0]);
    assert!(!handle.is_stuck());
}
