//! What only PostgreSQL does: it is elsewhere, holds databases that are no ledgers, and has its own backups.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rookery_common::ids::ContentHash;
use rookery_common::protocol::server::Presentation;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::db::sql::Database;
use rookery_coordinator::db::{Checked, DbError, RunDraft};

use crate::support::app::{TestApp, params, run};
use crate::support::database::TestDatabase;
use crate::support::postgres;
use crate::support::selfplay::selfplays;

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

#[tokio::test]
async fn a_ledger_is_backed_up_by_pg_dump_and_restored() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let bytes = selfplays(&app, &app.alice, &[1]).await;
    let dump = postgres::program("pg_dump")
        .args(["--format=custom", "--dbname"])
        .arg(app.database.url())
        .current_dir("/")
        .output()
        .unwrap();
    assert!(dump.status.success(), "{dump:?}");
    let restored = TestDatabase::new().await;
    let mut restore = postgres::program("pg_restore")
        .args(["--single-transaction", "--no-owner", "--dbname"])
        .arg(restored.url())
        .current_dir("/")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    restore
        .stdin
        .take()
        .unwrap()
        .write_all(&dump.stdout)
        .unwrap();
    assert!(restore.wait().unwrap().success());
    let copy = restored.open().await;
    assert!(
        copy.receipt(&ContentHash::of(&bytes))
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(copy.check(&run()).await.unwrap(), Checked::default());
    let original = app.app.db.ledger_id().await.unwrap();
    assert_eq!(copy.ledger_id().await.unwrap(), original);
    // It goes on where the original was: new rows get new numbers.
    let now = app.clock.now();
    let runs = RunDraft {
        name: "second".parse().unwrap(),
        description: String::new(),
        presentation: Presentation::default(),
        params: params(),
    };
    copy.create_run(runs, "test", now).await.unwrap();
    assert_eq!(copy.runs().await.unwrap().len(), 2);
}
