//! A shard of a job being played: a pool, its batches and their answers.

use rookery_common::ids::{ContentHash, JobId};
use rookery_common::protocol::jobs::WorkKind;
use rookery_engine::{Batch, Evaluations, EvaluatorError, GamePool, Progress};

use super::GameSink;
use super::counters::{Control, Counters};
use super::job_guard::JobGuard;
use super::shard::JobShard;

/// A running shard.
pub(super) struct RunningShard {
    pub(super) work: JobGuard,
    pub(super) pool: GamePool,
    /// Games of the shard.
    games: u64,
    /// The most memory that one of them takes, in bytes.
    pub(super) bytes: u64,
    /// A batch and an answer for each network.
    pub(super) batches: Vec<Batch>,
    pub(super) answers: Vec<Evaluations>,
    /// Whether other jobs wait for this one.
    pub(super) goes_first: bool,
    /// Whether the batches wait for answers.
    pub(super) asked: bool,
    reported: Progress,
    control: Control,
}

impl RunningShard {
    pub(super) fn new(
        shard: JobShard,
        goes_first: bool,
        pool: GamePool,
        batches: Vec<Batch>,
    ) -> Self {
        let answers = vec![Evaluations::default(); batches.len()];
        let (reported, control) = (Progress::default(), Control::Play);
        Self {
            work: shard.work,
            pool,
            games: shard.games.len() as u64,
            bytes: shard.bytes,
            batches,
            answers,
            goes_first,
            asked: false,
            reported,
            control,
        }
    }

    pub(super) fn job(&self) -> JobId {
        self.work.job.id
    }

    /// The places at which a network plays in this shard's job.
    pub(super) fn seats_of(&self, network: ContentHash) -> impl Iterator<Item = usize> + '_ {
        let networks = self.work.networks.iter().enumerate();
        networks
            .filter(move |(_, file)| file.hash == network)
            .map(|(seat, _)| seat)
    }

    /// Lets every game go on to its next evaluation, unless it waits for one.
    pub(super) fn gather(&mut self) {
        if !self.asked {
            self.pool.gather(&mut self.batches);
            self.asked = true;
        }
    }

    /// Gives every game its answer.
    pub(super) fn apply(&mut self) -> Result<(), EvaluatorError> {
        self.asked = false;
        self.pool.apply(&self.answers)
    }

    /// How many of a thread's games this shard needs: those in hand, or as many as it may have
    /// if it has more to begin.
    pub(super) fn need(&self, allowed: usize) -> usize {
        if self.pool.progress().started < self.games && self.control == Control::Play {
            allowed.max(self.pool.running())
        } else {
            self.pool.running()
        }
    }

    /// Obeys the job's control; whether the shard goes on.
    pub(super) fn obey(&mut self) -> bool {
        let control = self.work.counters.control();
        if control != self.control {
            self.control = control;
            self.pool.stop_new();
        }
        control != Control::Drop && !self.pool.done()
    }

    /// Hands finished games on and moves the counters.
    pub(super) fn report(&mut self, sink: &impl GameSink, counters: &Counters) {
        use std::sync::atomic::Ordering::Relaxed;

        let job = self.job();
        let watched = self.work.counters.watched.as_ref();
        for game in self.pool.finished() {
            if let Some(watched) = watched {
                watched.note_end(game.index, &game.plies);
            }
            sink.keep(job, Box::new(game));
        }
        if let Some(watched) = watched {
            watched.note(self.pool.games_in_hand());
        }
        let (now, before) = (self.pool.progress(), self.reported);
        let ended = match self.work.job.work.kind() {
            WorkKind::Audit => &counters.audits,
            WorkKind::SelfPlay | WorkKind::Puzzles | WorkKind::Match => &counters.games,
        };
        ended.fetch_add(now.finished - before.finished, Relaxed);
        counters
            .positions
            .fetch_add(now.positions - before.positions, Relaxed);
        counters
            .cache_hits
            .fetch_add(now.cache_hits - before.cache_hits, Relaxed);
        self.work
            .counters
            .add_positions(now.positions - before.positions);
        self.work.counters.add_started(now.started - before.started);
        self.work
            .counters
            .add_finished(now.finished - before.finished);
        self.reported = now;
    }
}
