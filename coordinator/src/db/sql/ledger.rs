//! The ledger's connections: what the methods of models and use cases read and write by.

use parking_lot::Mutex;
use sqlx::{AnyConnection, AnyPool};

use crate::db::error::{DbError, Result};
use crate::db::principals::Principals;
use crate::db::sql::deadlines::{Deadlines, within};
use crate::db::sql::writer::{Ended, Work, Writer};
use crate::telemetry::{self, LedgerUse};

/// The ledger in an SQL database. Each table and each transaction adds the methods that are its own.
pub struct Ledger {
    pub(crate) readers: Readers,
    writer: Mutex<Option<(Writer, Ended)>>,
    pub(crate) principals: Principals,
}

/// The connections that read, and how long they may take.
#[derive(Clone)]
pub(crate) struct Readers {
    pub(crate) pool: AnyPool,
    pub(crate) deadlines: Deadlines,
}

impl Readers {
    /// The same with more time, to recompute a whole ledger.
    pub(crate) fn for_checks(&self) -> Self {
        let mut readers = self.clone();
        readers.deadlines.read = readers.deadlines.check;
        readers
    }
}

impl Ledger {
    pub(crate) fn new(readers: Readers, writer: Writer, ended: Ended) -> Self {
        Self {
            readers,
            writer: Mutex::new(Some((writer, ended))),
            principals: Principals::default(),
        }
    }

    /// Queues an operation and waits until it is durable. Metrics name the part.
    pub(crate) async fn write<T, F>(&self, part: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        let writer = self.writer()?;
        telemetry::ledger(LedgerUse::Write, part, writer.run(work)).await
    }

    pub(crate) fn writer(&self) -> Result<Writer> {
        let writer = self.writer.lock();
        let stub = writer.as_ref().map(|(writer, _)| writer.clone());
        stub.ok_or(DbError::Closed)
    }

    /// Finishes what is queued and closes. Whoever has the writer's stub has given it back before.
    pub(crate) async fn close(&self) {
        let writer = self.writer.lock().take();
        if let Some((writer, ended)) = writer {
            drop(writer);
            if let Err(error) = ended.await {
                tracing::error!(%error, "The ledger's writer ended with an error.");
            }
        }
        let limit = self.readers.deadlines.begin;
        if let Err(silence) = within(limit, self.readers.pool.close()).await {
            tracing::warn!(%silence, "The database could not be closed in order.");
        }
    }
}

/// Lost connections that one read may meet: each connection of the pool once.
pub(crate) const LOST: usize = 9;

/// Reads: `read!(self, "part", |conn| work(conn))`. Metrics name the part. A connection that turns out to be
/// lost is thrown away and the work begins again on the next one, so it is no closure that takes what it needs; a
/// connection that takes too long is thrown away.
macro_rules! read {
    ($ledger:ident, $part:expr, |$conn:ident| $work:expr) => {
        $crate::db::sql::ledger::read!($ledger.readers, $part, |$conn| $work)
    };
    ($readers:expr, $part:expr, |$conn:ident| $work:expr) => {{
        let readers = &$readers;
        let read = async {
            let limit = readers.deadlines.read;
            let mut lost = 0;
            loop {
                let mut lent = $crate::db::sql::deadlines::Lent::from(&readers.pool).await?;
                let $conn = lent.connection()?;
                match $crate::db::sql::deadlines::within(limit, $work).await? {
                    Err($crate::db::DbError::Database(error))
                        if $crate::db::sql::is_temporary(&error)
                            && lost < $crate::db::sql::ledger::LOST =>
                    {
                        lost += 1;
                    }
                    answer => {
                        lent.give_back();
                        break answer;
                    }
                }
            }
        };
        $crate::telemetry::ledger($crate::telemetry::LedgerUse::Read, $part, read).await
    }};
}

/// Writes: `transact!(self, "part", |conn| work(conn).await)`, or a block in place of the call, which takes what it needs.
macro_rules! transact {
    ($ledger:ident, $part:expr, |$conn:ident| $work:expr) => {
        $ledger
            .write($part, move |$conn| Box::pin(async move { $work }))
            .await
    };
}

/// The same for what changes whose tokens are good: principals are read anew afterwards, also if it fails.
macro_rules! transact_principals {
    ($ledger:ident, $part:expr, |$conn:ident| $work:expr) => {{
        let done = $crate::db::sql::ledger::transact!($ledger, $part, |$conn| $work);
        $ledger.principals.invalidate();
        done
    }};
}

pub(crate) use {read, transact, transact_principals};
