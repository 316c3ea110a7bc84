//! Tests of the folder of decoded games.

use super::*;
use crate::buffer::record::pack;
use crate::testing;

fn key(number: u64) -> ContentHash {
    ContentHash::of(&number.to_le_bytes())
}

fn packed(number: u64, games: u64) -> Vec<Vec<u8>> {
    (0..games)
        .map(|game| pack(&testing::game(number * 100 + game, 40)).unwrap())
        .collect()
}

fn positions(games: &[StoredGame]) -> Vec<u32> {
    games.iter().map(StoredGame::positions).collect()
}

fn filled(folder: &Path, blocks: u64) -> GameStore {
    let mut store = GameStore::open(folder.to_owned()).unwrap();
    for number in 0..blocks {
        store.add(key(number), &packed(number, 3)).unwrap();
    }
    store
}

#[test]
fn what_was_kept_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let before: Vec<_> = {
        let store = filled(dir.path(), 4);
        (0..4)
            .map(|n| positions(&store.get(key(n)).unwrap()))
            .collect()
    };
    let mut store = GameStore::open(dir.path().to_owned()).unwrap();
    for (number, before) in before.iter().enumerate() {
        assert_eq!(positions(&store.get(key(number as u64)).unwrap()), *before);
    }
    assert!(store.get(key(9)).is_none());
    // It goes on in the same file.
    store.add(key(9), &packed(9, 2)).unwrap();
    drop(store);
    let store = GameStore::open(dir.path().to_owned()).unwrap();
    assert_eq!(store.get(key(9)).unwrap().len(), 2);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn files_of_other_names_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 2));
    for name in ["7.tmp", "8.games", "00000009.games.old", "notes"] {
        std::fs::write(dir.path().join(name), b"mine").unwrap();
    }
    let store = GameStore::open(dir.path().to_owned()).unwrap();
    assert_eq!(store.get(key(1)).unwrap().len(), 3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5);
}

/// Wherever a byte is wrong, the blocks before it are there, and neither the damaged one nor
/// anything that is not true.
#[test]
fn a_damaged_block_is_as_good_as_missing() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 3));
    let path = dir.path().join("00000000.games");
    let whole = std::fs::read(&path).unwrap();
    let mut begins = vec![0];
    for number in 0..3 {
        begins.push(begins[number] + block(key(number as u64), &packed(number as u64, 3)).len());
    }
    for damaged in 0..3 {
        for at in [0, 10, 30, HEADER - 3, HEADER + 5, HEADER + 900] {
            let mut bytes = whole.clone();
            bytes[begins[damaged] + at] ^= 0x41;
            std::fs::write(&path, bytes).unwrap();
            let mut store = GameStore::open(dir.path().to_owned()).unwrap();
            for number in 0..3 {
                assert_eq!(
                    store.get(key(number as u64)).is_some(),
                    number < damaged,
                    "block {number} with byte {at} of block {damaged} wrong"
                );
            }
            let again = store.add(key(2), &packed(2, 3)).unwrap();
            assert_eq!(again.len(), 3);
            std::fs::remove_file(dir.path().join("00000001.games")).unwrap();
        }
    }
}

/// A crash may leave any beginning of what was to be written.
#[test]
fn a_block_cut_anywhere_loses_nothing_before_it() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), 1));
    let path = dir.path().join("00000000.games");
    let first = std::fs::read(&path).unwrap();
    let block = block(key(1), &packed(1, 1));
    let begin = super::block(key(0), &packed(0, 3)).len();
    for cut in 0..block.len() {
        let mut bytes = first.clone();
        bytes[begin..begin + cut].copy_from_slice(&block[..cut]);
        std::fs::write(&path, bytes).unwrap();
        let store = GameStore::open(dir.path().to_owned()).unwrap();
        assert_eq!(store.get(key(0)).unwrap().len(), 3);
        // What is left out may have been zeros.
        let lost = block[cut..].iter().any(|byte| *byte != 0);
        assert_eq!(store.get(key(1)).is_none(), lost, "cut at {cut}");
    }
}

#[test]
fn files_that_nobody_uses_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path(), 1);
    let used = store.get(key(0)).unwrap();
    // A block as long as a segment begins one of its own.
    let long = vec![vec![0; SEGMENT as usize]];
    drop(store.add(key(5), &long).unwrap());
    let files = || std::fs::read_dir(dir.path()).unwrap().count();
    store.add(key(6), &packed(6, 1)).unwrap();
    assert_eq!(files(), 3);
    store.sweep().unwrap();
    assert!(store.get(key(0)).is_some() && store.get(key(6)).is_some());
    assert!(store.get(key(5)).is_none() && files() == 2);
    drop(used);
    store.sweep().unwrap();
    assert!(store.get(key(0)).is_none());
    assert!(store.get(key(6)).is_some(), "the file that grows stays");
    assert_eq!(files(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("window");
    let mut store = GameStore::open(folder.clone()).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let error = format!("{:#}", store.add(key(0), &packed(0, 1)).unwrap_err());
    assert!(
        error.contains("cannot keep decoded games") && error.contains("window"),
        "{error}"
    );
}
