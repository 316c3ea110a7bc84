//! Requests of one kind, many at a time.
//!
//! ```text
//! request ─┐
//! request ─┼─> queue ─> task: one operation for all of them ─> an answer for each
//! request ─┘
//! ```
//!
//! Those that come while a batch is being served make the next one. So statements are paid for by
//! the batch, which is what counts where each of them is a way to a server and back. Who would wait
//! too long is not let in ([`Load`]).

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::AnyConnection;
use tokio::sync::{mpsc, oneshot};

use crate::db::error::{DbError, Result};
use crate::db::sql::load::{Load, MOST, QueueTicket};
use crate::db::sql::writer::{Work, Writer};

/// Requests that may wait; further callers wait for room.
const QUEUE: usize = 4096;

/// What becomes of a batch: an answer for each request, in their order.
pub(crate) type Served<A> = BoxFuture<'static, Result<Vec<Result<A>>>>;

type Waiting<Q, A> = (Q, (oneshot::Sender<Result<A>>, QueueTicket));

/// The stub of the task that collects requests.
pub(crate) struct Collector<Q, A> {
    queue: mpsc::Sender<Waiting<Q, A>>,
    load: Arc<Load>,
}

impl<Q, A> Clone for Collector<Q, A> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            load: self.load.clone(),
        }
    }
}

impl<Q, A> Collector<Q, A>
where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
{
    /// Starts the task, in which `serve` has a batch at a time. It ends when the last stub is gone.
    pub(crate) fn start(serve: impl Fn(Arc<[Q]>) -> Served<A> + Send + Sync + 'static) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let load = Arc::<Load>::default();
        tokio::spawn(collect(serve, receiver, load.clone()));
        Self { queue, load }
    }

    /// The same where each batch is an operation of the writer: an answer comes when it is durable. What `write`
    /// refuses to one request must have changed nothing; if it fails as a whole, nothing of it is done.
    pub(crate) fn to<F>(writer: Writer, write: F) -> Self
    where
        F: for<'c> Fn(&'c mut AnyConnection, Arc<[Q]>) -> Work<'c, Vec<Result<A>>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self::start(move |requests| {
            let (writer, write) = (writer.clone(), write.clone());
            Box::pin(async move { writer.run(move |conn| write(conn, requests)).await })
        })
    }

    pub(crate) async fn ask(&self, request: Q) -> Result<A> {
        let place = self.load.join()?;
        let (reply, answer) = oneshot::channel();
        let sent = self.queue.send((request, (reply, place))).await;
        sent.map_err(|_| DbError::Closed)?;
        answer.await.map_err(|_| DbError::Closed)?
    }
}

async fn collect<Q, A>(
    serve: impl Fn(Arc<[Q]>) -> Served<A> + Send + Sync,
    mut queue: mpsc::Receiver<Waiting<Q, A>>,
    load: Arc<Load>,
) where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
{
    let mut waiting = Vec::with_capacity(MOST);
    while queue.recv_many(&mut waiting, MOST).await > 0 {
        let (requests, replies): (Vec<_>, Vec<_>) = waiting.drain(..).unzip();
        load.begin(requests.len());
        let answers = serve_all(&serve, requests.into()).await;
        load.end();
        // Callers may have gone away; what is done is done.
        replies
            .into_iter()
            .zip(answers)
            .for_each(|((reply, _place), answer)| {
                let _ = reply.send(answer);
            });
    }
}

/// Serves a batch, and one that fails request by request: one that cannot be served does not take
/// the others with it.
async fn serve_all<Q, A>(
    serve: &(impl Fn(Arc<[Q]>) -> Served<A> + Sync),
    requests: Arc<[Q]>,
) -> Vec<Result<A>>
where
    Q: Clone + Send + Sync + 'static,
    A: Send + 'static,
{
    match serve(requests.clone()).await {
        Ok(answers) => answers,
        Err(error) if error.is_temporary() => {
            let reason: Arc<str> = error.to_string().into();
            let unavailable = || Err(DbError::Unavailable(reason.clone()));
            requests.iter().map(|_| unavailable()).collect()
        }
        Err(error) if requests.len() == 1 => vec![Err(error)],
        Err(error) => {
            tracing::warn!(%error, requests = requests.len(), "A batch failed; its requests are served one by one.");
            let mut answers = Vec::with_capacity(requests.len());
            for request in requests.iter() {
                let alone = serve(Arc::new([request.clone()])).await;
                answers.push(
                    alone.and_then(|mut answers| answers.pop().unwrap_or(Err(DbError::Closed))),
                );
            }
            answers
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;
    use crate::db::sql::writer::testing::writer;

    /// What the batches of this test wait for.
    static GATE: Semaphore = Semaphore::const_new(0);

    fn echo(_: &mut AnyConnection, requests: Arc<[usize]>) -> Work<'_, Vec<Result<usize>>> {
        Box::pin(async move {
            let _open = GATE.acquire().await;
            Ok(requests.iter().copied().map(Ok).collect())
        })
    }

    #[tokio::test]
    async fn who_comes_while_the_ledger_is_behind_is_sent_away_and_who_waits_is_served() {
        let (_folder, writer) = writer().await;
        let collector = Collector::to(writer, echo);
        // The ledger has served one in a second so far.
        collector
            .load
            .measured(MOST, Duration::from_secs(MOST as u64));
        let ask = |number| {
            let collector = collector.clone();
            tokio::spawn(async move { collector.ask(number).await })
        };
        let early: Vec<_> = (0..MOST).map(ask).collect();
        while collector.load.waiting() < MOST {
            tokio::task::yield_now().await;
        }
        let behind = collector.ask(MOST).await;
        let Err(DbError::Behind { wait }) = behind else {
            panic!("{behind:?}");
        };
        assert!((200..400).contains(&wait.as_secs()), "{wait:?}");
        GATE.add_permits(1);
        for (number, answer) in early.into_iter().enumerate() {
            assert_eq!(answer.await.unwrap().unwrap(), number);
        }
        assert_eq!(collector.ask(MOST).await.unwrap(), MOST);
    }
}
