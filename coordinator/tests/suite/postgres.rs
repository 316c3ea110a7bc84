//! What only PostgreSQL does: it is elsewhere, and holds databases that are no ledgers.

use std::process::Command;
use std::time::Duration;

use rookery_coordinator::db::{Database, DbError};

use crate::support::database::TestDatabase;

#[tokio::test]
async fn a_server_that_cannot_be_used_is_explained() {
    let patience = Duration::from_millis(300);
    let absent = Database::open("postgres://127.0.0.1:1/rookery", patience).await;
    let Err(DbError::Unreachable { advice, .. }) = absent else {
        panic!("there is a server at port 1")
    };
    assert!(advice.contains("host and port"), "{advice}");
    let database = TestDatabase::new().await;
    let missing = database.url().replace("///t", "///missing");
    let Err(DbError::Unreachable { advice, .. }) = Database::open(&missing, patience).await else {
        panic!("there is no such database")
    };
    assert!(advice.contains("createdb"), "{advice}");
}

#[tokio::test]
async fn an_empty_database_is_no_empty_ledger() {
    let database = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let command = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"))
            .args(["--database", database.url(), "--data-dir"])
            .arg(folder.path())
            .args(words)
            .output()
            .unwrap()
    };
    for words in [&["user", "create", "ann"][..], &["run", "list"]] {
        let refused = command(words);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "{words:?} succeeded");
        assert!(error.contains("there is no ledger at postgres:"), "{error}");
        assert!(error.contains("--database"), "{error}");
    }
    for words in [&["run", "create", "main"][..], &["user", "create", "ann"]] {
        let done = command(words);
        assert!(done.status.success(), "{done:?}");
    }
    // Other coordinators do not have the key's file by themselves.
    let done = command(&["run", "key", "create", "main"]);
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("DATA_DIR/keys of each"), "{said}");
}
