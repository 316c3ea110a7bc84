//! Commands that do one thing and end.

use serde_json::Value;

use crate::{done, program, refused};

#[test]
fn users_and_runs_are_kept_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["migrate"]);
    let words = [
        "user", "create", "ann", "--scope", "train", "--scope", "operate", "--json",
    ];
    let user: Value = serde_json::from_str(&done(folder, &words)).unwrap();
    assert_eq!(user["scopes"], serde_json::json!(["train", "operate"]));
    assert!(user["token"].as_str().unwrap().starts_with("rk_"));
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(
        tokens.contains("valid") && !tokens.contains("rk_"),
        "{tokens}"
    );
    let number = tokens.split_whitespace().next().unwrap();
    let rotated = done(folder, &["user", "rotate", "ann", number]);
    assert!(rotated.starts_with("rk_") && *rotated.trim() != user["token"]);
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(
        tokens.lines().nth(1).unwrap().contains("revoked"),
        "{tokens}"
    );
    assert!(refused(folder, &["user", "rotate", "ann", "999"]).contains("999"));
    let number = tokens.split_whitespace().next().unwrap();
    done(folder, &["user", "revoke", number]);
    let tokens = done(folder, &["user", "tokens", "ann"]);
    assert!(!tokens.contains("valid"), "{tokens}");
    assert!(refused(folder, &["user", "create", "ANN"]).contains("taken"));
    done(folder, &["user", "create", "bob"]);
    done(folder, &["user", "block", "ann"]);
    done(folder, &["user", "quarantine", "bob", "--reason", "test"]);
    let users: Value = serde_json::from_str(&done(folder, &["user", "list", "--json"])).unwrap();
    let flags = |place: usize| {
        let user = &users[place];
        ["name", "blocked", "quarantined", "tokens", "games"].map(|key| user[key].clone())
    };
    assert_eq!(
        serde_json::json!(flags(0)),
        serde_json::json!(["ann", true, false, 0, 0])
    );
    assert_eq!(
        serde_json::json!(flags(1)),
        serde_json::json!(["bob", false, true, 1, 0])
    );
    let lines = done(folder, &["user", "list"]);
    assert!(
        lines.starts_with("ann ") && lines.contains("blocked"),
        "{lines}"
    );
    let clear = || done(folder, &["user", "clear", "bob", "--reason", "test"]);
    assert_eq!(clear(), "User bob is cleared.\n");
    assert!(clear().contains("nothing to clear"));
    assert!(refused(folder, &["user", "create", "a b"]).contains("a b"));
    assert!(refused(folder, &["user", "create", "Coordinator"]).contains("goes by it"));
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_seconds = 11\n").unwrap();
    done(folder, &["run", "create", "main", "--params", "p.toml"]);
    done(folder, &["run", "pause", "main"]);
    let runs: Value = serde_json::from_str(&done(folder, &["run", "list", "--json"])).unwrap();
    assert_eq!(runs[0]["status"], "paused");
    assert_eq!(runs[0]["params"]["scheduling"]["lease_seconds"], 11);
    assert!(refused(folder, &["run", "show", "other"]).contains("run other"));
    let words = ["run", "reject", "main", "7", "--reason", "it overflows"];
    assert!(refused(folder, &words).contains("network number 7"));
    let words = ["run", "reject", "main", "7", "--reason", " "];
    assert!(refused(folder, &words).contains("`reason` needs"));
    for (elo, told) in [
        ("1100", "network number 7"),
        ("-20", "network number 7"),
        ("none", "network number 7"),
        ("strong", "\"strong\" is no Elo"),
        ("10001", "from -10000 to 10000"),
    ] {
        let error = refused(folder, &["run", "anchor", "main", "7", "--elo", elo]);
        assert!(error.contains(told), "{elo}: {error}");
    }
    std::fs::write(folder.join("p.toml"), "[scheduling]\nlease_second = 11\n").unwrap();
    assert!(
        refused(folder, &["run", "set", "main", "--params", "p.toml"]).contains("lease_second")
    );
    assert!(done(folder, &["ledger", "check"]).contains("every sum follows"));
    assert!(refused(folder, &["--database", "oracle:x", "migrate"]).contains("oracle:x"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut migrate = program(folder.path());
    let status = migrate.arg("migrate").stdout(writer).status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_wrong_folder_is_no_empty_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for words in [
        &["user", "create", "ann"][..],
        &["run", "list"],
        &["ledger", "check"],
        &["ledger", "copy", "--to", "sqlite:copy.db"],
        &["storage", "sweep"],
        &["puzzles", "mine", "--run", "main"],
    ] {
        let error = refused(folder, words);
        assert!(error.contains("there is no ledger at"), "{error}");
        assert!(error.contains("--data-dir"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    done(folder, &["run", "create", "main"]);
    done(folder, &["user", "create", "ann"]);
    assert!(refused(folder, &["run", "set", "main"]).contains("nothing is given"));
}

#[test]
fn a_folder_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a b/50%20x", "q?x", "n#1", "?mode=memory"] {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        done(&folder, &["run", "create", "main"]);
        assert!(folder.join("data/ledger.db").is_file(), "{name}");
        assert!(done(&folder, &["run", "list"]).contains("main"));
    }
}

#[test]
fn a_minimum_version_ends_together_with_its_date() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    let minimum = ["run", "set", "main", "--minimum-worker"];
    let date = ["--cut-off", "2026-12-01T00:00:00Z"];
    done(folder, &[&minimum[..], &["0.2.0"], &date].concat());
    assert!(done(folder, &["run", "show", "main"]).contains("2026-12-01"));
    done(folder, &[&minimum[..], &["none"]].concat());
    let shown = done(folder, &["run", "show", "main"]);
    assert!(!shown.contains("2026-12-01"), "{shown}");
    let alone = refused(folder, &[&minimum[..3], &date].concat());
    assert!(alone.contains("needs a minimum version"), "{alone}");
}

#[test]
fn parameters_are_shown_as_a_file_that_is_taken_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let given = "[matches.search]\nvisits = 33\n\n[training]\ngrow = [[5, \"6x64\"]]\n";
    std::fs::write(folder.join("given.toml"), given).unwrap();
    done(folder, &["run", "create", "main", "--params", "given.toml"]);
    let shown = done(folder, &["run", "show", "main", "--params"]);
    assert!(
        shown.contains("visits = 33") && shown.contains("6x64"),
        "{shown}"
    );
    std::fs::write(folder.join("shown.toml"), &shown).unwrap();
    done(folder, &["run", "set", "main", "--params", "shown.toml"]);
    assert_eq!(done(folder, &["run", "show", "main", "--params"]), shown);
    assert!(!shown.contains("[matches.search.noise]"), "{shown}");
}

