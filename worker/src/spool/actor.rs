//! The spool on a thread of its own, spoken to by messages.
//!
//! A game that cannot be written, because the disk is full or broken, waits in memory and is tried
//! again; meanwhile [`SpoolHandle::is_stuck`] tells the players to pause, so that memory does not
//! fill up too.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rookery_common::chunk::GameRecord;
use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::{Backend, Job};
use tokio::sync::{Notify, oneshot};

use super::{PendingChunk, Spool, SpoolError};

/// Between two attempts to write what could not be written.
const RETRY: Duration = Duration::from_secs(5);

/// What the spool tells the rest of the program.
#[derive(Debug)]
pub enum SpoolEvent {
    /// A game is on disk; so many of its job's have not ended.
    Kept {
        /// The job.
        job: JobId,
        /// Games that have not ended.
        missing: u32,
    },
    /// A finished game cannot be kept, whatever is tried.
    Unusable {
        /// The job.
        job: JobId,
        /// Why.
        error: SpoolError,
    },
}

type Reply<T> = oneshot::Sender<Result<T, SpoolError>>;

enum Message {
    Begin {
        job: Box<Job>,
        backend: Backend,
        reply: Reply<Arc<Job>>,
    },
    Game {
        job: JobId,
        game: Box<GameRecord>,
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
    Unsent {
        reply: Reply<usize>,
    },
    UnsentOf {
        job: JobId,
        reply: Reply<usize>,
    },
}

/// A handle on the spool; cheap to clone.
#[derive(Debug, Clone)]
pub struct SpoolHandle {
    messages: mpsc::Sender<Message>,
    stuck: Arc<AtomicBool>,
    ready: Arc<Notify>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

/// Starts the spool's thread. It ends when the last handle is gone; `events` hears of every game.
///
/// # Errors
///
/// If the system gives no thread.
pub fn start(
    spool: Spool,
    events: impl Fn(SpoolEvent) + Send + 'static,
) -> std::io::Result<SpoolHandle> {
    let (messages, inbox) = mpsc::channel();
    let stuck = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(Notify::new());
    let handle = SpoolHandle {
        messages,
        stuck: Arc::clone(&stuck),
        ready: Arc::clone(&ready),
    };
    let actor = Actor {
        spool,
        events,
        stuck,
        ready,
        unwritten: VecDeque::new(),
    };
    std::thread::Builder::new()
        .name("spool".into())
        .spawn(move || actor.serve(&inbox))?;
    Ok(handle)
}

struct Actor<F> {
    spool: Spool,
    events: F,
    stuck: Arc<AtomicBool>,
    ready: Arc<Notify>,
    /// Finished games that could not be written yet.
    unwritten: VecDeque<(JobId, Box<GameRecord>)>,
}

impl<F: Fn(SpoolEvent)> Actor<F> {
    fn serve(mut self, inbox: &mpsc::Receiver<Message>) {
        loop {
            let message = if self.unwritten.is_empty() {
                inbox.recv().map_err(mpsc::RecvTimeoutError::from)
            } else {
                inbox.recv_timeout(RETRY)
            };
            match message {
                Ok(message) => self.handle(message),
                Err(mpsc::RecvTimeoutError::Timeout) => self.write_games(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.end(),
            }
        }
    }

    fn end(&mut self) {
        self.write_games();
        if !self.unwritten.is_empty() {
            tracing::error!("{} finished games could not be kept", self.unwritten.len());
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Begin {
                job,
                backend,
                reply,
            } => {
                answer(reply, self.spool.begin(*job, backend));
            }
            Message::Game { job, game } => {
                self.unwritten.push_back((job, game));
                if self.unwritten.len() == 1 {
                    self.write_games();
                }
            }
            Message::Cut { job, reply } => {
                let cut = self.spool.cut(job);
                self.ready.notify_one();
                answer(reply, cut);
            }
            Message::Close { job, reply } => {
                self.write_games();
                let closed = self.spool.close(job);
                self.ready.notify_one();
                answer(reply, closed);
            }
            Message::NextPending { reply } => answer(reply, self.spool.next_pending()),
            Message::Accept { job, hash, reply } => answer(reply, self.spool.accept(job, hash)),
            Message::Refuse {
                job,
                hash,
                why,
                reply,
            } => {
                answer(reply, self.spool.refuse(job, hash, &why));
            }
            Message::UnsentOf { job, reply } => answer(reply, Ok(self.spool.unsent_of(job))),
            Message::Unsent { reply } => {
                answer(reply, Ok(self.spool.unsent() + self.unwritten.len()));
            }
        }
    }

    /// Writes the games that wait, until one cannot be written.
    fn write_games(&mut self) {
        while let Some((job, game)) = self.unwritten.front() {
            let job = *job;
            match self.spool.record(job, game) {
                Ok(missing) => (self.events)(SpoolEvent::Kept { job, missing }),
                Err(error @ SpoolError::File { .. }) => return self.note_trouble(&error),
                Err(error) => (self.events)(SpoolEvent::Unusable { job, error }),
            }
            self.unwritten.pop_front();
        }
        if self.stuck.swap(false, Ordering::Relaxed) {
            tracing::info!("finished games can be written again; playing goes on");
        }
    }

    fn note_trouble(&self, error: &SpoolError) {
        self.stuck.store(true, Ordering::Relaxed);
        let waiting = self.unwritten.len();
        let seconds = RETRY.as_secs();
        tracing::error!(
            "{error}; playing pauses, {waiting} finished games wait in memory, next try in {seconds} s"
        );
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, SpoolError>) {
    // Whoever asked may have gone; then nobody waits for the answer.
    drop(reply.send(result));
}

/// The spool's thread is gone, which only happens when the program ends.
fn gone<T>() -> Result<T, SpoolError> {
    Err(SpoolError::Entry("the spool is closed".into()))
}

impl SpoolHandle {
    async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, SpoolError> {
        let (reply, answer) = oneshot::channel();
        if self.messages.send(message(reply)).is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    /// Keeps a finished game. Returns at once; [`SpoolEvent::Kept`] tells when it is on disk.
    pub fn keep(&self, job: JobId, game: Box<GameRecord>) {
        // The thread lives as long as this handle.
        drop(self.messages.send(Message::Game { job, game }));
    }

    /// Whether finished games cannot be written at present: then no more should be played.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Begins a job.
    ///
    /// # Errors
    ///
    /// As [`Spool::begin`].
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
    /// As [`Spool::cut`].
    pub async fn cut(&self, job: JobId) -> Result<(), SpoolError> {
        self.ask(|reply| Message::Cut { job, reply }).await
    }

    /// Notes that no more games of a job will be played, and has the rest uploaded. Gives the
    /// number of the job's games that have not ended.
    ///
    /// # Errors
    ///
    /// As [`Spool::close`].
    pub async fn close(&self, job: JobId) -> Result<u32, SpoolError> {
        self.ask(|reply| Message::Close { job, reply }).await
    }

    /// The next chunk to be sent.
    ///
    /// # Errors
    ///
    /// As [`Spool::next_pending`].
    pub async fn next_pending(&self) -> Result<Option<PendingChunk>, SpoolError> {
        self.ask(|reply| Message::NextPending { reply }).await
    }

    /// Waits until there may be a chunk to be sent.
    pub async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Notes that a chunk was counted.
    ///
    /// # Errors
    ///
    /// As [`Spool::accept`].
    pub async fn accept(&self, job: JobId, hash: ContentHash) -> Result<(), SpoolError> {
        self.ask(|reply| Message::Accept { job, hash, reply }).await
    }

    /// Puts a refused chunk aside and gives its file.
    ///
    /// # Errors
    ///
    /// As [`Spool::refuse`].
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

    /// Games of a job that the coordinator has not answered for.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn unsent_of(&self, job: JobId) -> Result<usize, SpoolError> {
        self.ask(|reply| Message::UnsentOf { job, reply }).await
    }

    /// Games that the coordinator has not answered for.
    ///
    /// # Errors
    ///
    /// If the spool is closed.
    pub async fn unsent(&self) -> Result<usize, SpoolError> {
        self.ask(|reply| Message::Unsent { reply }).await
    }
}
