//! Files that are damaged, strange, or can be neither read nor written.

use super::*;

/// Makes a chunk's file one that can be neither read nor replaced.
fn block(file: &Path) {
    std::fs::remove_file(file).unwrap();
    std::fs::create_dir(file).unwrap();
}

#[test]
fn a_folder_that_tells_nothing_is_set_aside() {
    let fixture = Fixture::new(1);
    drop(fixture.begin());
    std::fs::write(fixture.journal(), b"nonsense").unwrap();
    let mut spool = fixture.open();
    assert!(spool.open_jobs().is_empty());
    assert_eq!(spool.take_unreadable(), [fixture.job.id]);
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
    drop(fixture.begin_with(&fixture.games));
    // Within the first entry.
    let journal = fixture.damage(fixture.journal_bytes(), frame::MAGIC.len() + 20);
    let spool = fixture.open();
    assert!(spool.open_jobs().is_empty() && !fixture.job_folder().exists());
    assert_eq!(fixture.damaged_journal(0), journal);
}

#[test]
fn one_damaged_game_costs_no_other() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin();
    let taken = fixture.journal_bytes().len();
    record(&mut spool, fixture.job.id, &fixture.games);
    drop(spool);
    let journal = fixture.journal_bytes();
    // In the first game's content, then in the highest byte of its length.
    for (n, place) in [taken + 20, taken + 3].into_iter().enumerate() {
        let damaged = fixture.damage(journal.clone(), place);
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
    let taken = fixture.journal_bytes().len();
    record(&mut spool, fixture.job.id, &fixture.games[..2]);
    spool.cut(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    drop(spool);
    fixture.damage(fixture.journal_bytes(), taken + 20);
    let mut spool = fixture.open();
    assert_eq!(spool.open_jobs()[0].missing, [fixture.games[2].index]);
    assert_eq!(spool.next_pending().unwrap(), Some(chunk));
}

#[test]
fn games_whose_cut_is_damaged_are_sent_as_the_same_chunk() {
    let fixture = Fixture::new(3);
    let mut spool = fixture.begin_with(&fixture.games[..2]);
    let played = fixture.journal_bytes().len();
    spool.cut(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    record(&mut spool, fixture.job.id, &fixture.games[2..]);
    drop(spool);
    fixture.damage(fixture.journal_bytes(), played + 20);
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
    drop(fixture.begin_with(&fixture.games[..1]));
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
    let mut spool = fixture.begin_with(&fixture.games);
    spool.close(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    let other = job(2);
    spool.begin(other.clone(), Backend::CpuF32).unwrap();
    drop(spool);
    let file = fixture.chunk_file(chunk.hash);
    block(&file);
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
    let mut spool = fixture.begin_with(&fixture.games);
    spool.cut(fixture.job.id).unwrap();
    let before = pending(&mut spool);
    let file = fixture.chunk_file(before.hash);
    std::fs::write(&file, b"damaged").unwrap();
    assert_eq!(spool.next_pending().unwrap(), Some(before.clone()));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(spool.next_pending().unwrap(), Some(before));
}

#[test]
fn a_chunk_that_cannot_be_read_holds_up_no_other() {
    let fixture = Fixture::new(1);
    let mut spool = fixture.begin_with(&fixture.games);
    spool.close(fixture.job.id).unwrap();
    let other = job(2);
    spool.begin(other.clone(), Backend::CpuF32).unwrap();
    record(&mut spool, other.id, &games(&other));
    spool.close(other.id).unwrap();
    let unreadable = pending(&mut spool);
    assert_eq!(unreadable.job, fixture.job.id);
    block(&fixture.chunk_file(unreadable.hash));
    assert_eq!(pending(&mut spool).job, other.id);
    let chunk = pending(&mut spool);
    spool.accept(chunk.job, chunk.hash).unwrap();
    assert!(spool.next_pending().is_err());
}
