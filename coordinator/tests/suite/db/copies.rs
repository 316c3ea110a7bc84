//! A ledger in another database: all of it, or nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use rookery_common::ids::UserId;
use rookery_coordinator::db::Database;
use rookery_coordinator::db::copy::{self, Alone, Progress, Schema};
use rookery_coordinator::db::sql::Deadlines;
use rookery_coordinator::db::{Checked, DbError, LogFilter, Moved};
use rookery_coordinator::tokens::Token;
use rookery_tests::programs::PATIENCE;
use sqlx::any::{AnyRow, AnyTypeInfoKind};
use sqlx::{AnyConnection, AssertSqlSafe, Column as _, Connection as _, Row as _, ValueRef as _};
use tokio::sync::mpsc;

use super::{user, user_draft};
use crate::support::app::run;
use crate::support::database::TestDatabase;
use crate::support::matches::contested;
use crate::support::{by, noon};

/// Rows of most tables, and of those that take several batches.
const FEW: i64 = 3;
const MANY: i64 = 1_100;
/// Tables whose keys are numbers, bytes, texts, and several columns.
const LARGE: [&str; 5] = ["games", "jobs", "metrics", "networks", "workers"];

/// Tables of the databases, and what a ledger says of its copy.
const NOT_COPIED: [&str; 3] = ["_sqlx_migrations", "sqlite_sequence", "moved"];

struct Column {
    name: String,
    kind: String,
    may_be_missing: bool,
    is_key: bool,
    refers: bool,
    /// Those that a CHECK lets in; any if there are none.
    words: Vec<String>,
}

impl Column {
    /// A value as SQL writes it; `row` counts from 1. Keys are other in every row, and references lead to one of
    /// the first rows of another table.
    fn value(&self, table: &str, row: i64) -> String {
        let number = if self.refers {
            (row - 1) % FEW + 1
        } else {
            row
        };
        let is_free = !self.is_key && !self.refers;
        if self.may_be_missing && row == 1 {
            return "NULL".to_owned();
        }
        match &*self.kind {
            "integer" if is_free && row == 2 => i64::MAX.to_string(),
            "integer" if is_free => format!("{}", -row * 0x1_0000_0001 - self.name.len() as i64),
            "integer" => number.to_string(),
            "real" => ["0.1", "-1.5e-300", "12345.678e200"][(row % 3) as usize].to_owned(),
            "text" if !self.words.is_empty() => {
                let word = row as usize % self.words.len();
                self.words[word].clone()
            }
            "text" => format!("'{table}.{} {row} '' \" \\ \n {{\"é\": \"♞\"}}'", self.name),
            "blob" => format!("x'00ff{number:016x}0001'"),
            other => panic!("{table}.{} is {other:?}", self.name),
        }
    }
}

pub(super) async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

