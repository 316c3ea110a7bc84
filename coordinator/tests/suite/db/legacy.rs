//! Ledgers of builds before 0.1.0: they are refused until `ledger copy` has brought them over.
//!
//! `tests/data` holds dumps of one that the last such build has made in SQLite, and copied into PostgreSQL: a run
//! with games, gates, a rollback, a quarantine, and users of whom one was renamed.

use std::collections::BTreeMap;
use std::path::Path;

use rookery_coordinator::db::copy::{Alone, Schema};
use rookery_coordinator::db::sql::Found;
use rookery_coordinator::db::{Database, DbError};
use rookery_tests::programs::PATIENCE;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use super::copies::{all_rows, connect, copied};
use crate::support::app::run;
use crate::support::database::TestDatabase;

async fn legacy() -> TestDatabase {
    sqlx::any::install_default_drivers();
    let database = TestDatabase::new().await;
    let mut url = database.url().to_owned();
    let dump: &[u8] = match url.strip_prefix("sqlite:") {
        Some(file) => {
            std::fs::create_dir_all(Path::new(file).parent().unwrap()).unwrap();
            url.push_str("?mode=rwc");
            include_bytes!("../../data/legacy-sqlite.sql.zst")
        }
        None => include_bytes!("../../data/legacy-postgres.sql.zst"),
    };
    let dump = String::from_utf8(zstd::decode_all(dump).unwrap()).unwrap();
    let mut connection = AnyConnection::connect(&url).await.unwrap();
    let restored = sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut connection);
    restored.await.unwrap();
    connection.close().await.unwrap();
    database
}

/// What the ledger's tables, columns, indexes and constraints are made by.
async fn schema(url: &str) -> Vec<(String, String)> {
    let mut connection = connect(url).await;
    let all = match connection.backend_name() {
        "PostgreSQL" => {
            "SELECT CAST(table_name || '.' || column_name AS TEXT),
               data_type || ' ' || is_nullable || ' ' || is_identity || coalesce(column_default, '')
             FROM information_schema.columns WHERE table_schema = current_schema()
             UNION ALL SELECT CAST(indexname AS TEXT), indexdef
             FROM pg_indexes WHERE schemaname = current_schema()
             UNION ALL SELECT CAST(CAST(conrelid AS regclass) AS TEXT) || ' ' || CAST(conname AS TEXT), pg_get_constraintdef(oid)
             FROM pg_constraint WHERE connamespace = to_regnamespace(CAST(current_schema() AS TEXT))
             ORDER BY 1, 2"
        }
        _ => "SELECT name, coalesce(sql, '') FROM sqlite_master ORDER BY 1, 2",
    };
    let all = sqlx::query_as(all)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    all
}

#[tokio::test]
async fn a_ledger_from_before_0_1_0_is_refused_and_left_as_it_is() {
    let old = legacy().await;
    let before = (schema(old.url()).await, all_rows(old.url()).await);
    assert_eq!(
        Database::find(old.url(), PATIENCE).await.unwrap(),
        Found::Legacy
    );
    let refused = Database::open(old.url(), PATIENCE).await.err().unwrap();
    assert!(matches!(refused, DbError::Legacy), "{refused:?}");
    assert!(
        refused.to_string().contains("`ledger copy --to URL`"),
        "{refused}"
    );
    assert!(before == (schema(old.url()).await, all_rows(old.url()).await));
}

#[tokio::test]
async fn a_ledger_from_before_0_1_0_is_brought_over_by_a_copy() {
    let (old, new, fresh) = (
        legacy().await,
        TestDatabase::new().await,
        TestDatabase::new().await,
    );
    copied(&old, &new).await;
    fresh.open().await.close().await;
    let db = new.open().await;
    let checked = db.check(&run()).await.unwrap();
    assert!(
        checked.discrepancies.is_empty(),
        "{:?}",
        checked.discrepancies
    );
    db.close().await;
    assert_eq!(schema(new.url()).await, schema(fresh.url()).await);
    let mut connection = connect(new.url()).await;
    let renamed = sqlx::query_scalar("SELECT id FROM users WHERE name = 'bert'");
    let renamed: i64 = renamed.fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let (before, mut after) = (all_rows(old.url()).await, all_rows(new.url()).await);
    // What the steps after the first one have made of the rows.
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for row in after.get_mut("operator_log").unwrap() {
        let of_user = row
            .iter()
            .position(|value| value.starts_with("user_id: "))
            .unwrap();
        *users.entry(row.remove(of_user)).or_default() += 1;
    }
    assert_eq!(
        users.remove(&format!("user_id: integer {renamed}")),
        Some(1)
    );
    assert_eq!(users.keys().collect::<Vec<_>>(), ["user_id: missing"]);
    for row in after.get_mut("audits").unwrap() {
        for value in row.iter_mut() {
            *value = value.replace("sampling_key: ", "luck: ");
        }
        row.sort_unstable();
    }
    for (table, columns) in [
        ("games", &["eco: ", "opening: "][..]),
        ("audits", &["awaited: "]),
        ("runs", &["book: "]),
        ("tokens", &["used_at: "]),
        ("workers", &["run_id: "]),
    ] {
        for row in after.get_mut(table).unwrap() {
            row.retain(|value| !columns.iter().any(|column| value.starts_with(column)));
        }
    }
    for rows in after.values_mut() {
        rows.sort_unstable();
    }
    assert!(before.keys().eq(after.keys()));
    for (table, rows) in before {
        assert!(rows == after[&table], "the rows of {table} differ");
    }
}

#[tokio::test]
async fn only_the_last_ledgers_from_before_0_1_0_are_copied_and_only_into_new_databases() {
    let (old, later) = (legacy().await, TestDatabase::new().await);
    later.open().await.close().await;
    let source = Alone::open(old.url(), PATIENCE).await.unwrap();
    let target = Alone::open_empty(later.url(), PATIENCE, source.schema())
        .await
        .unwrap();
    let moved = rookery_coordinator::db::Moved {
        to: later.url().to_owned(),
        at: crate::support::noon(),
    };
    let mut ignored = |_| {};
    let refused = rookery_coordinator::db::copy::copy(source, target, &moved, &mut ignored);
    let refused = refused.await.unwrap_err().to_string();
    assert!(refused.contains("into a new database"), "{refused}");
    let mut connection = connect(old.url()).await;
    let forget = "DELETE FROM _sqlx_migrations WHERE version = 51";
    sqlx::raw_sql(forget)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let refused = Alone::open(old.url(), PATIENCE).await.err().unwrap();
    assert!(
        refused.to_string().contains("that build's `migrate`"),
        "{refused}"
    );
    let kept = Alone::open_empty(old.url(), PATIENCE, Schema::Today)
        .await
        .err()
        .unwrap();
    assert!(kept.to_string().contains("has rows"), "{kept}");
}