#[test]
fn a_ledger_is_backed_up_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    // What a backup that was killed has left is not in the way.
    std::fs::write(folder.join("copy.db.partial"), b"SQLite").unwrap();
    done(folder, &["ledger", "backup", "copy.db"]);
    assert!(!folder.join("copy.db.partial").exists());
    assert!(refused(folder, &["ledger", "backup", "copy.db"]).contains("exists"));
    done(folder, &["run", "create", "later"]);
    done(folder, &["storage", "sweep", "--remove"]);
    let restored = folder.join("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::rename(folder.join("copy.db"), restored.join("ledger.db")).unwrap();
    let of_copy = |words: &[&str]| {
        let mut command = program(folder);
        let output = command.env("ROOKERY_DATABASE", "sqlite:restored/ledger.db");
        let output = output.args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let runs: Value = serde_json::from_str(&of_copy(&["run", "list", "--json"])).unwrap();
    let runs: Vec<&Value> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["name"])
        .collect();
    assert_eq!(runs, ["main"]);
    assert!(of_copy(&["ledger", "check"]).contains("every sum follows"));
    // It is the same ledger: the store that is marked as the original's is the copy's as well.
    assert!(of_copy(&["storage", "sweep", "--remove"]).contains("chunks: 0 needed"));
}

#[test]
fn a_ledger_is_copied_into_another_database() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (there, back) = ("sqlite:there.db", "sqlite:back.db");
    done(folder, &["run", "create", "main"]);
    done(folder, &["storage", "sweep", "--remove"]);
    let said = done(folder, &["ledger", "copy", "--to", there]);
    for told in [
        "every sum follows",
        "tables. Serve it there",
        "the same ledger",
    ] {
        assert!(said.contains(told), "{said}");
    }
    // Whoever goes on with the old one by mistake is told; a sweep would remove what came since.
    for words in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["storage", "sweep", "--remove"],
        &["storage", "adopt"],
        &["ledger", "copy", "--to", back],
        &[
            "ledger",
            "export",
            "--run",
            "main",
            "--output",
            "dataset",
            "--licence",
            "CC0-1.0",
        ],
        &["user", "revoke", "1"],
        &["user", "list"],
        &["run", "create", "second"],
        &["run", "pause", "main"],
        &["worker", "block", "ann", "pc", "--reason", "broken"],
        &["puzzles", "mine", "--run", "main"],
        &["log"],
    ] {
        let error = refused(folder, words);
        for told in ["was copied into sqlite:there.db", "`ledger reopen`"] {
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }
    // To look back does no harm.
    for words in [
        &["run", "list"][..],
        &["run", "show", "main"],
        &["ledger", "check"],
        &["ledger", "backup", "old.db"],
    ] {
        done(folder, words);
    }
    let copy = |to| ["--database", there, "ledger", "copy", "--json", "--to", to];
    let outcome: Value = serde_json::from_str(&done(folder, &copy(back))).unwrap();
    assert_eq!(outcome["from"], there);
    assert_eq!(outcome["to"], back);
    assert_eq!(
        outcome["runs"],
        serde_json::json!([{"run": "main", "discrepancies": [], "not_compared": []}])
    );
    let tables = outcome["tables"].as_array().unwrap();
    let rows: u64 = tables.iter().map(|t| t["rows"].as_u64().unwrap()).sum();
    assert_eq!(outcome["rows"], rows);
    assert!(refused(folder, &copy(back)).contains("was copied into sqlite:back.db"));
    let reopen = ["--database", there, "ledger", "reopen"];
    assert!(done(folder, &reopen).contains("can be served again"));
    assert!(done(folder, &reopen).contains("nothing was changed"));
    assert!(refused(folder, &copy(back)).contains("holds something already"));
    assert!(refused(folder, &copy(there)).contains("is the ledger itself"));
    // It has its original's identifier, and so the store.
    for database in [there, back] {
        let words = ["--database", database, "storage", "sweep", "--remove"];
        assert!(done(folder, &words).contains("chunks: 0 needed"));
    }
}

