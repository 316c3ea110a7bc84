//! What differs between the databases. Everything else is SQL that both understand: numbered
//! parameters, integers of 64 bits, truth as 0 or 1, and no functions that only one has.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use rookery_common::text::without_secrets;
use sqlx::any::AnyConnectOptions;
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Any, AnyConnection, ConnectOptions as _, Connection as _, Transaction};

use crate::db::error::{DbError, Result};

/// The first step of the schema. Those with lower numbers were of builds before 0.1.0.
pub(crate) const FIRST_STEP: i64 = 100;

/// The steps of the schema that builds before 0.1.0 had in the end; PostgreSQL's had no step 4.
const LEGACY_STEPS: [i64; 33] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31, 50, 51,
];

static SQLITE_SCHEMA: Migrator = sqlx_macros::migrate!("./migrations/sqlite");
static POSTGRES_SCHEMA: Migrator = sqlx_macros::migrate!("./migrations/postgres");

/// SQLite: a connection waits 30 s for another process's lock; the file is in WAL mode, so that
/// readers never wait for the writer; every commit is synced. What savepoints keep stays in memory,
/// as do 64 MiB of pages, and the log is copied into the file when it has 16 MiB. While somebody reads
/// for long it cannot be and grows, as during a backup; afterwards it is cut to that again.
const SQLITE_WRITER: &str = "PRAGMA busy_timeout = 30000; PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = 16777216";
const SQLITE_READER: &str = "PRAGMA busy_timeout = 30000; PRAGMA query_only = ON";

/// PostgreSQL: a replica that is cut off in the middle of a group loses its lock after half a
/// minute, and the others wait as long for it before they answer that they cannot write. Notices are
/// not for operators: every start would tell that the table of migrations is there already. All that
/// write share a lock as long as they are connected, so that it is known whether anyone is. (The
/// number is `RookeryL` in ASCII.)
const POSTGRES_WRITER: &str =
    "SET lock_timeout = '2s'; SELECT pg_advisory_lock_shared(5940088940579158348);
    SET client_min_messages = warning; SET idle_in_transaction_session_timeout = '30s';
    SET lock_timeout = '30s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3; SET synchronous_commit = on; SET timezone = 'UTC'";
const POSTGRES_READER: &str = "SET default_transaction_read_only = on;
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

/// SQLite, alone: who has the file open holds a lock on it, so the exclusive one is had only when
/// nobody else has it open, and then nobody else can. The one transaction is kept in a journal: what is
/// new to the file need not be in it, where the log of WAL mode would have all that is written.
const SQLITE_ALONE: &str = "PRAGMA busy_timeout = 1000; PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
    PRAGMA cache_size = -65536";
const SQLITE_BEGIN_ALONE: &str = "BEGIN EXCLUSIVE";

/// PostgreSQL, alone: the lock that all writers share, and their turn, which those of older versions
/// take as well. It is had before the transaction begins, which sees the moment of its first
/// statement. Rows come after those that they refer to, so that nothing need be checked at the end.
const POSTGRES_ALONE: &str =
    "SET lock_timeout = '2s'; SELECT pg_advisory_lock(5940088940579158348);
    SELECT pg_advisory_lock(23203472424137337); SET lock_timeout = 0; SET statement_timeout = 0;
    SET idle_in_transaction_session_timeout = 0; SET client_min_messages = warning;
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
    SET synchronous_commit = on; SET timezone = 'UTC'";
const POSTGRES_BEGIN_ALONE: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SET CONSTRAINTS ALL IMMEDIATE";

/// All columns of all tables: table, name, type, and place in the primary key.
const SQLITE_COLUMNS: &str =
    "SELECT t.name, c.name, lower(c.type), CASE WHEN c.pk > 0 THEN c.pk END
    FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'";
const POSTGRES_COLUMNS: &str = "SELECT CAST(t.relname AS TEXT), CAST(a.attname AS TEXT),
      format_type(a.atttypid, NULL),
      CAST(array_position(CAST(i.indkey AS int2[]), a.attnum) AS BIGINT)
    FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
    LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary
    WHERE t.relkind = 'r' AND t.relnamespace = to_regnamespace(CAST(current_schema() AS TEXT))
      AND a.attnum > 0 AND NOT a.attisdropped";

