//! Connections: opened, given their session's settings, opened again when the server went away.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migrate as _, Migration};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::db::error::{DbError, Result};
use crate::db::sql::deadlines::{Deadlines, within};
use crate::db::sql::dialect::{Dialect, FIRST_STEP, is_temporary};
use rookery_common::files::{folder_of, sync_folder};

/// Connections that read.
const READERS: u32 = 8;
/// How long a request waits for a connection that reads.
const ACQUIRE: Duration = Duration::from_secs(10);
/// Pauses between attempts to connect: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Who may have the ledger open beside a connection that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// All that write in turns: coordinators and commands.
    Shared,
    /// Nobody: neither who has it open already nor who comes.
    Exclusive,
}

impl Access {
    /// What to do if that is not to be had.
    const fn advice(self) -> &'static str {
        match self {
            Self::Shared => {
                "another program has the ledger for itself, as `ledger copy` has; wait until that has ended"
            }
            Self::Exclusive => {
                "a coordinator or another command has the ledger open: stop every coordinator on it, and \
                 try again when nothing else uses it"
            }
        }
    }
}

/// A database and how to reach it.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) dialect: Dialect,
    pub(crate) deadlines: Deadlines,
    access: Access,
    options: AnyConnectOptions,
}

impl Connector {
    pub(crate) fn new(url: &str) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let dialect = Dialect::of(url)?;
        let options = dialect.options(url)?;
        let deadlines = Deadlines::of(dialect);
        Ok(Self {
            dialect,
            deadlines,
            access: Access::Shared,
            options,
        })
    }

    /// The same for one connection that nobody else may be beside.
    pub(crate) fn alone(url: &str) -> Result<Self> {
        Ok(Self {
            access: Access::Exclusive,
            ..Self::new(url)?
        })
    }

    /// A connection that writes.
    pub(crate) async fn connect(&self) -> std::result::Result<AnyConnection, sqlx::Error> {
        let connect = async {
            let mut connection = self.options.connect().await?;
            let session = match self.access {
                Access::Shared => self.dialect.writer_session(),
                Access::Exclusive => self.dialect.session_alone(),
            };
            sqlx::raw_sql(session).execute(&mut connection).await?;
            Ok(connection)
        };
        within(self.deadlines.connect, connect).await?
    }

    /// A connection that writes, waited for as long as `patience` lasts if the server does not
    /// answer yet; the log tells that it waits.
    pub(crate) async fn connect_patiently(
        &self,
        patience: Duration,
    ) -> std::result::Result<AnyConnection, sqlx::Error> {
        let begun = Instant::now();
        let mut pause = PAUSE;
        loop {
            match self.connect().await {
                Err(error) if is_temporary(&error) && begun.elapsed() + pause < patience => {
                    let left = patience.saturating_sub(begun.elapsed()).as_secs();
                    tracing::warn!(
                        %error, seconds_left = left,
                        "RK-0208: The database does not answer; the coordinator tries again."
                    );
                    tokio::time::sleep(pause).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                connected => return connected,
            }
        }
    }

    /// Connections that read, opened when they are needed.
    pub(crate) fn readers(&self) -> AnyPool {
        let session: Arc<str> = self.dialect.reader_session(self.deadlines.statement).into();
        AnyPoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE)
            // Asking each time costs a round trip; a lost connection is noticed when it is used.
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let session = sqlx::raw_sql(AssertSqlSafe(session.clone()));
                Box::pin(async move { session.execute(connection).await.map(drop) })
            })
            .connect_lazy_with(self.options.clone())
    }

    /// Writes a copy of an SQLite ledger to a new file: a moment of it, synced. The file has its name
    /// only once it is whole: half a copy, or none for which a full disk has kept the name, would pass
    /// for a backup.
    pub(crate) async fn back_up(&self, file: &Path) -> Result<()> {
        if self.dialect == Dialect::Postgres {
            let detail = "a ledger on PostgreSQL is backed up by pg_dump, or by the server's own \
                          means; the operator guide says how";
            return Err(DbError::Conflict(detail.to_owned()));
        }
        if file.exists() {
            let detail = format!("{} exists already", file.display());
            return Err(DbError::Conflict(detail));
        }
        let mut unfinished = file.as_os_str().to_owned();
        unfinished.push(".partial");
        let unfinished = PathBuf::from(unfinished);
        // One that was killed may have left it.
        let _ = fs::remove_file(&unfinished);
        let copied = self.copy_to(&unfinished).await;
        let done = copied.and_then(|()| Ok(name(&unfinished, file).map_err(sqlx::Error::Io)?));
        if done.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        done
    }

    async fn copy_to(&self, file: &Path) -> Result<()> {
        let mut connection = self.connect().await?;
        sqlx::query("VACUUM INTO $1")
            .bind(file.to_string_lossy().into_owned())
            .execute(&mut connection)
            .await?;
        Ok(connection.close().await?)
    }

    /// What to do about a server that cannot be used.
    pub(crate) fn explain(&self, error: sqlx::Error) -> DbError {
        let code = error
            .as_database_error()
            .and_then(sqlx::error::DatabaseError::code)
            .map(std::borrow::Cow::into_owned);
        let silent =
            matches!(&error, sqlx::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut);
        let advice = match (self.dialect, code.as_deref()) {
            // A file does not answer while another program holds it.
            (Dialect::Sqlite, None) if silent => self.access.advice(),
            (Dialect::Sqlite, Some("5")) | (Dialect::Postgres, Some("55P03")) => {
                self.access.advice()
            }
            (Dialect::Sqlite, Some("8" | "14")) => {
                "this user can't write the ledger's file or its folder: give the user the folder, or give another \
                 --data-dir (or --database)"
            }
            (Dialect::Sqlite, _) => return error.into(),
            (_, Some("28P01" | "28000")) => {
                "the server refuses the user or the password of the URL (or of PGPASSWORD)"
            }
            (_, Some("3D000")) => "create the database first, for example by `createdb`",
            (_, Some("42501")) => {
                "the user may not create tables; make it the owner of the database"
            }
            _ if is_temporary(&error) => {
                "check that the server runs, that host and port of the URL are right, and that \
                 the way there is open"
            }
            _ => return error.into(),
        };
        DbError::Unreachable {
            reason: error.to_string(),
            advice,
        }
    }
}