/// The columns of every table of an SQLite ledger.
async fn columns(connection: &mut AnyConnection) -> BTreeMap<String, Vec<Column>> {
    let rows: Vec<(String, String, String, String, i64, i64, i64)> = sqlx::query_as(
        "SELECT t.name, t.sql, c.name, lower(c.type), c.\"notnull\", c.pk,
           EXISTS (SELECT 1 FROM pragma_foreign_key_list(t.name) f WHERE f.\"from\" = c.name)
         FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'
           AND t.name NOT IN ('_sqlx_migrations', 'sqlite_sequence', 'moved')",
    )
    .fetch_all(connection)
    .await
    .unwrap();
    let mut tables: BTreeMap<String, Vec<Column>> = BTreeMap::new();
    for (table, sql, name, kind, not_null, key, refers) in rows {
        let checked = sql.split_once(&format!("CHECK ({name} IN ("));
        let list = checked.and_then(|(_, rest)| rest.split_once("))"));
        let words = list.map(|(list, _)| list.split(',').map(|word| word.trim().to_owned()));
        tables.entry(table).or_default().push(Column {
            name,
            kind,
            may_be_missing: not_null == 0 && key == 0,
            is_key: key != 0,
            refers: refers != 0,
            words: words.into_iter().flatten().collect(),
        });
    }
    tables
}

/// A ledger in SQLite with rows in every table, whatever tables and columns the schema has.
async fn full() -> TestDatabase {
    let database = TestDatabase::sqlite();
    database.open().await.close().await;
    let mut connection = connect(database.url()).await;
    let tables = columns(&mut connection).await;
    let mut sql = "PRAGMA foreign_keys = OFF; BEGIN;\n".to_owned();
    for (table, columns) in tables.iter().filter(|(table, _)| *table != "ledger_id") {
        let is_large = LARGE.contains(&table.as_str());
        let rows = if is_large { MANY } else { FEW };
        for row in 1..=rows {
            let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            let values: Vec<String> = columns.iter().map(|c| c.value(table, row)).collect();
            let (names, values) = (names.join(", "), values.join(", "));
            sql.push_str(&format!(
                "INSERT INTO {table} ({names}) VALUES ({values});\n"
            ));
        }
    }
    sql.push_str("COMMIT");
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    database
}

/// A value and what it is.
fn shown(row: &AnyRow, place: usize) -> String {
    let kind = row.try_get_raw(place).unwrap().type_info().kind();
    match kind {
        AnyTypeInfoKind::Null => "missing".to_owned(),
        AnyTypeInfoKind::Double => format!("real {:x}", row.get::<f64, _>(place).to_bits()),
        AnyTypeInfoKind::Text => format!("text {}", row.get::<String, _>(place)),
        AnyTypeInfoKind::Blob => format!("bytes {}", hex::encode(row.get::<Vec<u8>, _>(place))),
        _ => format!("integer {}", row.get::<i64, _>(place)),
    }
}

/// All rows of all tables, with the names of their columns, in one order for both database programs.
pub(super) async fn all_rows(url: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut connection = connect(url).await;
    let tables = match connection.backend_name() {
        "PostgreSQL" => {
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema()"
        }
        _ => "SELECT name FROM sqlite_master WHERE type = 'table'",
    };
    let names: Vec<String> = sqlx::query_scalar(tables)
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut tables = BTreeMap::new();
    for name in names {
        if NOT_COPIED.contains(&name.as_str()) {
            continue;
        }
        let sql = AssertSqlSafe(format!("SELECT * FROM {name}"));
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.unwrap();
        let named = |row: &AnyRow| {
            let columns = row.columns().iter();
            let values = columns.map(|column| {
                let value = shown(row, column.ordinal());
                format!("{}: {value}", column.name())
            });
            let mut values: Vec<String> = values.collect();
            values.sort_unstable();
            values
        };
        let mut rows: Vec<_> = rows.iter().map(named).collect();
        rows.sort_unstable();
        tables.insert(name, rows);
    }
    connection.close().await.unwrap();
    tables
}

async fn assert_same(one: &str, other: &str) {
    let (one, other) = (all_rows(one).await, all_rows(other).await);
    assert!(one.keys().eq(other.keys()));
    for (table, rows) in one {
        assert!(rows == other[&table], "the rows of {table} differ");
    }
}

pub(super) async fn copied(from: &TestDatabase, to: &TestDatabase) {
    let source = Alone::open(from.url(), PATIENCE).await.unwrap();
    let target = Alone::open_empty(to.url(), PATIENCE, source.schema());
    let target = target.await.unwrap();
    copy::copy(source, target, &moved(), &mut |_: Progress| {})
        .await
        .unwrap();
}

/// What tests say of where a ledger goes on.
fn moved() -> Moved {
    Moved {
        to: "sqlite:elsewhere.db".to_owned(),
        at: noon(),
    }
}

#[tokio::test]
async fn everything_is_copied_there_and_back() {
    let first = full().await;
    let (there, back) = (TestDatabase::new().await, TestDatabase::sqlite());
    copied(&first, &there).await;
    copied(&there, &back).await;
    assert_same(first.url(), there.url()).await;
    assert_same(first.url(), back.url()).await;
    let rows = all_rows(back.url()).await;
    let empty: Vec<_> = rows.iter().filter(|(_, rows)| rows.is_empty()).collect();
    assert!(empty.is_empty(), "the test has nothing in {empty:?}");
    // Who comes next gets the next number, and so does what the operator log says of it.
    for database in [there, back] {
        let db = database.open().await;
        assert_eq!(user(&db, "next").await, UserId(FEW + 1));
        db.close().await;
    }
}

#[tokio::test]
async fn a_copy_goes_on_where_its_original_ended() {
    let app = contested().await;
    let id = app.app.db.ledger_id().await.unwrap();
    app.app.db.close().await;
    let (there, back) = (TestDatabase::sqlite(), TestDatabase::new().await);
    copied(&app.database, &there).await;
    copied(&there, &back).await;
    let copy = back.open().await;
    assert_eq!(copy.check(&run()).await.unwrap(), Checked::default());
    assert_eq!(copy.ledger_id().await.unwrap(), id);
    let info = copy.run(&run()).await.unwrap();
    assert_eq!((info.networks, info.games), (2, 3));
    user(&copy, "carol").await;
}

#[tokio::test]
async fn a_ledger_knows_where_it_goes_on_and_its_copy_does_not() {
    let (first, there, back) = (
        TestDatabase::new().await,
        TestDatabase::sqlite(),
        TestDatabase::new().await,
    );
    first.open().await.close().await;
    copied(&first, &there).await;
    let refused = Alone::open(first.url(), PATIENCE).await.err();
    let refused = refused.unwrap().to_string();
    for told in ["sqlite:elsewhere.db", "`ledger reopen`"] {
        assert!(refused.contains(told), "{refused}");
    }
    copied(&there, &back).await;
    for (database, to) in [
        (&first, Some(moved())),
        (&there, Some(moved())),
        (&back, None),
    ] {
        let db = database.open().await;
        assert_eq!(db.moved().await.unwrap(), to);
        db.close().await;
    }
    let db = first.open().await;
    let reopen = async || db.reopen(by("test")).await.unwrap();
    assert_eq!(reopen().await, Some(moved()));
    assert_eq!(reopen().await, None);
    assert_eq!(db.moved().await.unwrap(), None);
    let acts = db.operator_log(LogFilter::newest(10)).await.unwrap();
    let acts: Vec<_> = acts
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject))
        .collect();
    assert_eq!(acts, [("test", "reopen-ledger", "sqlite:elsewhere.db")]);
    db.close().await;
    // Into an empty ledger that has moved comes one that has not.
    copied(&first, &there).await;
    let db = there.open().await;
    assert_eq!(db.moved().await.unwrap(), None);
    db.close().await;
}