/// A group of operations begins. On SQLite it takes the file's only write lock; on PostgreSQL an
/// advisory lock of the database has the same meaning among all replicas and commands: groups
/// follow each other, so that each sees all that was decided before it and the ledger's
/// sequence is the order of commits. (The number is `Rookery` in ASCII.)
const SQLITE_BEGIN: &str = "BEGIN IMMEDIATE; SAVEPOINT operation";
const POSTGRES_BEGIN: &str =
    "BEGIN; SELECT pg_advisory_xact_lock(23203472424137337); SAVEPOINT operation";

/// Codes of PostgreSQL that say nothing about the operation: connection failures, too many
/// connections, shutdown and start-up, a lock that was not got, a conflict of transactions, a server
/// that only reads, because another one writes by now or its disk is nearly full, a full disk, and
/// one that fails.
const POSTGRES_TEMPORARY: [&str; 11] = [
    "53300", "57P01", "57P02", "57P03", "55P03", "40001", "40P01", "25P03", "25006", "53100",
    "58030",
];

/// Codes of SQLite that say as little: busy, locked, read-only, an error of the disk, a full one.
const SQLITE_TEMPORARY: [u32; 5] = [5, 6, 8, 10, 13];

/// A database program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(crate) fn of(url: &str) -> Result<Self> {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Ok(Self::Sqlite),
            Some("postgres" | "postgresql") => Ok(Self::Postgres),
            _ => Err(DbError::Address(
                "it begins with neither sqlite: nor postgres://".to_owned(),
            )),
        }
    }

    pub(crate) fn of_connection(connection: &AnyConnection) -> Self {
        match connection.backend_name() {
            "PostgreSQL" => Self::Postgres,
            _ => Self::Sqlite,
        }
    }

    /// How to connect to the database at `url`. The folder of an SQLite file is created.
    pub(crate) fn options(self, url: &str) -> Result<AnyConnectOptions> {
        let options = match self {
            Self::Sqlite => AnyConnectOptions::from_str(&sqlite_url(url)?)?,
            Self::Postgres => AnyConnectOptions::from_str(url)
                .map_err(|error| DbError::Address(error.to_string()))?,
        };
        Ok(options.disable_statement_logging())
    }

    const fn choose(self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// Statements with which a writer's session begins.
    pub(crate) const fn writer_session(self) -> &'static str {
        self.choose(SQLITE_WRITER, POSTGRES_WRITER)
    }

    /// Statements with which the session of one that is alone begins.
    pub(crate) const fn session_alone(self) -> &'static str {
        self.choose(SQLITE_ALONE, POSTGRES_ALONE)
    }

    /// Statements with which its transaction begins.
    pub(crate) const fn begin_alone(self) -> &'static str {
        self.choose(SQLITE_BEGIN_ALONE, POSTGRES_BEGIN_ALONE)
    }

    /// The question for all columns of all tables: table, name, type, and place in the primary key.
    pub(crate) const fn columns(self) -> &'static str {
        self.choose(SQLITE_COLUMNS, POSTGRES_COLUMNS)
    }

    /// Statements with which a reader's session begins, so that none of its statements takes longer.
    pub(crate) fn reader_session(self, longest: Duration) -> String {
        match self {
            Self::Sqlite => SQLITE_READER.to_owned(),
            Self::Postgres => {
                let longest = longest.as_millis();
                format!("{POSTGRES_READER}; SET statement_timeout = {longest}")
            }
        }
    }

    /// Statements with which a group of operations begins.
    pub(crate) const fn begin(self) -> &'static str {
        self.choose(SQLITE_BEGIN, POSTGRES_BEGIN)
    }

    /// Asks for the name of the table in which sqlx notes the steps of the schema that were taken; nothing if there is none.
    pub(crate) const fn steps_table(self) -> &'static str {
        self.choose(
            "SELECT name FROM sqlite_master WHERE name = '_sqlx_migrations'",
            "SELECT CAST(to_regclass('_sqlx_migrations') AS TEXT)",
        )
    }

    /// The steps of the schema that the last builds before 0.1.0 have taken.
    pub(crate) fn legacy_steps(self) -> impl Iterator<Item = i64> {
        let has_step_4 = self == Self::Sqlite;
        LEGACY_STEPS
            .into_iter()
            .filter(move |step| has_step_4 || *step != 4)
    }

    pub(crate) fn schema(self) -> &'static Migrator {
        match self {
            Self::Sqlite => &SQLITE_SCHEMA,
            Self::Postgres => &POSTGRES_SCHEMA,
        }
    }
}

