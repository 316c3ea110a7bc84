//! The ledger itself: whose it is, and when it is not to be used.

use rookery_coordinator::db::Database;
use rookery_coordinator::db::sql::Found;
use rookery_coordinator::db::{DbError, LogFilter, SharedDatabase, UserChange};
use rookery_coordinator::tokens::Token;
use rookery_tests::programs::PATIENCE;
use sqlx::Connection as _;

use super::{user, user_draft};
use crate::support::by;
use crate::support::database::TestDatabase;

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_left_alone() {
    let database = TestDatabase::new().await;
    drop(database.open().await);
    let later = "INSERT INTO _sqlx_migrations \
                 SELECT 9999, description, installed_on, success, checksum, execution_time \
                 FROM _sqlx_migrations LIMIT 1";
    database.tamper(later).await;
    let error = Database::open(database.url(), PATIENCE).await.err();
    assert!(matches!(error, Some(DbError::Newer(9999))), "{error:?}");
}

/// Commands look before they open, as opening brings a ledger to this version's schema.
#[tokio::test]
async fn a_ledger_of_an_older_program_is_found_out_and_not_changed() {
    let database = TestDatabase::new().await;
    let find = || Database::find(database.url(), PATIENCE);
    assert_eq!(find().await.unwrap(), Found::Nothing);
    assert_eq!(find().await.unwrap(), Found::Nothing, "looking makes none");
    drop(database.open().await);
    assert_eq!(find().await.unwrap(), Found::Ledger);
    let forget = "DELETE FROM _sqlx_migrations WHERE version IN \
                  (SELECT version FROM _sqlx_migrations ORDER BY version DESC LIMIT 2)";
    database.tamper(forget).await;
    for _ in 0..2 {
        assert_eq!(find().await.unwrap(), Found::Older(2));
    }
}

/// The steps after the first one are taken with the rows in the ledger.
#[tokio::test]
async fn a_ledger_takes_the_steps_that_it_lacks() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let ann = user(&db, "ann").await;
    let renamed = db
        .change_user("ann", UserChange::name("bea"), by("operator"))
        .await;
    renamed.unwrap();
    db.close().await;
    let mut connection = database.connect().await;
    let undo = "DROP INDEX audits_awaited;
        ALTER TABLE audits DROP COLUMN awaited;
        DROP INDEX operator_log_of_user;
        ALTER TABLE operator_log DROP COLUMN user_id;
        ALTER TABLE audits RENAME COLUMN sampling_key TO luck;
        ALTER TABLE tokens DROP COLUMN used_at;
        ALTER TABLE workers DROP COLUMN run_id;
        DROP INDEX games_of_eco;
        DROP INDEX games_of_opening;
        DROP INDEX games_unnamed;
        DROP INDEX audits_failed_of_user;
        DROP INDEX matches_newest;
        DROP INDEX matches_of_purpose;
        DROP INDEX tokens_of_auditors;
        DROP INDEX matches_of_candidate;
        DROP INDEX matches_of_opponent;
        DROP INDEX games_of_chunk;
        ALTER TABLE games DROP COLUMN eco;
        ALTER TABLE games DROP COLUMN opening;
        ALTER TABLE runs DROP COLUMN book;
        DELETE FROM _sqlx_migrations WHERE version > 100";
    sqlx::raw_sql(undo).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let db = database.open().await;
    // By the number that the step has read out of the sentence, the name of before is forgotten, too.
    db.delete_user("bea", by("operator")).await.unwrap();
    let log = db.operator_log(LogFilter::newest(100)).await.unwrap();
    let deleted = format!("deleted-{}", ann.0);
    let renaming = log.iter().find(|act| act.action == "rename-user").unwrap();
    assert_eq!(
        (&renaming.subject, &*renaming.detail),
        (&deleted, &*format!("user {}", ann.0))
    );
    db.close().await;
}

#[tokio::test]
async fn every_ledger_has_an_identifier_of_its_own_and_keeps_it() {
    let (one, other) = (TestDatabase::new().await, TestDatabase::new().await);
    let id = one.open().await.ledger_id().await.unwrap();
    assert_eq!(one.open().await.ledger_id().await.unwrap(), id);
    assert_ne!(other.open().await.ledger_id().await.unwrap(), id);
}

pub(super) async fn a_closed_store_says_so(db: SharedDatabase) {
    db.close().await;
    let closed = db
        .create_user(user_draft("x", &Token::generate().unwrap()), by("x"))
        .await;
    assert!(matches!(closed, Err(DbError::Closed)), "{closed:?}");
    db.close().await;
}
