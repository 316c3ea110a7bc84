//! The stub through which the program speaks to the spool on its thread.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{Backend, Job};
use tokio::sync::oneshot;

use super::actor::{Actor, Order, Remains, Signals, SpoolEvent};
use super::{OpenJob, PendingChunk, Spool, SpoolError};

/// A handle on the spool; cheap to clone.
#[derive(Debug, Clone)]
pub struct SpoolHandle {
    orders: mpsc::Sender<Order>,
    signals: Signals,
}

/// The spool's thread is gone, which only happens when the program ends.
fn gone<T>() -> Result<T, SpoolError> {
    Err(SpoolError::Entry("the spool is closed".into()))
}

impl SpoolHandle {
    /// Starts the spool's thread, which ends with the last handle; `events` hears of every game.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start(
        spool: Spool,
        events: impl Fn(SpoolEvent) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let signals = Signals::default();
        let actor = Actor::new(spool, Box::new(events), signals.clone());
        std::thread::Builder::new()
            .name("spool".into())
            .spawn(move || actor.serve(&inbox))?;
        Ok(Self { orders, signals })
    }

    /// Has the spool's thread do this, and gives what it answers.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Actor) -> Result<T, SpoolError> + Send + 'static,
    ) -> Result<T, SpoolError> {
        let (reply, answer) = oneshot::channel();
        // Without a receiver the caller is gone.
        let order: Order = Box::new(move |actor| drop(reply.send(work(actor))));
        if self.orders.send(order).is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    /// Has the spool's thread do this.
    fn tell(&self, work: impl FnOnce(&mut Actor) + Send + 'static) {
        // The thread lives as long as this handle.
        drop(self.orders.send(Box::new(work)));
    }

    /// Keeps a finished game. Returns at once; [`SpoolEvent::Kept`] tells when it is on disk.
    pub fn keep(&self, job: JobId, game: Box<GameRecord>) {
        self.tell(move |actor| actor.keep(job, game));
    }

    /// Whether finished games cannot be written at present: then no more should be played.
    pub fn is_stuck(&self) -> bool {
        self.signals.stuck.load(Ordering::Relaxed)
    }

    /// Whether another job may be begun.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn has_room(&self) -> Result<bool, SpoolError> {
        self.ask(|actor| Ok(actor.spool.has_room())).await
    }

    /// Jobs that are not closed.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn open_jobs(&self) -> Result<Vec<OpenJob>, SpoolError> {
        self.ask(|actor| Ok(actor.spool.open_jobs())).await
    }

    /// Begins a job.
    ///
    /// # Errors
    ///
    /// As [`Spool::begin`](super::Spool::begin).
    pub async fn begin(&self, job: Job, backend: Backend) -> Result<Arc<Job>, SpoolError> {
        self.ask(move |actor| actor.spool.begin(job, backend)).await
    }

    /// Puts a job's finished games into chunks, to be uploaded.
    ///
    /// # Errors
    ///
    /// As [`Spool::cut`](super::Spool::cut).
    pub async fn cut(&self, job: JobId) -> Result<(), SpoolError> {
        self.ask(move |actor| actor.cut(job)).await
    }

    /// Notes that no more games of a job will be played, and has the rest uploaded. Gives the
    /// number of the job's games that have not ended.
    ///
    /// # Errors
    ///
    /// As [`Spool::close`](super::Spool::close).
    pub async fn close(&self, job: JobId) -> Result<u32, SpoolError> {
        self.ask(move |actor| actor.close(job)).await
    }

    /// The next chunk to be sent.
    ///
    /// # Errors
    ///
    /// As [`Spool::next_pending`](super::Spool::next_pending).
    pub async fn next_pending(&self) -> Result<Option<PendingChunk>, SpoolError> {
        self.ask(|actor| actor.spool.next_pending()).await
    }

    /// Has all other chunks sent before this one, which did not go through.
    pub fn defer(&self, hash: ContentHash) {
        self.tell(move |actor| actor.spool.defer(hash));
    }

    /// Waits until there may be a chunk to be sent.
    pub async fn ready(&self) {
        self.signals.ready.notified().await;
    }

    /// Notes that a chunk was counted.
    ///
    /// # Errors
    ///
    /// As [`Spool::accept`](super::Spool::accept).
    pub async fn accept(&self, job: JobId, hash: ContentHash) -> Result<(), SpoolError> {
        self.ask(move |actor| actor.spool.accept(job, hash)).await
    }

    /// Puts a refused chunk aside and gives its file.
    ///
    /// # Errors
    ///
    /// As [`Spool::refuse`](super::Spool::refuse).
    pub async fn refuse(
        &self,
        job: JobId,
        hash: ContentHash,
        why: String,
    ) -> Result<PathBuf, SpoolError> {
        self.ask(move |actor| actor.spool.refuse(job, hash, &why))
            .await
    }

    /// Lets a job's chunks wait for the next start, and gives the folder where they lie.
    ///
    /// # Errors
    ///
    /// As [`Spool::postpone`](super::Spool::postpone).
    pub async fn postpone(&self, job: JobId) -> Result<PathBuf, SpoolError> {
        self.ask(move |actor| actor.spool.postpone(job)).await
    }

    /// Games of a job that the coordinator has not answered for.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn unsent_of(&self, job: JobId) -> Result<usize, SpoolError> {
        self.ask(move |actor| Ok(actor.spool.unsent_of(job))).await
    }

    /// Waits until everything that was handed in has been written, or cannot be, and tells what
    /// remains.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn end(&self) -> Result<Remains, SpoolError> {
        self.ask(|actor| Ok(actor.end())).await
    }
}
