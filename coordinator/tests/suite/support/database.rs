//! A database of its own for each test, in the program that the test binary is for.

use std::sync::Arc;

use rookery_coordinator::db::Database;
use rookery_coordinator::db::SharedDatabase;
use rookery_tests::programs::PATIENCE;
use sqlx::{AnyConnection, Connection as _, PgConnection};

use super::postgres;

/// An empty database, removed with this.
pub(crate) struct TestDatabase {
    url: String,
    on_server: Option<String>,
    _folder: Option<tempfile::TempDir>,
}

impl TestDatabase {
    /// A new database: in PostgreSQL for the test binary `cloud`, else in SQLite.
    pub(crate) async fn new() -> Self {
        match env!("CARGO_CRATE_NAME") {
            "cloud" => Self::postgres().await,
            _ => Self::sqlite(),
        }
    }

    /// A new database in SQLite, whatever the test binary is for.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: format!("sqlite:{}", folder.path().join("deep/ledger.db").display()),
            on_server: None,
            _folder: Some(folder),
        }
    }

    async fn postgres() -> Self {
        let name = format!("t{}", uuid::Uuid::new_v4().simple());
        administer(&format!("CREATE DATABASE {name}")).await;
        Self {
            url: postgres::url(&name),
            on_server: Some(name),
            _folder: None,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A connection beside the ledger's.
    pub(crate) async fn connect(&self) -> AnyConnection {
        AnyConnection::connect(&self.url).await.unwrap()
    }

    /// Changes rows behind the ledger's back.
    pub(crate) async fn tamper(&self, change: &str) {
        let mut connection = self.connect().await;
        let change = sqlx::raw_sql(sqlx::AssertSqlSafe(change));
        change.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub(crate) async fn open(&self) -> SharedDatabase {
        Arc::new(Database::open(&self.url, PATIENCE).await.unwrap())
    }
}

/// Does something on PostgreSQL outside of any test's database.
async fn administer(sql: &str) {
    let mut server = PgConnection::connect(&postgres::url("postgres"))
        .await
        .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(&mut server)
        .await
        .unwrap();
    server.close().await.unwrap();
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(name) = &self.on_server else {
            return;
        };
        // A database that stays goes away with the server.
        let mut psql = rookery_tests::postgres::program("psql").unwrap();
        let _ = psql
            .arg("--quiet")
            .arg("--dbname")
            .arg(postgres::url("postgres"))
            .arg("--command")
            .arg(format!("DROP DATABASE {name} WITH (FORCE)"))
            .current_dir("/")
            .status();
    }
}
