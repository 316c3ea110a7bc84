//! One thread that plays.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::ContentHash;
use rookery_common::network::Program;
use rookery_common::protocol::jobs::WorkKind;
use rookery_engine::{BackendError, Batch, EvaluationCache, GamePool, Judges};

use super::batcher::{NetworkBatcher, Question};
use super::counters::{Control, Counters};
use super::job_guard::Events;
use super::loaded_networks::LoadedNetworks;
use super::memory_budget::MemoryBudget;
use super::pause::PauseGate;
use super::running_shard::RunningShard;
use super::shard::{self, JobShard};
use super::{GameSink, JobWork, Order, PlayEvent};
use crate::machine::{Machine, Place};
use crate::networks::{Contents, NetworkFile};

/// Networks that stay loaded although nothing is played with them at present.
const SPARE_NETWORKS: usize = 2;
/// Between two looks whether finished games can be kept again.
const STUCK_PAUSE: Duration = Duration::from_millis(500);
/// Until a network is loaded for which the device had no memory.
const ROOM_PAUSE: Duration = Duration::from_secs(5);

/// The actor behind one thread of [`Player`](super::Player).
pub(super) struct PlayThread<S> {
    machine: Machine,
    place: Place,
    judges: Judges,
    loaded: Arc<LoadedNetworks>,
    counters: Arc<Counters>,
    sink: S,
    events: Events,
    /// Shards that wait for room.
    waiting: VecDeque<JobShard>,
    /// When the next of them may begin.
    next_seating: Instant,
    running: Vec<RunningShard>,
    /// Loaded networks, the last used ones at the end.
    batchers: Vec<NetworkBatcher>,
}

impl<S: GameSink> PlayThread<S> {
    pub(super) fn new(
        machine: Machine,
        place: Place,
        judges: Judges,
        loaded: Arc<LoadedNetworks>,
        counters: Arc<Counters>,
        sink: S,
        events: Events,
    ) -> Self {
        let (waiting, running, batchers) = (VecDeque::new(), Vec::new(), Vec::new());
        Self {
            machine,
            place,
            judges,
            loaded,
            counters,
            sink,
            events,
            waiting,
            next_seating: Instant::now(),
            running,
            batchers,
        }
    }

    /// Plays what comes in until all senders are gone.
    pub(super) fn serve(mut self, inbox: &mpsc::Receiver<Order>) {
        while self.take_orders(inbox) {
            self.seat_waiting();
            let only_waits = self.running.is_empty() && !self.waiting.is_empty();
            if only_waits || self.sink.is_stuck() || !self.reopen_batchers() {
                std::thread::sleep(STUCK_PAUSE);
            } else {
                self.step();
            }
            self.remove_finished();
        }
    }

