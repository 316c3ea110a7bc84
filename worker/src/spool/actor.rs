//! The spool on a thread of its own, spoken to by messages.
//!
//! A game that cannot be written, because the disk is full or broken, waits in memory and is tried
//! again; meanwhile [`SpoolHandle::is_stuck`] tells the players to pause, so that memory does not
//! fill up too.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::JobId;
use rookery_common::text::quantity;

use super::handle::{Message, Remains, Reply, Signals, SpoolHandle};
use super::{Spool, SpoolError};

/// Between two attempts to write what could not be written.
const RETRY: Duration = Duration::from_secs(5);

/// What the spool tells the rest of the program.
#[derive(Debug)]
pub enum SpoolEvent {
    /// A game is on disk; the number of games of its job that have not ended.
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
        next_try: Instant::now(),
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
    /// When those are tried again.
    next_try: Instant,
}

impl<F: Fn(SpoolEvent)> Actor<F> {
    fn serve(mut self, inbox: &mpsc::Receiver<Message>) {
        loop {
            match self.next_message(inbox) {
                Ok(message) => self.handle(message),
                Err(mpsc::RecvTimeoutError::Timeout) => self.try_to_write(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The next message, or [`Timeout`](mpsc::RecvTimeoutError::Timeout) when it is time to try again,
    /// however many messages come.
    fn next_message(
        &self,
        inbox: &mpsc::Receiver<Message>,
    ) -> Result<Message, mpsc::RecvTimeoutError> {
        if self.unwritten.is_empty() {
            return inbox.recv().map_err(mpsc::RecvTimeoutError::from);
        }
        let pause = self.next_try.saturating_duration_since(Instant::now());
        if pause.is_zero() {
            return Err(mpsc::RecvTimeoutError::Timeout);
        }
        inbox.recv_timeout(pause)
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
            Message::HasRoom { reply } => answer(reply, Ok(self.spool.has_room())),
            Message::OpenJobs { reply } => answer(reply, Ok(self.spool.open_jobs())),
            Message::Cut { job, reply } => {
                // Writes what can be written now; the next try reports the rest.
                drop(self.write_games());
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
            Message::Defer { hash } => self.spool.defer(hash),
            Message::Accept { job, hash, reply } => answer(reply, self.spool.accept(job, hash)),
            Message::Refuse {
                job,
                hash,
                why,
                reply,
            } => {
                answer(reply, self.spool.refuse(job, hash, &why));
            }
            Message::Postpone { job, reply } => answer(reply, self.spool.postpone(job)),
            Message::UnsentOf { job, reply } => answer(reply, Ok(self.spool.unsent_of(job))),
            Message::End { reply } => {
                self.try_to_write();
                let (kept, lost) = (self.spool.kept(), self.unwritten.len());
                answer(reply, Ok(Remains { kept, lost }));
            }
        }
    }

    /// Writes the games that wait. Those that cannot be written wait on.
    fn try_to_write(&mut self) {
        if let Err(error) = self.write_games() {
            self.next_try = Instant::now() + RETRY;
            let waiting = quantity(self.unwritten.len(), "finished game");
            let seconds = RETRY.as_secs();
            tracing::error!(
                "{error}; playing pauses, in memory: {waiting}, next try in {seconds} s"
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
    // The caller may be gone; then the answer is dropped.
    drop(reply.send(result));
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend;
    use tokio::sync::oneshot;

    use super::super::testing::{games, job};
    use super::*;

    /// An actor with a finished game that cannot be written, in a folder.
    fn stuck(folder: &std::path::Path) -> (Actor<impl Fn(SpoolEvent)>, JobId) {
        let job = job(1);
        let mut spool = Spool::open(folder).unwrap();
        spool.begin(job.clone(), Backend::CpuF32).unwrap();
        spool.jobs.get_mut(&job.id).unwrap().break_journal();
        let mut actor = Actor {
            spool,
            events: |_: SpoolEvent| {},
            signals: Signals::default(),
            unwritten: VecDeque::new(),
            next_try: Instant::now(),
        };
        let game = games(&job).remove(0);
        actor.handle(Message::Game {
            job: job.id,
            game: Box::new(game),
        });
        assert!(actor.signals.stuck.load(Ordering::Relaxed));
        (actor, job.id)
    }

    #[test]
    fn a_cut_takes_along_the_games_that_waited_to_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut actor, job) = stuck(folder.path());
        actor.spool.jobs.get_mut(&job).unwrap().mend_journal();
        let (reply, answer) = oneshot::channel();
        actor.handle(Message::Cut { job, reply });
        answer.blocking_recv().unwrap().unwrap();
        assert!(!actor.signals.stuck.load(Ordering::Relaxed));
        assert!(actor.spool.next_pending().unwrap().is_some());
    }

    #[test]
    fn messages_do_not_put_off_the_next_try() {
        let folder = tempfile::tempdir().unwrap();
        let (mut actor, job) = stuck(folder.path());
        let (messages, inbox) = mpsc::channel();
        let cut = || Message::Cut {
            job,
            reply: oneshot::channel().0,
        };
        let before = actor.next_try;
        assert!(before > Instant::now());
        messages.send(cut()).unwrap();
        let message = actor.next_message(&inbox).unwrap();
        actor.handle(message);
        assert_eq!(actor.next_try, before);
        actor.next_try = Instant::now();
        messages.send(cut()).unwrap();
        assert!(matches!(
            actor.next_message(&inbox),
            Err(mpsc::RecvTimeoutError::Timeout)
        ));
    }
}