#[test]
fn the_store_of_another_ledger_is_not_touched_until_it_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let other = |words: &[&'static str]| [&["--database", "sqlite:other.db"][..], words].concat();
    done(folder, &["run", "create", "main"]);
    done(folder, &other(&["run", "create", "main"]));
    let remove = ["storage", "sweep", "--remove", "--grace-hours", "0"];
    done(folder, &remove);
    let blobs = folder.join("data/blobs");
    let mark = std::fs::read(blobs.join("ledger")).unwrap();
    // To the other ledger it is something that nothing needs.
    let chunk = blobs.join("chunks/ab").join("ab".repeat(32));
    std::fs::create_dir_all(chunk.parent().unwrap()).unwrap();
    std::fs::write(&chunk, b"chunk").unwrap();
    for words in [
        &remove[..],
        &["storage", "sweep"],
        &["storage", "sweep", "--restore"],
        &["storage", "archive", "--run", "main"],
        &["serve", "--listen", "127.0.0.1:0", "--create-run", "new"],
    ] {
        let error = refused(folder, &other(words));
        for said in ["belongs to another ledger", "--storage", "`storage adopt`"] {
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
    assert!(refused(folder, &other(&["run", "show", "new"])).contains("run new"));
    assert!(chunk.exists());
    assert_eq!(std::fs::read(blobs.join("ledger")).unwrap(), mark);
    assert!(done(folder, &other(&["storage", "adopt"])).contains("now"));
    assert!(done(folder, &other(&["storage", "adopt"])).contains("already"));
    assert!(refused(folder, &remove).contains("belongs to another ledger"));
    assert!(chunk.exists());
    done(folder, &other(&remove));
    assert!(!chunk.exists());
}

#[test]
fn days_before_all_calendars_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, days) = (
        ["storage", "archive", "--run", "main"],
        u32::MAX.to_string(),
    );
    let words = [&archive[..], &["--older-than-days", days.as_str()]].concat();
    assert!(refused(folder.path(), &words).contains("36500"));
}

/// `--store`, `ROOKERY_STORE`, the entry `store` and `store …` of builds before 0.1.0.
#[test]
fn storage_has_its_old_names_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["migrate"]);
    done(folder, &["--storage", "new", "storage", "sweep"]);
    done(folder, &["--store", "flag", "store", "sweep"]);
    let mut named = program(folder);
    named.env("ROOKERY_STORE", "variable");
    assert!(named.args(["store", "sweep"]).status().unwrap().success());
    std::fs::write(folder.join("coordinator.toml"), "store = \"entry\"").unwrap();
    done(folder, &["storage", "sweep"]);
    for storage in ["new", "flag", "variable", "entry"] {
        assert!(folder.join(storage).is_dir(), "{storage}");
    }
}