/// Whether the URL names a file, and not a database in memory, which would be gone with its connection.
fn names_file(url: &str) -> bool {
    let rest = url.trim_start_matches("sqlite:").trim_start_matches("//");
    let (name, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    !matches!(name, "" | ":memory:") && !parameters.contains("mode=memory")
}

/// Creates the folder of the file that the URL names, and lets the file be created.
fn sqlite_url(url: &str) -> Result<String> {
    if !names_file(url) {
        let detail = "it names no file, and a ledger is one: write sqlite:PATH";
        return Err(DbError::Address(detail.to_owned()));
    }
    let file = SqliteConnectOptions::from_str(url)?;
    let folder = file.get_filename().parent();
    if let Some(folder) = folder.filter(|folder| *folder != Path::new("")) {
        std::fs::create_dir_all(folder).map_err(|error| {
            let folder = folder.display();
            DbError::Address(format!(
                "the folder {folder} cannot be made: {error}; let this user write there, or give another --data-dir \
                 (or --database)"
            ))
        })?;
    }
    let url = url.replace('#', "%23");
    Ok(match url.split_once('?') {
        Some((_, parameters)) if parameters.contains("mode=") => url,
        Some(_) => format!("{url}&mode=rwc"),
        None => format!("{url}?mode=rwc"),
    })
}

/// Whether a failure says nothing about the operation: the database was not reached, or it was
/// lost, or it asks to try again.
pub fn is_temporary(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| match code.parse::<u32>() {
                Ok(number) if code.len() < 5 => SQLITE_TEMPORARY.contains(&(number & 0xff)),
                _ => code.starts_with("08") || POSTGRES_TEMPORARY.contains(&code.as_ref()),
            })
        }
        _ => false,
    }
}

/// Begins a transaction that reads and sees one moment, and whose statements take as long as they
/// need.
pub(crate) async fn begin_snapshot(
    connection: &mut AnyConnection,
) -> std::result::Result<Transaction<'_, Any>, sqlx::Error> {
    if Dialect::of_connection(connection) == Dialect::Sqlite {
        return connection.begin_with("BEGIN").await;
    }
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    let mut moment = connection.begin_with(begin).await?;
    sqlx::raw_sql("SET LOCAL statement_timeout = 0")
        .execute(&mut *moment)
        .await?;
    Ok(moment)
}

/// A URL as it may be shown and logged: without the password.
pub fn shown(url: &str) -> String {
    // `name:password@host` is an address as well, of the scheme `name`.
    let known = Dialect::of(url).ok();
    let Some(options) = known.and_then(|_| AnyConnectOptions::from_str(url).ok()) else {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_owned());
        return scheme.unwrap_or_else(|| without_secrets(url));
    };
    let mut shown = options.database_url;
    if shown.password().is_some() && shown.set_password(Some("***")).is_err() {
        return shown.scheme().to_owned();
    }
    match shown.query() {
        Some(query) if query.contains("password") => shown.set_query(None),
        _ => {}
    }
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(
            shown("postgres://rookery:secret@db/rookery"),
            "postgres://rookery:***@db/rookery"
        );
        assert!(!shown("postgres://db/rookery?user=a&password=secret").contains("secret"));
        assert!(!shown("postgres://a:secret@:x/y").contains("secret"));
        assert_eq!(shown("a:secret@x/y"), "***@x/y");
        assert_eq!(shown("sqlite:data/ledger.db"), "sqlite:data/ledger.db");
    }

    #[test]
    fn the_scheme_names_the_database() {
        assert_eq!(Dialect::of("postgresql://x/y").unwrap(), Dialect::Postgres);
        assert_eq!(Dialect::of("sqlite:x").unwrap(), Dialect::Sqlite);
        assert!(matches!(Dialect::of("oracle:x"), Err(DbError::Address(_))));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let url = format!("sqlite:{}/data/ledger.db", file.display());
        let error = Dialect::Sqlite.options(&url).unwrap_err().to_string();
        let named = format!("the folder {}/data cannot be made", file.display());
        assert!(error.contains(&named), "{error}");
        assert!(error.contains("--data-dir"), "{error}");
    }

    #[test]
    fn a_ledger_that_nobody_could_read_again_is_refused() {
        for url in [
            "sqlite:",
            "sqlite://",
            "sqlite::memory:",
            "sqlite:x?mode=memory",
        ] {
            let refused = Dialect::Sqlite.options(url).err();
            assert!(matches!(refused, Some(DbError::Address(_))), "{url}");
        }
        assert!(Dialect::Sqlite.options("sqlite:x.db?mode=ro").is_ok());
    }
}
