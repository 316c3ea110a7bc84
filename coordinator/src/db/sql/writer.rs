//! The one writer: operations queue up and are committed in groups.
//!
//! ```text
//! operation ─┐                 BEGIN and the lock among writers; SAVEPOINT
//! operation ─┼─> queue ─> task   operation, RELEASE or ROLLBACK TO, SAVEPOINT   (each)
//! operation ─┘                 COMMIT, then every caller gets its answer
//! ```
//!
//! Here nobody waits for a lock, and one sync to disk serves all the operations that queued up
//! during the one before. The task has a thread to itself: everybody waits for it, and among the
//! tasks of all the requests it would hear the database's answers late.
//!
//! An operation that fails, or panics, undoes only itself. When the server goes away, the group in
//! hand is answered as failed for now (its commit may or may not have happened: callers try again,
//! and what was done is recognised), and the next one connects anew. So it is with a server that
//! does not answer in time (`deadlines`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sqlx::{AnyConnection, Connection as _};
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use crate::db::error::{DbError, Result};
use crate::db::sql::connect::Connector;
use crate::db::sql::deadlines::{Deadlines, within};
use crate::db::sql::dialect::Dialect;
use crate::panics::caught;

/// Operations that one transaction holds at most.
const GROUP: usize = 64;
/// Operations that may wait; further callers wait for room.
const QUEUE: usize = 1024;
/// How long a group waits for a server that went away, before its callers are told.
const RECONNECT: Duration = Duration::from_secs(3);

const NEXT: &str = "RELEASE SAVEPOINT operation; SAVEPOINT operation";
const UNDO: &str = "ROLLBACK TO SAVEPOINT operation";
const COMMIT: &str = "RELEASE SAVEPOINT operation; COMMIT";

/// A future of an operation, bound to the writer's connection.
pub(crate) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'c>>;

/// Comes when the writer has ended; an error says that it ended badly.
pub(crate) type Ended = oneshot::Receiver<()>;

/// The writer's stub.
#[derive(Clone)]
pub(crate) struct Writer {
    operations: mpsc::Sender<Box<dyn Operation>>,
    /// Whether the last group was not committed.
    failing: Arc<AtomicBool>,
}

impl Writer {
    /// Starts the writer, with a connection of its own. It stops when the last stub is gone, which
    /// the second part waits for.
    pub(crate) async fn start(
        database: Connector,
        patience: Duration,
    ) -> std::result::Result<(Self, Ended), sqlx::Error> {
        let (operations, receiver) = mpsc::channel(QUEUE);
        let (opening, opened) = oneshot::channel();
        let (ending, ended) = oneshot::channel();
        let failing = Arc::<AtomicBool>::default();
        let writer = Self {
            operations,
            failing: failing.clone(),
        };
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // A connection belongs to the runtime that it was made on.
        let task = async move {
            let connection = match database.connect_patiently(patience).await {
                Ok(connection) => connection,
                // Whoever started it may have gone away.
                Err(error) => return drop(opening.send(Err(error))),
            };
            if opening.send(Ok(())).is_err() {
                return;
            }
            let session = Session {
                database,
                connection: Some(connection),
            };
            write(session, receiver, failing).await;
            let _ = ending.send(());
        };
        thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || runtime.block_on(task))?;
        opened.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?;
        Ok((writer, ended))
    }

    /// Whether nothing could be written when it was last tried.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Queues an operation and waits until it is durable.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = Queued {
            work: Some(work),
            outcome: None,
            reply,
        };
        self.operations
            .send(Box::new(queued))
            .await
            .map_err(|_| DbError::Closed)?;
        answer.await.map_err(|_| DbError::Closed)?
    }
}

/// What is to be done with an operation's changes.
enum Applied {
    Keep,
    Undo,
    /// The database failed under it: the group is lost.
    Lost(String),
}

trait Operation: Send {
    /// Does the operation and remembers its outcome.
    fn apply<'a>(
        &'a mut self,
        connection: &'a mut AnyConnection,
    ) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>>;
    /// Tells the caller, after the transaction was committed or not.
    fn finish(self: Box<Self>, committed: &std::result::Result<(), Failure>);
}

/// Why a group was not committed.
#[derive(Clone)]
enum Failure {
    /// Nothing of it was done.
    NotBegun(Arc<str>),
    /// Perhaps it was done.
    Unknown(Arc<str>),
}

impl From<&Failure> for DbError {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::NotBegun(reason) => Self::Unavailable(reason.clone()),
            Failure::Unknown(reason) => Self::Commit(reason.clone()),
        }
    }
}

