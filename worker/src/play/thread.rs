//! One thread that plays.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::ids::ContentHash;
use rookery_common::network::Program;
use rookery_engine::{BackendError, Batch, EvaluationCache, Judges, Table};

use super::desk::{Desk, Question};
use super::gauge::{Control, Gauge};
use super::library::Library;
use super::part::Events;
use super::rest::Rest;
use super::room::Room;
use super::share::{self, Share};
use super::sitting::Sitting;
use super::{Assignment, GameSink, Order, PlayEvent};
use crate::machine::{Machine, Place};
use crate::networks::{Contents, NetworkFile};

/// Networks that stay loaded although nothing is played with them at present.
const SPARE_DESKS: usize = 2;
/// Between two looks whether finished games can be kept again.
const STUCK_PAUSE: Duration = Duration::from_millis(500);
/// Until a network is loaded again after a rest for which the device had no memory.
const ROOM_PAUSE: Duration = Duration::from_secs(5);

/// The actor behind one thread of [`Player`](super::Player).
pub(super) struct PlayThread<S> {
    machine: Machine,
    place: Place,
    judges: Judges,
    library: Arc<Library>,
    gauge: Arc<Gauge>,
    sink: S,
    events: Events,
    /// Shares that wait for room.
    waiting: VecDeque<Share>,
    sittings: Vec<Sitting>,
    /// Loaded networks, the last used ones at the end.
    desks: Vec<Desk>,
}

impl<S: GameSink> PlayThread<S> {
    pub(super) fn new(
        machine: Machine,
        place: Place,
        judges: Judges,
        library: Arc<Library>,
        gauge: Arc<Gauge>,
        sink: S,
        events: Events,
    ) -> Self {
        let (waiting, sittings, desks) = (VecDeque::new(), Vec::new(), Vec::new());
        Self {
            machine,
            place,
            judges,
            library,
            gauge,
            sink,
            events,
            waiting,
            sittings,
            desks,
        }
    }

    /// Plays what comes in until all senders are gone.
    pub(super) fn serve(mut self, inbox: &mpsc::Receiver<Order>) {
        while self.take_orders(inbox) {
            self.seat_waiting();
            if self.sink.is_stuck() || !self.reopen_desks() {
                std::thread::sleep(STUCK_PAUSE);
            } else {
                self.step();
            }
            self.clear_tables();
        }
    }

    /// Takes the orders that have come, waiting for one if there is nothing to do. False if the
    /// player is gone.
    fn take_orders(&mut self, inbox: &mpsc::Receiver<Order>) -> bool {
        if self.sittings.is_empty() && self.waiting.is_empty() {
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
            Order::Play(share) => self.waiting.push_back(share),
            Order::Rest(rest) => self.rest(&rest),
        }
    }

    /// Lets go of all networks until the rest is over.
    fn rest(&mut self, rest: &Rest) {
        if rest.is_over() {
            return;
        }
        self.clear_desks(0);
        self.desks.iter_mut().for_each(Desk::close);
        rest.wait();
    }

    /// Loads again what a rest or a failed device has let go of; false if something is still missing. Games wait for a device
    /// without memory for it; those of a network that cannot be had any more fail.
    fn reopen_desks(&mut self) -> bool {
        for place in 0..self.desks.len() {
            let desk = &mut self.desks[place];
            let network = desk.network;
            match desk.reopen(&self.machine.devices, self.place.lane, &self.library) {
                Ok(()) => {}
                Err(error @ BackendError::OutOfMemory(_)) => {
                    let seconds = ROOM_PAUSE.as_secs();
                    tracing::warn!("network {network}: {error}; next try in {seconds} s");
                    std::thread::sleep(ROOM_PAUSE);
                    return false;
                }
                Err(error) => {
                    self.fail_all(network, &error);
                    self.desks.remove(place);
                    return false;
                }
            }
        }
        true
    }

    /// Gives every sitting the games that those before it leave, and begins waiting shares while
    /// there is room.
    fn seat_waiting(&mut self) {
        let mut room = Room::of(&self.machine, self.place.games);
        for sitting in &mut self.sittings {
            let need = sitting.need(room.games(sitting.bytes));
            sitting.table.set_concurrency(need);
            room.take(need, sitting.bytes);
        }
        while let Some(share) = self.waiting.pop_front() {
            // One game is played whatever it takes.
            let least = usize::from(self.sittings.is_empty());
            let seats = room.games(share.bytes).max(least);
            if seats == 0 {
                return self.waiting.push_front(share);
            }
            match self.set_up(&share, seats) {
                Ok(Some((table, batches))) => {
                    let sitting = Sitting::new(share, table, batches);
                    room.take(sitting.need(seats), sitting.bytes);
                    self.sittings.push(sitting);
                }
                Ok(None) => {}
                Err(error) => self.fail(&share.assignment, error),
            }
        }
    }