#[test]
fn variables_that_are_set_to_nothing_are_not_set() {
    let folder = tempfile::tempdir().unwrap();
    let empty = [
        "ROOKERY_CONFIG",
        "ROOKERY_DATABASE",
        "ROOKERY_STORAGE",
        "ROOKERY_LOG",
        "ROOKERY_LOG_FORMAT",
    ];
    let mut command = program(folder.path());
    command.envs(empty.map(|name| (name, "")));
    let output = command.args(["run", "list"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    // It looked where the flag says.
    assert!(error.contains("there is no ledger at"), "{error}");
}

#[test]
fn the_log_shows_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["run", "create", "main", "--title", "Club chess"];
    done(folder, &words);
    done(
        folder,
        &["run", "set", "main", "--contact", "ann@example.org"],
    );
    done(folder, &["run", "pause", "main"]);
    let log = done(folder, &["log", "--action", "change-run"]);
    let lines: Vec<&str> = log.lines().map(str::trim).collect();
    assert!(
        lines[0].contains("command line") && lines[0].ends_with("main"),
        "{log}"
    );
    assert_eq!(lines[1], "status: open → paused");
    assert_eq!(lines[3], "contact: none → ann@example.org");
    let log = done(
        folder,
        &["log", "--json", "--since", "1h", "--actor", "Command Line"],
    );
    let log: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(log.as_array().unwrap().len(), 3);
    assert_eq!(done(folder, &["log", "--actor", "ann"]), "");
    assert!(refused(folder, &["log", "--since", "soon"]).contains("2026-"));
    let run: Value = serde_json::from_str(&done(folder, &["run", "show", "main"])).unwrap();
    assert_eq!(run["title"], "Club chess");
    for flags in [
        ["--contact", "ask around"],
        ["--link", "Chat=javascript:x"],
        ["--title", "a\u{202e}"],
    ] {
        refused(folder, &[&["run", "set", "main"][..], &flags].concat());
    }
}

#[test]
fn users_and_runs_go_only_when_that_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    done(folder, &["user", "create", "Åse"]);
    assert!(refused(folder, &["user", "create", "audits"]).contains("itself"));
    done(
        folder,
        &["user", "create", "operator", "--scope", "operate"],
    );
    done(folder, &["user", "rename", "Åse", "Åsa"]);
    assert!(refused(folder, &["user", "delete", "Åsa"]).contains("--yes"));
    let deleted = done(folder, &["user", "delete", "Åsa", "--yes"]);
    assert!(deleted.contains("deleted-1"), "{deleted}");
    assert!(done(folder, &["user", "list"]).contains("deleted-1"));
    assert!(!done(folder, &["log"]).contains("Ås"));
    assert!(
        refused(
            folder,
            &["worker", "block", "operator", "rig", "--reason", "x"]
        )
        .contains("rig")
    );

    assert!(refused(folder, &["run", "delete", "main", "--yes"]).contains("archive"));
    done(folder, &["run", "archive", "main"]);
    assert_eq!(done(folder, &["run", "list"]), "");
    assert!(done(folder, &["run", "list", "--archived"]).contains("archived"));
    assert!(refused(folder, &["run", "open", "main"]).contains("restore"));
    assert!(refused(folder, &["run", "delete", "main"]).contains("--yes"));
    done(folder, &["run", "delete", "main", "--yes"]);
    assert!(refused(folder, &["run", "show", "main"]).contains("main"));
    done(folder, &["run", "create", "main"]);
}

#[test]
fn a_command_that_is_refused_closes_the_ledger_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    done(folder, &["run", "create", "main"]);
    for words in [
        &["user", "revoke", "7"][..],
        &["user", "block", "nobody"],
        &["user", "unblock", "nobody"],
        &["worker", "unblock", "nobody", "pc"],
        &["worker", "block", "nobody", "pc", "--reason", "slow"],
    ] {
        refused(folder, words);
        // SQLite removes its log when the last connection is closed.
        let log = folder.join("data/ledger.db-wal");
        assert!(!log.exists(), "{words:?} left {}", log.display());
    }
}