struct Queued<F, T> {
    work: Option<F>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Operation for Queued<F, T>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
{
    fn apply<'a>(
        &'a mut self,
        connection: &'a mut AnyConnection,
    ) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>> {
        Box::pin(async move {
            let Some(work) = self.work.take() else {
                return Applied::Undo;
            };
            // The task goes on: it has the operations of everybody else.
            let done = caught(async { work(connection).await }).await;
            let outcome = done.unwrap_or_else(|panic| Err(panic.into()));
            let applied = match &outcome {
                Ok(_) => Applied::Keep,
                Err(error) if error.is_temporary() => Applied::Lost(error.to_string()),
                Err(_) => Applied::Undo,
            };
            self.outcome = Some(outcome);
            applied
        })
    }

    fn finish(self: Box<Self>, committed: &std::result::Result<(), Failure>) {
        let answer = match committed {
            Ok(()) => self.outcome.unwrap_or(Err(DbError::Closed)),
            // A refusal may rest on what others of the group did, which was not done after all.
            Err(failure) => Err(failure.into()),
        };
        // The caller may have gone away; what is done is done.
        let _ = self.reply.send(answer);
    }
}

async fn write(
    mut session: Session,
    mut queue: mpsc::Receiver<Box<dyn Operation>>,
    failing: Arc<AtomicBool>,
) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.recv_many(&mut group, GROUP).await > 0 {
        let committed = session.commit(&mut group).await;
        failing.store(committed.is_err(), Ordering::Relaxed);
        if matches!(committed, Err(Failure::NotBegun(_))) {
            // Whoever has queued up meanwhile need not wait for another attempt. They are gathered
            // before anybody has an answer: who comes after one gets an attempt of its own.
            while let Ok(operation) = queue.try_recv() {
                group.push(operation);
            }
        }
        group
            .drain(..)
            .for_each(|operation| operation.finish(&committed));
    }
    if let Some(connection) = session.connection
        && let Err(error) = closed(connection, session.database.deadlines.begin).await
    {
        tracing::warn!(%error, "The database could not be closed in order.");
    }
}

async fn closed(
    connection: AnyConnection,
    limit: Duration,
) -> std::result::Result<(), sqlx::Error> {
    within(limit, connection.close()).await?
}

/// The writer's connection, while there is one.
struct Session {
    database: Connector,
    connection: Option<AnyConnection>,
}

impl Session {
    async fn commit(
        &mut self,
        group: &mut [Box<dyn Operation>],
    ) -> std::result::Result<(), Failure> {
        let mut connection = self.begin().await.map_err(|error| {
            tracing::error!(%error, operations = group.len(), "RK-0229: A transaction could not begin.");
            Failure::NotBegun(error.to_string().into())
        })?;
        let Deadlines { write, .. } = self.database.deadlines;
        match within(write, apply(&mut connection, group)).await {
            Ok(Ok(())) => {
                self.connection = Some(connection);
                Ok(())
            }
            Ok(Err(reason)) => {
                tracing::error!(%reason, operations = group.len(), "RK-0229: A transaction failed.");
                self.undo(connection).await;
                Err(Failure::Unknown(reason.into()))
            }
            Err(silence) => {
                tracing::error!(
                    %silence, operations = group.len(), "RK-0229: A transaction timed out and was abandoned."
                );
                Err(Failure::Unknown(silence.to_string().into()))
            }
        }
    }

    /// Undoes a transaction that failed. A connection to PostgreSQL is given up, and the server
    /// undoes what was done on it: after a failover this server may only read, and another one
    /// answers at its address.
    async fn undo(&mut self, mut connection: AnyConnection) {
        if self.database.dialect == Dialect::Postgres {
            return;
        }
        // One that cannot roll back is given up as well.
        if raw(&mut connection, "ROLLBACK").await.is_ok() {
            self.connection = Some(connection);
        }
    }

    /// Begins a transaction, on a new connection if the old one is gone.
    async fn begin(&mut self) -> std::result::Result<AnyConnection, sqlx::Error> {
        if let Some(mut connection) = self.connection.take() {
            match begin_on(&self.database, &mut connection).await {
                Ok(()) => return Ok(connection),
                Err(error) => {
                    tracing::warn!(%error, "RK-0238: The writer lost its connection, and reconnects.");
                }
            }
        }
        let mut connection = self.database.connect_patiently(RECONNECT).await?;
        begin_on(&self.database, &mut connection).await?;
        Ok(connection)
    }
}

async fn begin_on(
    database: &Connector,
    connection: &mut AnyConnection,
) -> std::result::Result<(), sqlx::Error> {
    let begin = raw(connection, database.dialect.begin());
    within(database.deadlines.begin, begin).await?
}

