//! The spool on a thread of its own, which does what its handles ask, one order after the other.
//!
//! A game that cannot be written, because the disk is full or broken, waits in memory and is tried
//! again; meanwhile [`SpoolHandle::is_stuck`](super::SpoolHandle::is_stuck) tells the players to pause, so that memory does not
//! fill up too.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::JobId;
use rookery_common::text::quantity;
use tokio::sync::Notify;

use super::{Spool, SpoolError};

/// Between two attempts to write what could not be written.
const RETRY: Duration = Duration::from_secs(5);

/// What the spool tells the rest of the program.
#[derive(Debug)]
pub enum SpoolEvent {
    /// A game is on disk.
    Kept {
        /// Its job.
        job: JobId,
    },
    /// Finished games cannot be written at present: playing pauses.
    WriteFailure,
    /// They can be written again.
    WriteRecovery,
    /// A finished game cannot be kept, whatever is tried.
    Unusable {
        /// The job.
        job: JobId,
        /// Why.
        error: SpoolError,
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

/// What actor and handles see without an order.
#[derive(Debug, Clone, Default)]
pub(super) struct Signals {
    /// Finished games cannot be written at present.
    pub(super) stuck: Arc<AtomicBool>,
    /// There may be a chunk to be sent.
    pub(super) ready: Arc<Notify>,
}

/// Something that a handle wants done.
pub(super) type Order = Box<dyn FnOnce(&mut Actor) + Send>;

/// The spool's thread.
pub(super) struct Actor {
    pub(super) spool: Spool,
    events: Box<dyn Fn(SpoolEvent) + Send>,
    signals: Signals,
    /// Finished games that could not be written yet.
    unwritten: VecDeque<(JobId, Box<GameRecord>)>,
    /// When those are tried again.
    next_try: Instant,
}

impl Actor {
    pub(super) fn new(
        spool: Spool,
        events: Box<dyn Fn(SpoolEvent) + Send>,
        signals: Signals,
    ) -> Self {
        Self {
            spool,
            events,
            signals,
            unwritten: VecDeque::new(),
            next_try: Instant::now(),
        }
    }

    /// Serves until the last handle is gone.
    pub(super) fn serve(mut self, inbox: &mpsc::Receiver<Order>) {
        loop {
            match self.next_order(inbox) {
                Ok(order) => order(&mut self),
                Err(mpsc::RecvTimeoutError::Timeout) => self.try_to_write(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The next order, or [`Timeout`](mpsc::RecvTimeoutError::Timeout) when it is time to try again,
    /// however many orders come.
    fn next_order(&self, inbox: &mpsc::Receiver<Order>) -> Result<Order, mpsc::RecvTimeoutError> {
        if self.unwritten.is_empty() {
            return inbox.recv().map_err(mpsc::RecvTimeoutError::from);
        }
        let pause = self.next_try.saturating_duration_since(Instant::now());
        if pause.is_zero() {
            return Err(mpsc::RecvTimeoutError::Timeout);
        }
        inbox.recv_timeout(pause)
    }

    /// Keeps a finished game, in memory until it can be written.
    pub(super) fn keep(&mut self, job: JobId, game: Box<GameRecord>) {
        self.unwritten.push_back((job, game));
        if self.unwritten.len() == 1 {
            self.try_to_write();
        }
    }

    /// As [`Spool::cut`], with the games that can be written by now.
    pub(super) fn cut(&mut self, job: JobId) -> Result<(), SpoolError> {
        // The next try reports the rest.
        drop(self.write_games());
        let cut = self.spool.cut(job);
        self.signals.ready.notify_one();
        cut
    }

    /// As [`Spool::close`], once no game waits to be written.
    pub(super) fn close(&mut self, job: JobId) -> Result<u32, SpoolError> {
        // Games that wait would find no job any more.
        let closed = self.write_games().and_then(|()| self.spool.close(job));
        self.signals.ready.notify_one();
        closed
    }

    /// Writes what can be written, and counts what remains.
    pub(super) fn end(&mut self) -> Remains {
        self.try_to_write();
        Remains {
            kept: self.spool.kept(),
            lost: self.unwritten.len(),
        }
    }

    /// Writes the games that wait. Those that cannot be written wait on.
    fn try_to_write(&mut self) {
        if let Err(error) = self.write_games() {
            self.next_try = Instant::now() + RETRY;
            let waiting = quantity(self.unwritten.len(), "finished game");
            let seconds = RETRY.as_secs();
            tracing::error!(
                "RK-0515: finished games cannot be written: {error}; playing pauses, {waiting} in memory, next try in \
                 {seconds} s"
            );
        }
    }

    /// Writes the games that wait, until one cannot be written.
    fn write_games(&mut self) -> Result<(), SpoolError> {
        while let Some((job, game)) = self.unwritten.front() {
            let job = *job;
            match self.spool.record(job, game) {
                Ok(()) => (self.events)(SpoolEvent::Kept { job }),
                Err(error @ SpoolError::File { .. }) => {
                    if !self.signals.stuck.swap(true, Ordering::Relaxed) {
                        (self.events)(SpoolEvent::WriteFailure);
                    }
                    return Err(error);
                }
                Err(error) => (self.events)(SpoolEvent::Unusable { job, error }),
            }
            self.unwritten.pop_front();
        }
        if self.signals.stuck.swap(false, Ordering::Relaxed) {
            (self.events)(SpoolEvent::WriteRecovery);
            tracing::info!("finished games can be written again; playing goes on");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::protocol::jobs::Backend;

    use super::super::testing::{games, job};
    use super::*;

    /// An actor with a finished game that cannot be written, in a folder.
    fn stuck(folder: &std::path::Path) -> (Actor, JobId, mpsc::Receiver<SpoolEvent>) {
        let job = job(1);
        let mut spool = Spool::open(folder).unwrap();
        spool.begin(job.clone(), Backend::CpuF32).unwrap();
        spool.jobs.get_mut(&job.id).unwrap().break_journal();
        let (sender, events) = mpsc::channel();
        let tell = Box::new(move |event| drop(sender.send(event)));
        let mut actor = Actor::new(spool, tell, Signals::default());
        actor.keep(job.id, Box::new(games(&job).remove(0)));
        assert!(actor.signals.stuck.load(Ordering::Relaxed));
        (actor, job.id, events)
    }

    #[test]
    fn a_cut_takes_along_the_games_that_waited_to_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let (mut actor, job, _) = stuck(folder.path());
        actor.spool.jobs.get_mut(&job).unwrap().mend_journal();
        actor.cut(job).unwrap();
        assert!(!actor.signals.stuck.load(Ordering::Relaxed));
        assert!(actor.spool.next_pending().unwrap().is_some());
    }

    #[test]
    fn a_pause_is_told_once_and_so_is_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (mut actor, job, events) = stuck(folder.path());
        actor.try_to_write();
        actor.spool.jobs.get_mut(&job).unwrap().mend_journal();
        actor.try_to_write();
        actor.try_to_write();
        let told: Vec<SpoolEvent> = events.try_iter().collect();
        use SpoolEvent::{Kept, WriteFailure, WriteRecovery};
        assert!(
            matches!(told[..], [WriteFailure, Kept { .. }, WriteRecovery]),
            "{told:?}"
        );
    }

    #[test]
    fn orders_do_not_put_off_the_next_try() {
        let folder = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let (mut actor, job, _) = stuck(folder.path());
        assert!(actor.next_try >= begun + RETRY);
        // Far enough away for a slow machine.
        actor.next_try += Duration::from_secs(3600);
        let (orders, inbox) = mpsc::channel();
        let cut = || -> Order { Box::new(move |actor| actor.cut(job).unwrap()) };
        let before = actor.next_try;
        orders.send(cut()).unwrap();
        let order = actor.next_order(&inbox).unwrap();
        order(&mut actor);
        assert_eq!(actor.next_try, before);
        actor.next_try = Instant::now();
        orders.send(cut()).unwrap();
        assert!(matches!(
            actor.next_order(&inbox),
            Err(mpsc::RecvTimeoutError::Timeout)
        ));
    }
}
