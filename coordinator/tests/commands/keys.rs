//! Keys of runs, and rotations that were interrupted.

use std::path::Path;

use serde_json::Value;

use crate::{done, refused};

const ROTATE: [&str; 4] = ["run", "key", "rotate", "main"];

/// The run's keys, oldest first.
fn keys(folder: &Path) -> Vec<String> {
    let keys = done(folder, &["run", "key", "show", "main", "--json"]);
    let keys: Vec<Value> = serde_json::from_str(&keys).unwrap();
    let key = |info: &Value| info["key"].as_str().unwrap().to_owned();
    keys.iter().map(key).collect()
}

#[test]
fn a_restored_ledger_is_led_to_the_keys_that_came_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    done(folder, &["run", "key", "create", "main"]);
    done(folder, &["ledger", "backup", "copy.db"]);
    done(folder, &ROTATE);
    done(folder, &ROTATE);
    let before = keys(folder);
    assert_eq!(before.len(), 3);
    for file in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(folder.join("data").join(file));
    }
    std::fs::rename(folder.join("copy.db"), folder.join("data/ledger.db")).unwrap();
    assert_eq!(keys(folder), before[..1]);
    let error = refused(folder, &ROTATE);
    assert!(error.contains(&before[2]), "{error}");
    assert!(error.contains("main.key.old.2`"), "{error}");
    for (old, new) in [
        ("main.key.old", "main.key.old.2"),
        ("main.key.old.2", "main.key"),
    ] {
        let [old, new] = [old, new].map(|name| format!("data/keys/{name}"));
        let again = [
            &ROTATE[..],
            &["--old", old.as_str(), "--secret", new.as_str()],
        ]
        .concat();
        done(folder, &again);
    }
    assert_eq!(keys(folder), before);
}

/// Makes a key and puts it into a file of the folder of keys; the public key.
fn put_key(folder: &Path, run: &str, file: &str) -> String {
    done(folder, &["run", "create", run]);
    done(folder, &["run", "key", "create", run]);
    let made = folder.join(format!("data/keys/{run}.key"));
    std::fs::rename(made, folder.join("data/keys").join(file)).unwrap();
    done(folder, &["run", "key", "show", run]).trim().to_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("data/keys")).unwrap();
    let name = |file: std::fs::DirEntry| file.file_name().into_string().unwrap();
    let mut names: Vec<String> = files.map(|file| name(file.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn a_rotation_that_was_interrupted_is_finished_by_the_same_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = |name: &str| folder.join("data/keys").join(name);
    let first = put_key(folder, "main", "main.key");
    // Before the new key took its place, and when the old one had been copied, too.
    let second = put_key(folder, "b", "main.key.new");
    std::fs::copy(file("main.key"), file("main.key.old")).unwrap();
    done(folder, &ROTATE);
    assert_eq!(keys(folder), [first.as_str(), &second]);
    assert_eq!(files(folder), ["main.key", "main.key.old"]);
    // When it had its place, and the ledger did not know it.
    std::fs::rename(file("main.key"), file("main.key.old.2")).unwrap();
    let third = put_key(folder, "c", "main.key");
    assert!(done(folder, &ROTATE).contains("interrupted"));
    assert_eq!(keys(folder), [first.as_str(), &second, &third]);
    // Where an older version had renamed the old one only.
    std::fs::rename(file("main.key"), file("main.key.old.3")).unwrap();
    let fourth = put_key(folder, "d", "main.key.new");
    done(folder, &ROTATE);
    assert_eq!(keys(folder), [first, second, third, fourth]);
    let kept = [
        "main.key",
        "main.key.old",
        "main.key.old.2",
        "main.key.old.3",
    ];
    assert_eq!(files(folder), kept);
}

#[test]
fn a_key_keeps_its_place_until_its_follower_has_signed_all_networks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = put_key(folder, "main", "main.key");
    let kept = std::fs::read(folder.join("data/keys/main.key")).unwrap();
    let failing = [&["--storage", "nowhere://x"], &ROTATE[..]].concat();
    assert!(refused(folder, &failing).contains("RK-0220"));
    assert_eq!(
        std::fs::read(folder.join("data/keys/main.key")).unwrap(),
        kept
    );
    done(folder, &ROTATE);
    assert_eq!(keys(folder)[0], first);
    assert_eq!(files(folder), ["main.key", "main.key.old"]);
}