    /// Takes the orders that have come, waiting for one if there is nothing to do. False if the
    /// player is gone.
    fn take_orders(&mut self, inbox: &mpsc::Receiver<Order>) -> bool {
        if self.running.is_empty() && self.waiting.is_empty() {
            match inbox.recv() {
                Ok(order) => self.obey(order),
                Err(mpsc::RecvError) => return false,
            }
        }
        loop {
            match inbox.try_recv() {
                Ok(order) => self.obey(order),
                Err(mpsc::TryRecvError::Empty) => return true,
                Err(mpsc::TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Play(shard) if self.goes_first(&shard.work) => {
                let place = |other: &JobShard| self.goes_first(&other.work);
                let place = self.waiting.partition_point(place);
                self.waiting.insert(place, shard);
            }
            Order::Play(shard) => self.waiting.push_back(shard),
            Order::Pause(gate) => self.pause(&gate),
        }
    }

    /// Whether other jobs wait here for this one: a gate waits for every game of its match, and training for none. Only on a
    /// processor: a few games take it little time, and would leave a GPU idle.
    fn goes_first(&self, work: &JobWork) -> bool {
        let device = self.machine.devices.backend(self.place.lane);
        work.job.work.kind() == WorkKind::Match && device.info().is_cpu()
    }

    /// Lets go of all networks until the pause is over.
    fn pause(&mut self, gate: &PauseGate) {
        if gate.is_over() {
            return;
        }
        self.drop_spare_batchers(0);
        self.batchers.iter_mut().for_each(NetworkBatcher::close);
        gate.wait();
    }

    /// Loads again what a pause or a failed device has let go of; false if something is still missing. Games wait for a device
    /// without memory for it; those of a network that cannot be had any more fail.
    fn reopen_batchers(&mut self) -> bool {
        for place in 0..self.batchers.len() {
            let batcher = &mut self.batchers[place];
            let network = batcher.network;
            match batcher.reopen(&self.machine.devices, self.place.lane, &self.loaded) {
                Ok(()) => {}
                Err(error @ BackendError::OutOfMemory(_)) => {
                    let seconds = ROOM_PAUSE.as_secs();
                    tracing::warn!("network {network}: {error}; next try in {seconds} s");
                    std::thread::sleep(ROOM_PAUSE);
                    return false;
                }
                Err(error) => {
                    self.fail_all(network, &error);
                    self.batchers.remove(place);
                    return false;
                }
            }
        }
        true
    }

    /// Gives every shard the games that those before it leave, and begins waiting shards while
    /// there is room, on the device too.
    fn seat_waiting(&mut self) {
        let mut room = MemoryBudget::of(&self.machine, self.place.games);
        for shard in &mut self.running {
            let need = shard.need(room.games(shard.goes_first, shard.bytes));
            shard.pool.set_concurrency(need);
            room.take(need, shard.goes_first, shard.bytes);
        }
        while self.next_seating <= Instant::now()
            && let Some(shard) = self.waiting.pop_front()
        {
            // One game is played whatever it takes.
            let least = usize::from(self.running.is_empty());
            let goes_first = self.goes_first(&shard.work);
            let seats = room.games(goes_first, shard.bytes).max(least);
            if seats == 0 {
                return self.waiting.push_front(shard);
            }
            match self.set_up(&shard, seats) {
                Ok(Some((pool, batches))) => {
                    let shard = RunningShard::new(shard, goes_first, pool, batches);
                    room.take(shard.need(seats), goes_first, shard.bytes);
                    self.running.push(shard);
                }
                Ok(None) => {}
                Err(error) if is_out_of_memory(&error) => {
                    let seconds = ROOM_PAUSE.as_secs();
                    tracing::warn!("{error:#}; next try in {seconds} s");
                    self.next_seating = Instant::now() + ROOM_PAUSE;
                    return self.waiting.push_front(shard);
                }
                Err(error) => self.fail(&shard.work, format!("{error:#}")),
            }
        }
    }

    /// Sets up a shard; none if there is nothing to play.
    fn set_up(
        &mut self,
        shard: &JobShard,
        seats: usize,
    ) -> anyhow::Result<Option<(GamePool, Vec<Batch>)>> {
        let JobShard { work, games, .. } = shard;
        if games.is_empty() || work.counters.control() != Control::Play {
            return Ok(None);
        }
        let job = shard::plan(&work.job, games)?;
        let programs = programs(&work.networks)?;
        let (mut caches, mut batches) = (Vec::new(), Vec::new());
        for network in &work.networks {
            if let Contents::Program(_) = network.contents {
                // Nothing is ever asked for it.
                caches.push(Arc::new(EvaluationCache::new(0)));
                batches.push(Batch::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858));
                continue;
            }
            let batcher = self.batcher(network)?;
            caches.push(Arc::clone(&batcher.cache));
            batches.push(batcher.batch());
        }
        let pool = GamePool::new(&job, seats, &caches)?;
        let pool = pool
            .with_judges(self.judges.clone())
            .with_programs(programs);
        Ok(Some((pool, batches)))
    }

    /// The batcher of a network, loaded if it is not yet; it becomes the last used one.
    fn batcher(&mut self, network: &NetworkFile) -> anyhow::Result<&NetworkBatcher> {
        let found = self
            .batchers
            .iter()
            .position(|batcher| batcher.network == network.hash);
        let batcher = match found {
            Some(place) => self.batchers.remove(place),
            None => NetworkBatcher::open(
                network,
                &self.machine.devices,
                self.place.lane,
                &self.loaded,
            )
            .with_context(|| format!("network {}", network.hash))?,
        };
        Ok(self.batchers.push_mut(batcher))
    }

    /// One round: every game goes on to its next evaluation, and gets it; where games go first, only these.
    fn step(&mut self) {
        let others_wait = self.running.iter().any(|shard| shard.goes_first);
        let playing = self.running.iter_mut();
        playing
            .filter(|shard| shard.goes_first || !others_wait)
            .for_each(RunningShard::gather);
        for place in 0..self.batchers.len() {
            self.evaluate(place);
        }
        for place in (0..self.running.len()).rev() {
            let shard = &mut self.running[place];
            let mut closed = self.batchers.iter().filter(|batcher| !batcher.is_open());
            if !shard.asked
                || closed.any(|batcher| shard.seats_of(batcher.network).next().is_some())
            {
                continue;
            }
            let applied = shard.apply();
            shard.report(&self.sink, &self.counters);
            if let Err(error) = applied {
                let shard = self.running.remove(place);
                self.fail(&shard.work, error.to_string());
            }
        }
    }

    /// Lets one network answer all its questions. If its device fails, the batcher closes, and the questions wait until it is
    /// open again. If no device is left for it, the request fails.
    fn evaluate(&mut self, place: usize) {
        let batcher = &mut self.batchers[place];
        let network = batcher.network;
        let asked = self.running.iter_mut().filter(|shard| shard.asked);
        let questions = asked.flat_map(|shard| {
            let seats: Vec<usize> = shard.seats_of(network).collect();
            let pairs = shard.batches.iter().zip(&mut shard.answers).enumerate();
            pairs
                .filter(move |(seat, _)| seats.contains(seat))
                .map(|(_, (batch, answer))| Question { batch, answer })
        });
        let questions = questions.collect();
        let devices = &self.machine.devices;
        let backend = batcher.backend();
        match devices.take_turn(&*backend, || batcher.answer(questions)) {
            Ok(positions) => {
                self.counters
                    .evaluations
                    .fetch_add(positions as u64, Relaxed);
                self.counters
                    .batches
                    .fetch_add(u64::from(positions > 0), Relaxed);
            }
            Err(error) => {
                let failed = batcher.fail(devices, self.place.lane, error);
                if let Err(error) = failed {
                    self.fail_all(network, &error);
                }
            }
        }
    }

    /// Removes shards that are over, and networks that are not used any more.
    fn remove_finished(&mut self) {
        for place in (0..self.running.len()).rev() {
            if !self.running[place].obey() {
                self.running.remove(place);
            }
        }
        self.drop_spare_batchers(SPARE_NETWORKS);
    }

    /// Evicts networks that are not in use (LRU), and keeps the last ones used.
    fn drop_spare_batchers(&mut self, kept: usize) {
        let in_use = |batcher: &NetworkBatcher| {
            self.running
                .iter()
                .any(|shard| shard.seats_of(batcher.network).next().is_some())
        };
        let spare: Vec<bool> = self
            .batchers
            .iter()
            .map(|batcher| !in_use(batcher))
            .collect();
        let mut surplus = spare
            .iter()
            .filter(|spare| **spare)
            .count()
            .saturating_sub(kept);
        let mut spare = spare.into_iter();
        self.batchers.retain(|_| {
            let drop = spare.next().unwrap_or_default() && surplus > 0;
            surplus -= usize::from(drop);
            !drop
        });
    }

    /// Fails the jobs of a network that cannot be had any more.
    fn fail_all(&self, network: ContentHash, error: &BackendError) {
        for shard in &self.running {
            if shard.seats_of(network).next().is_some() {
                self.fail(&shard.work, format!("network {network}: {error}"));
            }
        }
    }

    /// Fails a job, unless another thread has done so.
    fn fail(&self, work: &JobWork, error: String) {
        if work.counters.order(Control::Drop) {
            self.events.tell(PlayEvent::Failed {
                job: work.job.id,
                error,
            });
        }
    }
}

/// Whether the device has no memory now, and may have some later.
fn is_out_of_memory(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(BackendError::OutOfMemory(_)))
}

/// The programs among a job's networks, which are there in matches only.
fn programs(networks: &[NetworkFile]) -> anyhow::Result<[Option<Program>; 2]> {
    let program = |file: &NetworkFile| match file.contents {
        Contents::Network => None,
        Contents::Program(program) => Some(program),
    };
    match networks {
        [candidate, opponent] => Ok([program(candidate), program(opponent)]),
        others => match others.iter().find_map(program) {
            Some(program) => {
                anyhow::bail!("the job is not a match, but the program {program} is to play it")
            }
            None => Ok([None; 2]),
        },
    }
}
