//! Programs that are killed at any moment.

use super::*;

/// What is done to a job, step by step; every step is one the program may be killed after.
fn history(fixture: &Fixture) -> Vec<u8> {
    let mut spool = fixture.begin_with(&fixture.games[..2]);
    let id = fixture.job.id;
    spool.cut(id).unwrap();
    record(&mut spool, id, &fixture.games[2..3]);
    let first = pending(&mut spool);
    spool.accept(id, first.hash).unwrap();
    spool.cut(id).unwrap();
    record(&mut spool, id, &fixture.games[3..]);
    fixture.journal_bytes()
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
        for chunks in [&[], &chunks[..]] {
            if before < 3 && !chunks.is_empty() {
                // The chunk is written after the third game's entry: here the journal's end would be lost.
                continue;
            }
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
fn games_whose_entries_are_lost_are_uploaded_with_their_chunk() {
    let fixture = Fixture::new(5);
    let mut spool = fixture.begin_with(&fixture.games[..3]);
    spool.cut(fixture.job.id).unwrap();
    let chunk = pending(&mut spool);
    let sealed = fixture.journal_bytes().len();
    record(&mut spool, fixture.job.id, &fixture.games[3..]);
    drop(spool);
    let journal = fixture.journal_bytes();
    let whole = fixture.open().unsent();
    assert_eq!(whole, 5);
    // The first entry tells of the job, and each of the next three of a game.
    for end in (0..sealed).rev() {
        std::fs::create_dir_all(fixture.job_folder()).unwrap();
        std::fs::write(fixture.journal(), &journal[..end]).unwrap();
        std::fs::write(fixture.chunk_file(chunk.hash), &chunk.bytes).unwrap();
        let mut spool = fixture.open();
        if spool.open_jobs().is_empty() {
            // Nothing is known of the job.
            break;
        }
        spool.close(fixture.job.id).unwrap();
        let mut expected = indices(&chunk.bytes);
        expected.sort_unstable();
        assert_eq!(send_all(&mut spool), expected, "after {end} bytes");
    }
}

#[test]
fn a_spool_has_room_until_too_much_waits() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin_with(&fixture.games);
    assert!(spool.has_room() && spool.has_room_within(2, 1 << 20));
    assert!(!spool.has_room_within(1, 1 << 20), "one job waits");
    assert!(!spool.has_room_within(2, 100), "it has more bytes");
    spool.close(fixture.job.id).unwrap();
    assert!(!spool.has_room_within(2, 100), "its chunk waits");
    send_all(&mut spool);
    assert!(spool.has_room_within(1, 100));
}

#[test]
fn a_chunk_file_is_the_same_after_a_restart() {
    let fixture = Fixture::new(2);
    let mut spool = fixture.begin_with(&fixture.games);
    spool.cut(fixture.job.id).unwrap();
    let before = pending(&mut spool);
    drop(spool);
    let file = fixture.chunk_file(before.hash);
    for damage in [b"damaged".to_vec(), before.bytes.to_vec()] {
        std::fs::write(&file, damage).unwrap();
        assert_eq!(fixture.open().next_pending().unwrap(), Some(before.clone()));
    }
}
