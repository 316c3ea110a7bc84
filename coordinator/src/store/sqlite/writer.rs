//! The one writer: operations queue up and are committed in groups.
//!
//! ```text
//! operation ─┐                 BEGIN IMMEDIATE
//! operation ─┼─> queue ─> task   SAVEPOINT, operation, RELEASE or ROLLBACK TO   (each)
//! operation ─┘                 COMMIT, then every caller gets its answer
//! ```
//!
//! SQLite has one writer anyway; here nobody waits for a lock, and one fsync serves all the
//! operations that queued up during the one before. An operation that fails undoes only itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot};

use crate::store::error::{Result, StoreError};

/// Operations that one transaction holds at most.
const GROUP: usize = 64;
/// Operations that may wait; further callers wait for room.
const QUEUE: usize = 1024;

/// A future of an operation, bound to the writer's connection.
pub(super) type Work<'c, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'c>>;

/// The writer's stub.
#[derive(Clone)]
pub(super) struct Writer(mpsc::Sender<Box<dyn Operation>>);

impl Writer {
    /// Starts the writer on its connection. It stops when the last stub is gone.
    pub(super) fn start(connection: SqliteConnection) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self(sender), tokio::spawn(write(connection, receiver)))
    }

    /// Queues an operation and waits until it is durable.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> Work<'c, T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = Queued {
            work: Some(work),
            outcome: None,
            reply,
        };
        self.0
            .send(Box::new(queued))
            .await
            .map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

/// Whether an operation is to be kept.
enum Applied {
    Keep,
    Undo,
}

trait Operation: Send {
    /// Does the operation and remembers its outcome.
    fn apply<'a>(
        &'a mut self,
        connection: &'a mut SqliteConnection,
    ) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>>;
    /// Tells the caller, after the transaction was committed or not.
    fn finish(self: Box<Self>, committed: &std::result::Result<(), Arc<str>>);
}

struct Queued<F, T> {
    work: Option<F>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Operation for Queued<F, T>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> Work<'c, T> + Send + 'static,
{
    fn apply<'a>(
        &'a mut self,
        connection: &'a mut SqliteConnection,
    ) -> Pin<Box<dyn Future<Output = Applied> + Send + 'a>> {
        Box::pin(async move {
            let Some(work) = self.work.take() else {
                return Applied::Undo;
            };
            let outcome = work(connection).await;
            let applied = if outcome.is_ok() {
                Applied::Keep
            } else {
                Applied::Undo
            };
            self.outcome = Some(outcome);
            applied
        })
    }

    fn finish(self: Box<Self>, committed: &std::result::Result<(), Arc<str>>) {
        let answer = match (self.outcome, committed) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) => Err(error),
            (_, Err(reason)) => Err(StoreError::Commit(reason.clone())),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // The caller may have gone away; what is done is done.
        let _ = self.reply.send(answer);
    }
}

async fn write(mut connection: SqliteConnection, mut queue: mpsc::Receiver<Box<dyn Operation>>) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.recv_many(&mut group, GROUP).await > 0 {
        let committed = commit(&mut connection, &mut group)
            .await
            .map_err(|error| error.to_string().into());
        if let Err(reason) = &committed {
            tracing::error!(%reason, operations = group.len(), "A transaction failed.");
            // There may be no transaction to roll back; either way none is left.
            let _ = sqlx::query("ROLLBACK").execute(&mut connection).await;
        }
        group
            .drain(..)
            .for_each(|operation| operation.finish(&committed));
    }
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "The database could not be closed in order.");
    }
}

async fn commit(
    connection: &mut SqliteConnection,
    group: &mut [Box<dyn Operation>],
) -> std::result::Result<(), sqlx::Error> {
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut *connection)
        .await?;
    for operation in group {
        sqlx::query("SAVEPOINT operation")
            .execute(&mut *connection)
            .await?;
        if matches!(operation.apply(connection).await, Applied::Undo) {
            sqlx::query("ROLLBACK TO operation")
                .execute(&mut *connection)
                .await?;
        }
        sqlx::query("RELEASE operation")
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query("COMMIT").execute(&mut *connection).await?;
    Ok(())
}