#[tokio::test]
async fn a_copy_replaces_nothing() {
    let (source, target) = (full().await, TestDatabase::new().await);
    let db = target.open().await;
    user(&db, "ann").await;
    db.close().await;
    let before = all_rows(target.url()).await;
    let refused = Alone::open_empty(target.url(), PATIENCE, Schema::Today);
    let refused = refused.await.err();
    let Some(DbError::Conflict(detail)) = &refused else {
        panic!("{refused:?}");
    };
    assert!(detail.contains("has rows"), "{detail}");
    assert!(before == all_rows(target.url()).await);
    // Nor does it bring rows into the schema of another version.
    let newer = TestDatabase::new().await;
    newer.open().await.close().await;
    let mut connection = connect(newer.url()).await;
    let later = "UPDATE _sqlx_migrations SET version = 9999
                 WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
    sqlx::raw_sql(later).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let refused = Alone::open_empty(newer.url(), PATIENCE, Schema::Today);
    let refused = refused.await.err();
    assert!(matches!(refused, Some(DbError::Newer(9999))), "{refused:?}");
    // What was refused is no hindrance elsewhere.
    copied(&source, &TestDatabase::new().await).await;
}

#[tokio::test]
async fn a_ledger_in_use_is_not_copied_and_one_that_is_copied_not_used() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let refused = Alone::open(database.url(), Duration::ZERO).await.err();
    let refused = refused.unwrap().to_string();
    assert!(refused.contains("stop every coordinator"), "{refused}");
    db.close().await;
    let alone = Alone::open(database.url(), PATIENCE).await.unwrap();
    let deadlines = Deadlines {
        connect: Duration::from_secs(5),
        read: PATIENCE,
        statement: PATIENCE,
        begin: PATIENCE,
        write: PATIENCE,
        check: PATIENCE,
    };
    let refused = Database::open_within(database.url(), Duration::ZERO, Some(deadlines)).await;
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("for itself"), "{refused}");
    drop(alone);
    let db = database.open().await;
    let draft = user_draft("ann", &Token::generate().unwrap());
    db.create_user(draft, by("ann")).await.unwrap();
    db.close().await;
}

#[tokio::test]
async fn an_interrupted_copy_leaves_nothing_behind() {
    let (source, target) = (full().await, TestDatabase::new().await);
    let (told, mut half) = mpsc::unbounded_channel();
    let mut watch = move |progress: Progress| {
        // Half of the rows are there.
        if 4 * progress.done >= progress.all {
            told.send(progress).unwrap();
        }
    };
    let from = Alone::open(source.url(), PATIENCE).await.unwrap();
    let to = Alone::open_empty(target.url(), PATIENCE, from.schema());
    let to = to.await.unwrap();
    let moved = moved();
    tokio::select! {
        biased;
        progress = half.recv() => assert!(progress.unwrap().done > 0),
        done = copy::copy(from, to, &moved, &mut watch) => panic!("{done:?}"),
    }
    let db = target.open().await;
    assert!(db.runs().await.unwrap().is_empty());
    db.close().await;
    for (table, rows) in all_rows(target.url()).await {
        assert_eq!(rows.len(), usize::from(table == "ledger_id"), "{table}");
    }
    copied(&source, &target).await;
    assert_same(source.url(), target.url()).await;
}
