//! The stub through which the program speaks to the spool, and the messages that it sends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{Backend, Job};
use tokio::sync::{Notify, oneshot};

use super::{OpenJob, PendingChunk, SpoolError};

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, SpoolError>>;

/// What the actor is asked.
pub(super) enum Message {
    Begin {
        job: Box<Job>,
        backend: Backend,
        reply: Reply<Arc<Job>>,
    },
    Game {
        job: JobId,
        game: Box<GameRecord>,
    },
    HasRoom {
        reply: Reply<bool>,
    },
    OpenJobs {
        reply: Reply<Vec<OpenJob>>,
    },
    Cut {
        job: JobId,
        reply: Reply<()>,
    },
    Close {
        job: JobId,
        reply: Reply<u32>,
    },
    NextPending {
        reply: Reply<Option<PendingChunk>>,
    },
    Defer {
        hash: ContentHash,
    },
    Accept {
        job: JobId,
        hash: ContentHash,
        reply: Reply<()>,
    },
    Refuse {
        job: JobId,
        hash: ContentHash,
        why: String,
        reply: Reply<PathBuf>,
    },
    Postpone {
        job: JobId,
        reply: Reply<PathBuf>,
    },
    UnsentOf {
        job: JobId,
        reply: Reply<usize>,
    },
    End {
        reply: Reply<Remains>,
    },
}

/// What the program leaves behind when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Remains {
    /// Games on disk that the coordinator has not answered for.
    pub kept: usize,
    /// Finished games that could not be written.
    pub lost: usize,
}

/// A handle on the spool; cheap to clone.
#[derive(Debug, Clone)]
pub struct SpoolHandle {
    messages: mpsc::Sender<Message>,
    signals: Signals,
}

/// What actor and handles see without a message.
#[derive(Debug, Clone, Default)]
pub(super) struct Signals {
    /// Finished games cannot be written at present.
    pub(super) stuck: Arc<AtomicBool>,
    /// There may be a chunk to be sent.
    pub(super) ready: Arc<Notify>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

/// The spool's thread is gone, which only happens when the program ends.
fn gone<T>() -> Result<T, SpoolError> {
    Err(SpoolError::Entry("the spool is closed".into()))
}

impl SpoolHandle {
    pub(super) const fn new(messages: mpsc::Sender<Message>, signals: Signals) -> Self {
        Self { messages, signals }
    }

    async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, SpoolError> {
        let (reply, answer) = oneshot::channel();
        if self.messages.send(message(reply)).is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    /// Keeps a finished game. Returns at once; [`SpoolEvent::Kept`](super::actor::SpoolEvent::Kept) tells when it
    /// is on disk.
    pub fn keep(&self, job: JobId, game: Box<GameRecord>) {
        // The thread lives as long as this handle.
        drop(self.messages.send(Message::Game { job, game }));
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
        self.ask(|reply| Message::HasRoom { reply }).await
    }

    /// Jobs that are not closed.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn open_jobs(&self) -> Result<Vec<OpenJob>, SpoolError> {
        self.ask(|reply| Message::OpenJobs { reply }).await
    }

    /// Begins a job.
    ///
    /// # Errors
    ///
    /// As [`Spool::begin`](super::Spool::begin).
    pub async fn begin(&self, job: Box<Job>, backend: Backend) -> Result<Arc<Job>, SpoolError> {
        self.ask(|reply| Message::Begin {
            job,
            backend,
            reply,
        })
        .await
    }

    /// Puts a job's finished games into chunks, to be uploaded.
    ///
    /// # Errors
    ///
    /// As [`Spool::cut`](super::Spool::cut).
    pub async fn cut(&self, job: JobId) -> Result<(), SpoolError> {
        self.ask(|reply| Message::Cut { job, reply }).await
    }

    /// Notes that no more games of a job will be played, and has the rest uploaded. Gives the
    /// number of the job's games that have not ended.
    ///
    /// # Errors
    ///
    /// As [`Spool::close`](super::Spool::close).
    pub async fn close(&self, job: JobId) -> Result<u32, SpoolError> {
        self.ask(|reply| Message::Close { job, reply }).await
    }

    /// The next chunk to be sent.
    ///
    /// # Errors
    ///
    /// As [`Spool::next_pending`](super::Spool::next_pending).
    pub async fn next_pending(&self) -> Result<Option<PendingChunk>, SpoolError> {
        self.ask(|reply| Message::NextPending { reply }).await
    }

    /// Has all other chunks sent before this one, which did not go through.
    pub fn defer(&self, hash: ContentHash) {
        // The thread lives as long as this handle.
        drop(self.messages.send(Message::Defer { hash }));
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
        self.ask(|reply| Message::Accept { job, hash, reply }).await
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
        self.ask(|reply| Message::Refuse {
            job,
            hash,
            why,
            reply,
        })
        .await
    }

    /// Lets a job's chunks wait for the next start, and gives the folder where they lie.
    ///
    /// # Errors
    ///
    /// As [`Spool::postpone`](super::Spool::postpone).
    pub async fn postpone(&self, job: JobId) -> Result<PathBuf, SpoolError> {
        self.ask(|reply| Message::Postpone { job, reply }).await
    }

    /// Games of a job that the coordinator has not answered for.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn unsent_of(&self, job: JobId) -> Result<usize, SpoolError> {
        self.ask(|reply| Message::UnsentOf { job, reply }).await
    }

    /// Waits until everything that was handed in has been written, or cannot be, and tells what
    /// remains.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn end(&self) -> Result<Remains, SpoolError> {
        self.ask(|reply| Message::End { reply }).await
    }
}
