//! A share of a job being played: a table, its batches and their answers.

use rookery_common::ids::{ContentHash, JobId};
use rookery_engine::{Batch, Evaluations, EvaluatorError, Progress, Table};

use super::GameSink;
use super::gauge::{Control, Gauge};
use super::part::Part;
use super::share::Share;

/// A running share.
pub(super) struct Sitting {
    pub(super) assignment: Part,
    pub(super) table: Table,
    /// Games of the share.
    games: u64,
    /// The most memory that one of them takes, in bytes.
    pub(super) bytes: u64,
    /// A batch and an answer for each network.
    pub(super) batches: Vec<Batch>,
    pub(super) answers: Vec<Evaluations>,
    /// Whether the batches wait for answers.
    asked: bool,
    reported: Progress,
    control: Control,
}

impl Sitting {
    pub(super) fn new(share: Share, table: Table, batches: Vec<Batch>) -> Self {
        let answers = vec![Evaluations::default(); batches.len()];
        let (reported, control) = (Progress::default(), Control::Play);
        Self {
            assignment: share.assignment,
            table,
            games: share.games.len() as u64,
            bytes: share.bytes,
            batches,
            answers,
            asked: false,
            reported,
            control,
        }
    }

    pub(super) fn job(&self) -> JobId {
        self.assignment.job.id
    }

    /// The places at which a network plays in this sitting's job.
    pub(super) fn seats_of(&self, network: ContentHash) -> impl Iterator<Item = usize> + '_ {
        let networks = self.assignment.networks.iter().enumerate();
        networks
            .filter(move |(_, file)| file.hash == network)
            .map(|(seat, _)| seat)
    }

    /// Lets every game go on to its next evaluation, unless it waits for one.
    pub(super) fn gather(&mut self) {
        if !self.asked {
            self.table.gather(&mut self.batches);
            self.asked = true;
        }
    }

    /// Gives every game its answer.
    pub(super) fn apply(&mut self) -> Result<(), EvaluatorError> {
        self.asked = false;
        self.table.apply(&self.answers)
    }

    /// How many of a thread's games this sitting needs: those in hand, or as many as it may have
    /// if it has more to begin.
    pub(super) fn need(&self, allowed: usize) -> usize {
        if self.table.progress().started < self.games && self.control == Control::Play {
            allowed.max(self.table.running())
        } else {
            self.table.running()
        }
    }

    /// Obeys the job's control; whether the sitting goes on.
    pub(super) fn obey(&mut self) -> bool {
        let control = self.assignment.gauge.control();
        if control != self.control {
            self.control = control;
            self.table.stop_new();
        }
        control != Control::Drop && !self.table.done()
    }

    /// Hands finished games on and moves the counters.
    pub(super) fn report(&mut self, sink: &impl GameSink, gauge: &Gauge) {
        use std::sync::atomic::Ordering::Relaxed;

        let job = self.job();
        for game in self.table.finished() {
            sink.keep(job, Box::new(game));
        }
        let (now, before) = (self.table.progress(), self.reported);
        gauge
            .games
            .fetch_add(now.finished - before.finished, Relaxed);
        gauge
            .positions
            .fetch_add(now.positions - before.positions, Relaxed);
        gauge
            .cache_hits
            .fetch_add(now.cache_hits - before.cache_hits, Relaxed);
        self.assignment
            .gauge
            .add_positions(now.positions - before.positions);
        self.assignment
            .gauge
            .add_started(now.started - before.started);
        self.assignment
            .gauge
            .add_finished(now.finished - before.finished);
        self.reported = now;
    }
}
