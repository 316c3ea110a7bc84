//! How long the database may take, before the coordinator gives a connection up.
//!
//! PostgreSQL ends statements and lock waits by itself (`dialect`), if it is alive and the way to it
//! is open. Where it hangs, or the network swallows what is sent, nothing comes back at all: then
//! these limits end the wait, the connection is closed without a word, and callers are told to try
//! again. An SQLite file is on this machine and has none of that.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool};

use crate::db::error::{DbError, Result};
use crate::db::sql::dialect::Dialect;

/// How long an attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How long parts of the database's work may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// An attempt to connect.
    pub connect: Duration,
    /// A reading operation.
    pub read: Duration,
    /// A statement of one, after which the server ends it by itself.
    pub statement: Duration,
    /// The beginning of a transaction, its turn among other writers included.
    pub begin: Duration,
    /// A group of writing operations: holding a large contributor's chunks takes a while.
    pub write: Duration,
    /// Recomputing a whole ledger.
    pub check: Duration,
}

impl Deadlines {
    /// A little more than what the server itself allows.
    const POSTGRES: Self = Self {
        connect: CONNECT,
        read: Duration::from_secs(75),
        statement: Duration::from_secs(60),
        begin: Duration::from_secs(45),
        write: Duration::from_secs(300),
        check: Duration::from_secs(6 * 3600),
    };
    /// None but for opening the file.
    const SQLITE: Self = Self {
        connect: CONNECT,
        read: Duration::MAX,
        statement: Duration::MAX,
        begin: Duration::MAX,
        write: Duration::MAX,
        check: Duration::MAX,
    };

    /// The limits of a database program.
    pub(crate) const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Postgres => Self::POSTGRES,
            Dialect::Sqlite => Self::SQLITE,
        }
    }
}

/// The database did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("it did not answer within {} s", .0.as_secs_f64())]
pub(crate) struct Silence(Duration);

impl From<Silence> for DbError {
    fn from(silence: Silence) -> Self {
        Self::Unavailable(silence.to_string().into())
    }
}

impl From<Silence> for sqlx::Error {
    fn from(silence: Silence) -> Self {
        Self::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, silence))
    }
}

/// Waits for what the database does, as long as the limit allows.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> std::result::Result<T, Silence> {
    let done = tokio::time::timeout(limit, work).await;
    done.map_err(|_| Silence(limit))
}

/// A pool's connection for one operation. One that is not given back, because its operation took
/// too long or nobody waits for it any more, is closed: the pool would ask it whether it is well,
/// and a server that hangs answers that as little.
pub(crate) struct Lent(Option<PoolConnection<Any>>);

impl Lent {
    /// Takes a connection out of the pool.
    pub(crate) async fn from(pool: &AnyPool) -> Result<Self> {
        match pool.acquire().await {
            Ok(connection) => Ok(Self(Some(connection))),
            Err(sqlx::Error::PoolClosed) => Err(DbError::Closed),
            Err(other) => Err(other.into()),
        }
    }

    pub(crate) fn connection(&mut self) -> Result<&mut AnyConnection> {
        match &mut self.0 {
            Some(connection) => Ok(&mut *connection),
            None => Err(DbError::Closed),
        }
    }

    /// Lets the pool have it back.
    pub(crate) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}
