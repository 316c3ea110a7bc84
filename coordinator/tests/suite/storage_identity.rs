//! A store of blobs is one ledger's.

use std::process::Stdio;

use bytes::Bytes;
use futures_util::future::join_all;
use rookery_coordinator::blobs::{BlobKind, Downloads, MARK, Marking};
use rookery_coordinator::db::LogFilter;
use rookery_coordinator::storage_identity::{self, StorageIdentityError};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::support::app::TestApp;
use crate::support::by;
use crate::support::database::TestDatabase;
use crate::support::files::Files;
use crate::support::s3::{S3, S3Fault};

#[tokio::test]
async fn the_first_ledger_has_the_store_until_another_one_adopts_it() {
    let databases = (TestDatabase::new().await, TestDatabase::new().await);
    let (first, second) = (databases.0.open().await, databases.1.open().await);
    let files = Files::new().await;
    let blobs = files.open();
    assert!(!storage_identity::check(&second, &*blobs).await.unwrap());
    assert_eq!(blobs.mark().await.unwrap(), None, "to look marks nothing");
    // Several coordinators of one ledger may start at once.
    let claims = (0..4).map(|_| storage_identity::claim(&first, &*blobs));
    for claimed in join_all(claims).await {
        claimed.unwrap();
    }
    assert!(storage_identity::check(&first, &*blobs).await.unwrap());
    let ids = (
        first.ledger_id().await.unwrap(),
        second.ledger_id().await.unwrap(),
    );
    let refused = storage_identity::claim(&second, &*blobs).await.unwrap_err();
    assert!(refused.is_refusal());
    let StorageIdentityError::Other { owner, id } = refused else {
        panic!("{refused}");
    };
    assert_eq!((owner, id), ids);
    let adopt = || storage_identity::adopt(&second, &*blobs, "the store", by("test"));
    assert!(adopt().await.unwrap());
    assert!(!adopt().await.unwrap(), "it is its own already");
    storage_identity::claim(&second, &*blobs).await.unwrap();
    assert!(storage_identity::claim(&first, &*blobs).await.is_err());
    let acts = second.operator_log(LogFilter::newest(10)).await.unwrap();
    let acts: Vec<_> = acts
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject, &*act.detail))
        .collect();
    let before = format!("it was that of ledger {}", ids.0);
    assert_eq!(acts, [("test", "adopt-store", "the store", &*before)]);
}

#[tokio::test]
async fn an_unmarked_store_with_networks_is_given_to_no_ledger_that_names_none_of_them() {
    let app = TestApp::new().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    app.submit(0).await;
    let database = TestDatabase::new().await;
    let empty = database.open().await;
    let refused = storage_identity::claim(&empty, blobs).await.unwrap_err();
    assert!(
        matches!(refused, StorageIdentityError::Strange { networks: 1 }),
        "{refused}"
    );
    assert_eq!(blobs.mark().await.unwrap(), None);
    storage_identity::claim(db, blobs).await.unwrap();
    let refused = storage_identity::claim(&empty, blobs).await.unwrap_err();
    assert!(
        matches!(refused, StorageIdentityError::Other { .. }),
        "{refused}"
    );
    assert_eq!(blobs.list(BlobKind::Network).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_mark_that_says_nothing_is_refused_and_adopted() {
    let database = TestDatabase::new().await;
    let ledger = database.open().await;
    let files = Files::new().await;
    let blobs = files.open();
    let text = Bytes::from_static(b"something else\n");
    blobs.set_mark(text, Marking::First).await.unwrap();
    let refused = storage_identity::claim(&ledger, &*blobs).await.unwrap_err();
    assert!(refused.to_string().contains(MARK), "{refused}");
    assert!(
        matches!(refused, StorageIdentityError::Unreadable),
        "{refused}"
    );
    let adopted = storage_identity::adopt(&ledger, &*blobs, "the store", by("test")).await;
    assert!(adopted.unwrap());
    storage_identity::claim(&ledger, &*blobs).await.unwrap();
}

#[tokio::test]
async fn a_store_that_fails_is_no_store_of_another_ledger() {
    let database = TestDatabase::new().await;
    let ledger = database.open().await;
    let files = Files::new().await;
    let blobs = files.open();
    files.break_down();
    let failed = storage_identity::claim(&ledger, &*blobs).await.unwrap_err();
    assert!(!failed.is_refusal(), "{failed}");
    files.mend();
    storage_identity::claim(&ledger, &*blobs).await.unwrap();
}

/// The program, serving a ledger since before its store could be asked.
struct Early {
    program: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Early {
    /// Begins while the store fails. The store works again as soon as the program goes on without it.
    async fn begin(database: &TestDatabase, s3: &S3) -> Self {
        s3.set_fault(S3Fault::Failing);
        let mut program = Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("ROOKERY_DATABASE", database.url())
            .env("ROOKERY_STORAGE", S3::url())
            .envs(s3.settings())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(program.stderr.take().unwrap()).lines();
        let mut early = Self { program, log };
        early.says("whose it is will be checked").await;
        s3.set_fault(S3Fault::None);
        early.says("The coordinator listens").await;
        early
    }

    /// The next line of the log with this text.
    async fn says(&mut self, text: &str) -> String {
        loop {
            let line = self.log.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("the log ended before {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Whether it ends in order.
    async fn ends_well(mut self) -> bool {
        self.program.wait().await.unwrap().success()
    }
}

#[tokio::test]
async fn a_store_that_comes_up_late_is_marked_and_that_of_another_ledger_stops_the_coordinator() {
    let (first, second) = (TestDatabase::new().await, TestDatabase::new().await);
    let s3 = S3::start().await;
    let mut own = Early::begin(&first, &s3).await;
    own.says("it is marked as this ledger's now").await;
    let told = Command::new("kill")
        .arg(own.program.id().unwrap().to_string())
        .status();
    assert!(told.await.unwrap().success());
    assert!(
        own.ends_well().await,
        "it went on until it was told to stop"
    );
    let mut other = Early::begin(&second, &s3).await;
    let refusal = other.says("belongs to another ledger").await;
    assert!(!other.ends_well().await);
    let (first, second) = (first.open().await, second.open().await);
    for ledger in [&first, &second] {
        let id = ledger.ledger_id().await.unwrap().to_string();
        assert!(refusal.contains(&id), "{id}: {refusal}");
    }
    let blobs = s3.blobs(Downloads::default());
    assert!(storage_identity::check(&first, &blobs).await.unwrap());
}
