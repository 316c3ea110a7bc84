//! Folders and files that somebody removes while they are in use.

use super::*;

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
    std::fs::remove_dir_all(fixture.job_folder()).unwrap();
    // The game that only its chunk held is lost, and missing again.
    spool.record(id, &fixture.games[3]).unwrap();
    assert_eq!(spool.open_jobs()[0].missing, [fixture.games[1].index]);
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
    let mut spool = fixture.begin_with(&fixture.games);
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
    let mut spool = fixture.begin_with(&fixture.games[..1]);
    spool.cut(fixture.job.id).unwrap();
    let chunk = spool.next_pending().unwrap();
    std::fs::remove_file(fixture.journal()).unwrap();
    assert_eq!(spool.next_pending().unwrap(), chunk);
    drop(spool);
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].finished, 1);
    assert_eq!(spool.next_pending().unwrap(), chunk);
}

#[test]
fn a_chunk_is_answered_for_though_its_folder_is_removed() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin_with(&fixture.games);
    assert_eq!(spool.close(fixture.job.id).unwrap(), 0);
    let chunk = pending(&mut spool);
    std::fs::remove_dir_all(fixture.folder.path()).unwrap();
    spool.accept(chunk.job, chunk.hash).unwrap();
    assert!(spool.jobs.is_empty());
    spool.begin(job(2), Backend::CpuF32).unwrap();
}
