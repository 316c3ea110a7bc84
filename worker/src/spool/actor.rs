//! The spool on a thread of its own, spoken to by messages.
//!
//! A game that cannot be written, because the disk is full or broken, waits in memory and is tried
//! again; meanwhile [`SpoolHandle::is_stuck`] tells the players to pause, so that memory does not
//! fill up too.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use rookery_common::chunk::GameRecord;
use rookery_common::ids::JobId;

use super::handle::{Message, Remains, Reply, Signals, SpoolHandle};
use super::{Spool, SpoolError};

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
    let signals = Signals::default();
    let handle = SpoolHandle::new(messages, signals.clone());
    let actor = Actor {
        spool,
        events,
        signals,
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
    signals: Signals,
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
                Err(mpsc::RecvTimeoutError::Timeout) => self.try_to_write(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
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
                    self.try_to_write();
                }
            }
            Message::Cut { job, reply } => {
                let cut = self.spool.cut(job);
                self.signals.ready.notify_one();
                answer(reply, cut);
            }
            Message::Close { job, reply } => {
                // Games that wait would find no job any more.
                let closed = self.write_games().and_then(|()| self.spool.close(job));
                self.signals.ready.notify_one();
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
            Message::End { reply } => {
                self.try_to_write();
                let (kept, lost) = (self.spool.unsent(), self.unwritten.len());
                answer(reply, Ok(Remains { kept, lost }));
            }
        }
    }

    /// Writes the games that wait. Those that cannot be written wait on.
    fn try_to_write(&mut self) {
        if let Err(error) = self.write_games() {
            let waiting = self.unwritten.len();
            let seconds = RETRY.as_secs();
            tracing::error!(
                "{error}; playing pauses, {waiting} finished games wait in memory, next try in {seconds} s"
            );
        }
    }

    /// Writes the games that wait, until one cannot be written.
    fn write_games(&mut self) -> Result<(), SpoolError> {
        while let Some((job, game)) = self.unwritten.front() {
            let job = *job;
            match self.spool.record(job, game) {
                Ok(missing) => (self.events)(SpoolEvent::Kept { job, missing }),
                Err(error @ SpoolError::File { .. }) => {
                    self.signals.stuck.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                Err(error) => (self.events)(SpoolEvent::Unusable { job, error }),
            }
            self.unwritten.pop_front();
        }
        if self.signals.stuck.swap(false, Ordering::Relaxed) {
            tracing::info!("finished games can be written again; playing goes on");
        }
        Ok(())
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, SpoolError>) {
    // Whoever asked may have gone; then nobody waits for the answer.
    drop(reply.send(result));
}