/// Gives a file that is whole its name; both survive a power cut.
fn name(unfinished: &Path, file: &Path) -> io::Result<()> {
    fs::File::open(unfinished)?.sync_all()?;
    fs::rename(unfinished, file)?;
    sync_folder(folder_of(file))
}

/// What is at an address where a ledger is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No ledger.
    Nothing,
    /// A ledger that this build's schema has so many steps beyond.
    Older(usize),
    /// A ledger of a build before 0.1.0, which `ledger copy` brings over.
    Legacy,
    /// A ledger of this build's schema, or of a newer one.
    Ledger,
}

/// The file of a ledger on SQLite; none of another program's.
pub fn ledger_file(url: &str) -> Result<Option<PathBuf>> {
    match Dialect::of(url)? {
        Dialect::Postgres => Ok(None),
        Dialect::Sqlite => {
            let file = SqliteConnectOptions::from_str(url)?;
            Ok(Some(file.get_filename().to_owned()))
        }
    }
}

/// What is at `url`. Looking makes and changes nothing.
pub(crate) async fn find(url: &str, patience: Duration) -> Result<Found> {
    let dialect = Dialect::of(url)?;
    if dialect == Dialect::Sqlite {
        let file = SqliteConnectOptions::from_str(url)?;
        if !file.get_filename().exists() {
            return Ok(Found::Nothing);
        }
    }
    let database = Connector::new(url)?;
    let connected = database.connect_patiently(patience).await;
    let mut connection = connected.map_err(|error| database.explain(error))?;
    let taken = steps(dialect, &mut connection).await?;
    connection.close().await?;
    Ok(match taken {
        None => Found::Nothing,
        Some(taken) if taken.iter().any(|step| *step < FIRST_STEP) => Found::Legacy,
        Some(taken) => {
            let is_ahead = |step: &&Migration| !taken.contains(&step.version);
            match dialect.schema().iter().filter(is_ahead).count() {
                0 => Found::Ledger,
                steps => Found::Older(steps),
            }
        }
    })
}

/// The steps of the schema that a database has taken, in their order; none if it has no ledger.
pub(crate) async fn steps(
    dialect: Dialect,
    connection: &mut AnyConnection,
) -> Result<Option<Vec<i64>>> {
    let table: Option<String> = sqlx::query_scalar(dialect.steps_table())
        .fetch_optional(&mut *connection)
        .await?
        .flatten();
    let Some(table) = table else {
        return Ok(None);
    };
    let taken = connection.list_applied_migrations(&table).await?;
    Ok(Some(taken.iter().map(|step| step.version).collect()))
}
