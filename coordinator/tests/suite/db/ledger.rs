//! The ledger itself: whose it is, and when it is not to be used.

use std::time::Duration;

use rookery_coordinator::db::sql::{Database, Found};
use rookery_coordinator::db::{DbError, SharedDatabase};
use rookery_coordinator::tokens::Token;
use sqlx::Connection as _;

use super::user_draft;
use crate::support::database::TestDatabase;
use crate::support::noon;

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_left_alone() {
    let database = TestDatabase::new().await;
    drop(database.open().await);
    let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let later = "INSERT INTO _sqlx_migrations \
                 SELECT 9999, description, installed_on, success, checksum, execution_time \
                 FROM _sqlx_migrations LIMIT 1";
    sqlx::raw_sql(later).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let error = Database::open(database.url(), Duration::from_secs(20))
        .await
        .err();
    assert!(matches!(error, Some(DbError::Newer(9999))), "{error:?}");
}

/// Commands look before they open, as opening brings a ledger to this version's schema.
#[tokio::test]
async fn a_ledger_of_an_older_program_is_found_out_and_not_changed() {
    let database = TestDatabase::new().await;
    let find = || Database::find(database.url(), Duration::from_secs(20));
    assert_eq!(find().await.unwrap(), Found::Nothing);
    assert_eq!(find().await.unwrap(), Found::Nothing, "looking makes none");
    drop(database.open().await);
    assert_eq!(find().await.unwrap(), Found::Ledger);
    let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let forget = "DELETE FROM _sqlx_migrations WHERE version IN \
                  (SELECT version FROM _sqlx_migrations ORDER BY version DESC LIMIT 2)";
    sqlx::raw_sql(forget)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    for _ in 0..2 {
        assert_eq!(find().await.unwrap(), Found::Older(2));
    }
}

/// Earlier versions wrote into a sentence for people which network an operator had rejected, and between which ones
/// best had moved.
#[tokio::test]
async fn the_networks_in_an_older_operator_log_become_columns() {
    let database = TestDatabase::new().await;
    database.open().await.close().await;
    let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let older = "ALTER TABLE operator_log DROP COLUMN network;
        ALTER TABLE operator_log DROP COLUMN from_network;
        ALTER TABLE operator_log RENAME TO audit;
        DELETE FROM _sqlx_migrations WHERE version = 51;
        INSERT INTO audit (at, actor, action, subject, detail) VALUES
          (1, 'ann', 'reject-network', 'main', 'network 12: lost 3: 0'),
          (2, 'ann', 'roll-back', 'main', 'best from network 27 to network 5, not to network 3'),
          (3, 'ann', 'reject-network', 'main', 'network x: nonsense'),
          (4, 'ann', 'block-user', 'bob', 'network 12: spam');";
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    database.open().await.close().await;
    let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let networks: Vec<(Option<i64>, Option<i64>)> =
        sqlx::query_as("SELECT network, from_network FROM operator_log ORDER BY id")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    let none = (None, None);
    let expected = [(Some(12), None), (Some(5), Some(27)), none, none];
    assert_eq!(networks, expected);
    connection.close().await.unwrap();
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
        .create_user(user_draft("x", &Token::generate().unwrap()), "x", noon())
        .await;
    assert!(matches!(closed, Err(DbError::Closed)), "{closed:?}");
    db.close().await;
}
