//! Threads that play.
//!
//! ```text
//! JobWork --shard--> thread: GamePool, GamePool …  --finished game--> GameSink (the spool)
//!                       |  ^
//!                    batches  answers
//!                       v  |
//!                    NetworkBatcher: one network, of the LoadedNetworks of all threads
//! ```
//!
//! [`Player`] is a stub that hands every thread its [`shard`] of a job; [`thread`] is the
//! actor. A thread plays several jobs at once where the first leaves room, in one batch if they
//! have the same network ([`batcher`]), so that batches stay full from job to job. On a processor
//! the games of a match go first, so that a gate is decided soon. In a [`pause`] a thread keeps its
//! games and lets go of its networks, so that a pause leaves the device's memory to others.

mod batcher;
pub mod counters;
mod job_guard;
mod loaded_networks;
mod memory_budget;
mod pause;
mod running_shard;
mod shard;
mod thread;
mod watched;

use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};

use rookery_common::chunk::GameRecord;
use rookery_common::ids::JobId;
use rookery_common::protocol::jobs::Job;

use crate::judges::Judges;
use crate::machine::Machine;
use crate::networks::NetworkFile;
use crate::priority::Priority;

use job_guard::{Events, JobGuard, PanicReport};

pub use counters::{Control, Counters, JobCounters};
pub use memory_budget::games_at_once;
pub use pause::{PauseHandle, Paused};
pub use shard::{GamesError, check_games};

/// A job to play.
#[derive(Debug)]
pub struct JobWork {
    /// The job.
    pub job: Arc<Job>,
    /// The indices of the games to play.
    pub games: Vec<u32>,
    /// The networks in the order in which the job's work names them.
    pub networks: Vec<NetworkFile>,
    /// How far the job is, and whether it goes on.
    pub counters: Arc<JobCounters>,
}

/// What threads tell the rest of the program.
#[derive(Debug)]
pub enum PlayEvent {
    /// No thread plays this job any more: its games have ended or were dropped.
    Left(JobId),
    /// The job cannot be played on; its threads leave it.
    Failed {
        /// The job.
        job: JobId,
        /// Why.
        error: String,
    },
    /// A thread has ended by a panic, which has been printed. It has left its jobs.
    Died,
}

/// Where finished games go.
pub trait GameSink: Send + 'static {
    /// Takes a finished game; does not wait for a disk.
    fn keep(&self, job: JobId, game: Box<GameRecord>);

    /// Whether no more games can be taken at present, so that playing has to pause.
    fn is_stuck(&self) -> bool;
}

impl GameSink for crate::spool::SpoolHandle {
    fn keep(&self, job: JobId, game: Box<GameRecord>) {
        Self::keep(self, job, game);
    }

    fn is_stuck(&self) -> bool {
        Self::is_stuck(self)
    }
}

/// An order to a thread.
#[derive(Debug)]
enum Order {
    /// To play games.
    Play(shard::JobShard),
    /// To let go of its networks for a while.
    Pause(Arc<pause::PauseGate>),
}

/// A handle on the threads; they end when it and all its [`PauseHandle`]s are dropped.
#[derive(Debug)]
pub struct Player {
    threads: Vec<mpsc::Sender<Order>>,
    /// Games that each of them plays at once.
    games: Vec<NonZeroUsize>,
    events: Events,
    /// All that was played since the start.
    counters: Arc<Counters>,
}

impl Player {
    /// Starts the machine's threads with this priority; `judges` end games where a job wants it.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub fn start<S: GameSink + Clone>(
        machine: &Machine,
        priority: Priority,
        judges: &Judges,
        sink: &S,
        events: impl Fn(PlayEvent) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let events = Events::new(events);
        let counters = Arc::new(Counters::default());
        let loaded = Arc::new(loaded_networks::LoadedNetworks::default());
        let mut threads = Vec::new();
        for (number, place) in machine.places().enumerate() {
            let (orders, inbox) = mpsc::channel();
            let player = thread::PlayThread::new(
                machine.clone(),
                place,
                judges.of_thread(),
                Arc::clone(&loaded),
                Arc::clone(&counters),
                sink.clone(),
                events.clone(),
            );
            let name = format!("play-{number}");
            let on_cpu = machine.devices.info(place.lane).is_cpu();
            let watch = PanicReport(events.clone());
            std::thread::Builder::new().name(name).spawn(move || {
                let _watch = watch;
                priority.take(on_cpu);
                player.serve(&inbox);
            })?;
            threads.push(orders);
        }
        Ok(Self {
            threads,
            games: machine.places().map(|place| place.games).collect(),
            events,
            counters,
        })
    }

    /// What was played since the start.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// A handle by which the threads can be paused.
    pub fn pause_handle(&self) -> PauseHandle {
        PauseHandle::new(self.threads.clone())
    }

    /// Gives every thread its shard of a job, by the games that it plays at once.
    pub fn play(&self, work: JobWork) {
        let work = Arc::new(work);
        work.counters.begin(work.games.len(), self.threads.len());
        let bytes = memory_budget::bytes_of_game(&work.job.work);
        let shards = shard::divide(&work.games, &self.games);
        for (thread, games) in self.threads.iter().zip(shards) {
            let shard = shard::JobShard {
                work: JobGuard::new(Arc::clone(&work), self.events.clone()),
                games,
                bytes,
            };
            // A thread ends before its handle only by a panic; its shard is dropped, and so left.
            drop(thread.send(Order::Play(shard)));
        }
    }
}

#[cfg(test)]
mod tests;