    /// Sets up a share; none if there is nothing to play.
    fn set_up(
        &mut self,
        share: &Share,
        seats: usize,
    ) -> Result<Option<(Table, Vec<Batch>)>, String> {
        let Share {
            assignment, games, ..
        } = share;
        if games.is_empty() || assignment.gauge.control() != Control::Play {
            return Ok(None);
        }
        let job = share::plan(&assignment.job, games).map_err(|error| error.to_string())?;
        let programs = programs(&assignment.networks)?;
        let (mut caches, mut batches) = (Vec::new(), Vec::new());
        for network in &assignment.networks {
            if let Contents::Program(_) = network.contents {
                // Nothing is ever asked for it.
                caches.push(Arc::new(EvaluationCache::new(0)));
                batches.push(Batch::new(InputEncoding::Lc0112, PolicyEncoding::Lc01858));
                continue;
            }
            let desk = self.desk(network)?;
            caches.push(Arc::clone(&desk.cache));
            batches.push(desk.batch());
        }
        let table = Table::new(&job, seats, &caches).map_err(|error| error.to_string())?;
        let table = table
            .with_judges(self.judges.clone())
            .with_programs(programs);
        Ok(Some((table, batches)))
    }

    /// The desk of a network, loaded if it is not yet; it becomes the last used one.
    fn desk(&mut self, network: &NetworkFile) -> Result<&Desk, String> {
        let found = self
            .desks
            .iter()
            .position(|desk| desk.network == network.hash);
        let desk = match found {
            Some(place) => self.desks.remove(place),
            None => Desk::open(
                network,
                &self.machine.devices,
                self.place.lane,
                &self.library,
            )
            .map_err(|error| format!("network {}: {error}", network.hash))?,
        };
        Ok(self.desks.push_mut(desk))
    }

    /// One round: every game goes on to its next evaluation, and gets it.
    fn step(&mut self) {
        self.sittings.iter_mut().for_each(Sitting::gather);
        for place in 0..self.desks.len() {
            self.evaluate(place);
        }
        for place in (0..self.sittings.len()).rev() {
            let sitting = &mut self.sittings[place];
            let mut closed = self.desks.iter().filter(|desk| !desk.is_open());
            if closed.any(|desk| sitting.seats_of(desk.network).next().is_some()) {
                continue;
            }
            let applied = sitting.apply();
            sitting.report(&self.sink, &self.gauge);
            if let Err(error) = applied {
                let sitting = self.sittings.remove(place);
                self.fail(&sitting.assignment, error.to_string());
            }
        }
    }

    /// Lets one network answer all its questions. If its device fails, the desk closes, and the questions wait until it is
    /// open again. If no device is left for it, the request fails.
    fn evaluate(&mut self, place: usize) {
        let desk = &mut self.desks[place];
        let network = desk.network;
        let questions = self.sittings.iter_mut().flat_map(|sitting| {
            let seats: Vec<usize> = sitting.seats_of(network).collect();
            let pairs = sitting.batches.iter().zip(&mut sitting.answers).enumerate();
            pairs
                .filter(move |(seat, _)| seats.contains(seat))
                .map(|(_, (batch, answer))| Question { batch, answer })
        });
        let questions = questions.collect();
        let devices = &self.machine.devices;
        match devices.take_turn(self.place.lane, || desk.answer(questions)) {
            Ok(positions) => {
                self.gauge.evaluations.fetch_add(positions as u64, Relaxed);
                self.gauge
                    .batches
                    .fetch_add(u64::from(positions > 0), Relaxed);
            }
            Err(error) => {
                let failed = desk.fail(devices, self.place.lane, error);
                if let Err(error) = failed {
                    self.fail_all(network, &error);
                }
            }
        }
    }

    /// Removes sittings that are over, and networks that are not used any more.
    fn clear_tables(&mut self) {
        for place in (0..self.sittings.len()).rev() {
            if !self.sittings[place].obey() {
                self.sittings.remove(place);
            }
        }
        self.clear_desks(SPARE_DESKS);
    }

    /// Evicts networks that are not in use (LRU), and keeps the last ones used.
    fn clear_desks(&mut self, kept: usize) {
        let in_use = |desk: &Desk| {
            self.sittings
                .iter()
                .any(|sitting| sitting.seats_of(desk.network).next().is_some())
        };
        let spare: Vec<bool> = self.desks.iter().map(|desk| !in_use(desk)).collect();
        let mut surplus = spare
            .iter()
            .filter(|spare| **spare)
            .count()
            .saturating_sub(kept);
        let mut spare = spare.into_iter();
        self.desks.retain(|_| {
            let drop = spare.next().unwrap_or_default() && surplus > 0;
            surplus -= usize::from(drop);
            !drop
        });
    }

    /// Fails the jobs of a network that cannot be had any more, unless another thread has done so.
    fn fail_all(&self, network: ContentHash, error: &BackendError) {
        for sitting in &self.sittings {
            let goes_on = sitting.assignment.gauge.control() != Control::Drop;
            if goes_on && sitting.seats_of(network).next().is_some() {
                self.fail(&sitting.assignment, format!("network {network}: {error}"));
            }
        }
    }

    fn fail(&self, assignment: &Assignment, error: String) {
        assignment.gauge.order(Control::Drop);
        self.events.tell(PlayEvent::Failed {
            job: assignment.job.id,
            error,
        });
    }
}

/// The programs among a job's networks, which are there in matches only.
fn programs(networks: &[NetworkFile]) -> Result<[Option<Program>; 2], String> {
    let program = |file: &NetworkFile| match file.contents {
        Contents::Network => None,
        Contents::Program(program) => Some(program),
    };
    match networks {
        [candidate, opponent] => Ok([program(candidate), program(opponent)]),
        others => match others.iter().find_map(program) {
            Some(program) => Err(format!(
                "the job is not a match, but the program {program} is to play it"
            )),
            None => Ok([None; 2]),
        },
    }
}