/// Does the operations of a group in a transaction that has begun, and commits it.
async fn apply(
    connection: &mut AnyConnection,
    group: &mut [Box<dyn Operation>],
) -> std::result::Result<(), String> {
    let told = |error: sqlx::Error| error.to_string();
    let last = group.len().saturating_sub(1);
    for (place, operation) in group.iter_mut().enumerate() {
        match operation.apply(connection).await {
            Applied::Keep if place < last => raw(connection, NEXT).await.map_err(told)?,
            Applied::Keep => {}
            Applied::Undo => raw(connection, UNDO).await.map_err(told)?,
            Applied::Lost(reason) => return Err(reason),
        }
    }
    raw(connection, COMMIT).await.map_err(told)
}

/// Statements without parameters and answers, in one round trip.
async fn raw(
    connection: &mut AnyConnection,
    sql: &'static str,
) -> std::result::Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A writer on an empty SQLite file, and the file's folder.
    pub(in crate::db::sql) async fn writer() -> (tempfile::TempDir, Writer) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        let database = Connector::new(&url).unwrap();
        let (writer, _) = Writer::start(database, Duration::ZERO).await.unwrap();
        (folder, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::writer;
    use super::*;

    fn taken() -> DbError {
        DbError::NameTaken("ann".to_owned())
    }

    fn lost() -> DbError {
        DbError::Unavailable("the server went away".into())
    }

    fn bug() -> DbError {
        panic!("a bug")
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_operation() {
        let (_folder, writer) = writer().await;
        let (first, second, third) = tokio::join!(
            writer.run(|_| Box::pin(async { Ok::<(), DbError>(()) })),
            writer.run(|_| Box::pin(async { Err::<(), _>(bug()) })),
            writer.run(|_| Box::pin(async { Ok::<(), DbError>(()) })),
        );
        first.unwrap();
        assert!(matches!(second, Err(DbError::Bug(_))), "{second:?}");
        third.unwrap();
    }

    #[tokio::test]
    async fn a_refusal_in_a_transaction_that_failed_is_none() {
        let (_folder, writer) = writer().await;
        // They queue up while the writer is busy, and make one group.
        let (beginning, begun) = oneshot::channel();
        let (ending, end) = oneshot::channel();
        let busy = writer.run(move |_| {
            Box::pin(async move {
                beginning.send(()).unwrap();
                end.await.unwrap();
                Ok::<(), DbError>(())
            })
        });
        let group = async {
            begun.await.unwrap();
            tokio::join!(
                writer.run(|_| Box::pin(async { Ok::<(), DbError>(()) })),
                writer.run(|_| Box::pin(async { Err::<(), _>(taken()) })),
                writer.run(|_| Box::pin(async { Err::<(), _>(lost()) })),
                async { ending.send(()).unwrap() },
            )
        };
        let (busy, (done, refused, failed, ())) = tokio::join!(busy, group);
        busy.unwrap();
        for answer in [done, refused, failed] {
            assert!(
                answer.as_ref().is_err_and(DbError::is_temporary),
                "{answer:?}"
            );
        }
        let refused = writer.run(|_| Box::pin(async { Err::<(), _>(taken()) }));
        let refused = refused.await;
        assert!(matches!(refused, Err(DbError::NameTaken(_))), "{refused:?}");
    }

    async fn insert(writer: &Writer, bytes: i64) {
        let inserted = writer.run(move |conn| {
            Box::pin(async move {
                sqlx::query("INSERT INTO t VALUES (zeroblob($1))")
                    .bind(bytes)
                    .execute(conn)
                    .await?;
                Ok::<(), DbError>(())
            })
        });
        inserted.await.unwrap();
    }

    #[tokio::test]
    async fn the_log_does_not_stay_as_long_as_a_slow_reader_has_made_it() {
        let (folder, writer) = writer().await;
        let file = folder.path().join("ledger.db");
        let log = || std::fs::metadata(file.with_extension("db-wal")).unwrap();
        let url = format!("sqlite:{}", file.display());
        let mut reader = sqlx::SqliteConnection::connect(&url).await.unwrap();
        let begin = "CREATE TABLE t (x); BEGIN; SELECT count(*) FROM t";
        sqlx::raw_sql(begin).execute(&mut reader).await.unwrap();
        insert(&writer, 20 << 20).await;
        assert!(log().len() > 20 << 20, "{:?}", log());
        reader.close().await.unwrap();
        // The log is copied into the file, and then begun again.
        for _ in 0..3 {
            insert(&writer, 1).await;
        }
        assert!(log().len() <= 16 << 20, "{:?}", log());
    }
}
