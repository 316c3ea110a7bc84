//! Many games in lockstep, filling one batch for each evaluator.
//!
//! ```text
//! gather: every game walks to its next leaf -> cache? -> yes: goes on at once
//!                                                     -> no: into its evaluator's batch, waits
//! (the caller evaluates the batches)
//! apply: every waiting game takes its answer
//! ```
//!
//! A game's moves depend on its own seed and the evaluations only: not on how many games run, nor
//! on their order, nor on the cache.

use std::collections::HashMap;
use std::sync::Arc;

use rookery_common::chunk::record::{GameRecord, GameStart, PlyRecord};
use rookery_common::ids::Seed;
use rookery_common::network::Program;

use super::driver::{GameDriver, Scratch, Step};
use super::job::{GamePlan, Job, JobError};
use super::judges::Judges;
use super::rules::Rules;
use crate::cache::{CacheKey, EvaluationCache};
use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError};

/// Running and waiting games of one job.
#[derive(Debug)]
pub struct GamePool {
    rules: Rules,
    seed: Seed,
    /// Games that have not begun.
    queue: std::vec::IntoIter<GamePlan>,
    concurrency: usize,
    drivers: Vec<GameDriver>,
    /// For each evaluator.
    pending: Vec<PendingEvaluations>,
    finished: Vec<GameRecord>,
    progress: Progress,
    scratch: Scratch,
}

/// What has been done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Games that began.
    pub started: u64,
    /// Games that ended.
    pub finished: u64,
    /// Searched plies, those of running games included.
    pub positions: u64,
    /// Visits, those of running games included.
    pub visits: u64,
    /// Positions given to evaluators.
    pub evaluations: u64,
    /// Evaluations that the cache, or another game's question in the same batch, made needless.
    pub cache_hits: u64,
}

/// A game in hand.
#[derive(Debug, Clone, Copy)]
pub struct GameInHand<'a> {
    /// Which game of its job this is.
    pub index: u32,
    /// Where it began, with the moves that were given or drawn.
    pub start: &'a GameStart,
    /// The plies that were searched so far.
    pub plies: &'a [PlyRecord],
}

/// What is between the pool and one evaluator.
#[derive(Debug, Default)]
struct PendingEvaluations {
    cache: Option<Arc<EvaluationCache>>,
    /// Drivers that wait, with the place in the batch for which they do.
    waiting: Vec<(usize, usize)>,
    /// Each position of the batch: its key (if there is a cache) and where its logits end.
    items: Vec<(CacheKey, usize)>,
    /// The places of the positions in the batch.
    places: HashMap<CacheKey, usize>,
}

impl GamePool {
    /// A pool that plays at most `concurrency` (at least 1) of the job's games at a time.
    /// `caches` are for evaluators 0 and 1; where there is none, nothing is cached.
    ///
    /// # Errors
    ///
    /// [`JobError`] if a parameter or a game of the job is wrong.
    pub fn new(
        job: &Job,
        concurrency: usize,
        caches: &[Arc<EvaluationCache>],
    ) -> Result<Self, JobError> {
        let pending = |index| PendingEvaluations {
            cache: caches.get(index).cloned(),
            ..PendingEvaluations::default()
        };
        Ok(Self {
            rules: Rules::new(&job.work),
            seed: job.seed,
            queue: job.work.plans()?.into_iter(),
            concurrency: concurrency.max(1),
            drivers: Vec::new(),
            pending: (0..job.work.evaluators()).map(pending).collect(),
            finished: Vec::new(),
            progress: Progress::default(),
            scratch: Scratch::default(),
        })
    }

    /// The same with judges at hand, for jobs that want them.
    #[must_use]
    pub fn with_judges(mut self, judges: Judges) -> Self {
        self.scratch.judges = judges;
        self
    }

    /// The same with programs in place of some networks of a match, or of an audit of one: for the
    /// candidate and for its opponent. Who has one is never evaluated for; its batch stays empty.
    /// Games of one network are played by it all the same.
    #[must_use]
    pub fn with_programs(mut self, programs: [Option<Program>; 2]) -> Self {
        self.rules.programs = programs;
        self
    }

    /// Lets every game go on to a position that needs an evaluation, and fills the batches with
    /// these. The batches' old content is dropped. All are empty if and only if the pool is
    /// [`done`](Self::done).
    ///
    /// # Panics
    ///
    /// If there are fewer batches than evaluators.
    pub fn gather(&mut self, batches: &mut [Batch]) {
        assert!(
            batches.len() >= self.pending.len(),
            "a batch for each evaluator"
        );
        batches.iter_mut().for_each(Batch::clear);
        self.pending.iter_mut().for_each(PendingEvaluations::clear);
        let mut driver = 0;
        while driver < self.concurrency {
            if driver == self.drivers.len() && !self.begin(None) {
                break;
            }
            if self.advance(driver, batches) {
                driver += 1;
            }
        }
    }

    /// Begins the next game, taking over the memory of a finished one.
    fn begin(&mut self, used: Option<GameDriver>) -> bool {
        let Some(plan) = self.queue.next() else {
            return false;
        };
        let seed = plan.seed.unwrap_or(self.seed.of_game(plan.index));
        self.drivers
            .push(GameDriver::new(plan, seed, &self.rules, used));
        self.progress.started += 1;
        true
    }

    /// Lets one game go on until it waits. If it ends instead, the driver goes to the next game or,
    /// if there is none, to the last driver: the answer is then false.
    fn advance(&mut self, index: usize, batches: &mut [Batch]) -> bool {
        let (pending, progress) = (&mut self.pending, &mut self.progress);
        let driver = &mut self.drivers[index];
        let stop = driver.advance(
            &self.rules,
            &mut self.scratch,
            |seat, game, moves, known| {
                let batch = &mut batches[seat];
                batch.push_packed(game, moves.iter().copied());
                let lookup = pending[seat].ask(index, batch, known);
                match lookup {
                    Lookup::Queued => progress.evaluations += 1,
                    Lookup::Shared | Lookup::Cached => progress.cache_hits += 1,
                }
                lookup == Lookup::Cached
            },
        );
        match stop {
            Step::NeedsEvaluation => true,
            Step::Over(record) => {
                self.finish(index, *record);
                false
            }
        }
    }

    fn finish(&mut self, index: usize, record: GameRecord) {
        let driver = self.drivers.swap_remove(index);
        self.progress.finished += 1;
        self.progress.positions += record.plies.len() as u64;
        self.progress.visits += driver.visits();
        self.finished.push(record);
        if self.begin(Some(driver)) {
            let last = self.drivers.len() - 1;
            self.drivers.swap(index, last);
        }
    }

    /// Gives every waiting game its answer; `answers` are those to the batches of the last
    /// [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if an answer does not fit its batch or is not finite. No game has then
    /// moved, and `apply` may be called again.
    pub fn apply(&mut self, answers: &[Evaluations]) -> Result<(), EvaluatorError> {
        let missing = || EvaluatorError("an evaluator gave no answer".to_owned());
        for (index, pending) in self.pending.iter().enumerate() {
            pending.check(answers.get(index).ok_or_else(missing)?)?;
        }
        for (pending, answer) in self.pending.iter_mut().zip(answers) {
            pending.keep(answer);
            for (driver, place) in &pending.waiting {
                let (logits, value) = (pending.logits(answer, *place), answer.values[*place]);
                self.drivers[*driver].answer(logits, value, &self.rules);
            }
            pending.clear();
        }
        Ok(())
    }

    /// The games that ended since the last call, in the order in which they did.
    pub fn finished(&mut self) -> std::vec::Drain<'_, GameRecord> {
        self.finished.drain(..)
    }

    /// Changes how many games are played at a time (at least 1). Games in hand beyond that wait.
    pub fn set_concurrency(&mut self, concurrency: usize) {
        self.concurrency = concurrency.max(1);
    }

    /// Begins no more games; those in hand go on.
    pub fn stop_new(&mut self) {
        self.queue = Vec::new().into_iter();
    }

    /// Whether all games have ended.
    pub fn done(&self) -> bool {
        self.drivers.is_empty() && self.queue.len() == 0
    }

    /// Games in hand.
    pub const fn running(&self) -> usize {
        self.drivers.len()
    }

    /// The games in hand, in no order.
    pub fn games_in_hand(&self) -> impl Iterator<Item = GameInHand<'_>> {
        self.drivers.iter().map(GameDriver::in_hand)
    }

    /// What has been done so far.
    pub fn progress(&self) -> Progress {
        let mut progress = self.progress;
        progress.positions += self
            .drivers
            .iter()
            .map(|driver| driver.plies() as u64)
            .sum::<u64>();
        progress.visits += self.drivers.iter().map(GameDriver::visits).sum::<u64>();
        progress
    }

    /// Plays all games to their end; evaluator 0 is the only one, or the candidate's.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if an evaluator failed or there are too few.
    pub fn run(
        &mut self,
        evaluators: &mut [&mut dyn Evaluator],
    ) -> Result<Vec<GameRecord>, EvaluatorError> {
        let mut games = Vec::new();
        self.run_each(evaluators, || false, |game| games.push(game))?;
        Ok(games)
    }

    /// Plays until all games have ended or it is time to stop, and gives each game to `each` as it ends.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_each(
        &mut self,
        evaluators: &mut [&mut dyn Evaluator],
        mut is_time: impl FnMut() -> bool,
        mut each: impl FnMut(GameRecord),
    ) -> Result<(), EvaluatorError> {
        if evaluators.len() < self.pending.len() {
            return Err(EvaluatorError("this job needs two evaluators".to_owned()));
        }
        let mut batches: Vec<Batch> = evaluators
            .iter()
            .map(|e| Batch::new(e.input(), e.policy()))
            .collect();
        let mut answers = vec![Evaluations::default(); evaluators.len()];
        loop {
            self.finished().for_each(&mut each);
            if self.done() || is_time() {
                return Ok(());
            }
            self.gather(&mut batches);
            for ((evaluator, batch), answer) in
                evaluators.iter_mut().zip(&batches).zip(&mut answers)
            {
                answer.clear();
                if !batch.is_empty() {
                    evaluator.evaluate(batch, answer)?;
                }
            }
            self.apply(&answers)?;
        }
    }
}

/// What became of a question.
#[derive(PartialEq, Eq)]
enum Lookup {
    /// It is in the batch.
    Queued,
    /// It was in the batch already.
    Shared,
    /// The answer was in the cache.
    Cached,
}

impl PendingEvaluations {
    fn clear(&mut self) {
        self.waiting.clear();
        self.items.clear();
        self.places.clear();
    }

    /// Asks for the last position of the batch on behalf of a driver; takes it out again if it need
    /// not be evaluated.
    fn ask(&mut self, driver: usize, batch: &mut Batch, known: &mut Evaluations) -> Lookup {
        let place = batch.len() - 1;
        let mut key = CacheKey::default();
        if let Some(cache) = &self.cache {
            key = CacheKey::new(batch, place);
            if let Some(other) = self.places.get(&key) {
                self.waiting.push((driver, *other));
                batch.pop();
                return Lookup::Shared;
            }
            if cache.get(key, known) {
                batch.pop();
                return Lookup::Cached;
            }
            self.places.insert(key, place);
        }
        self.items.push((key, batch.moves().len()));
        self.waiting.push((driver, place));
        Lookup::Queued
    }

    fn check(&self, answer: &Evaluations) -> Result<(), EvaluatorError> {
        let logits = self.items.last().map_or(0, |(_, end)| *end);
        if answer.values.len() != self.items.len() || answer.logits.len() != logits {
            return Err(EvaluatorError(format!(
                "asked for {} values and {logits} logits, got {} and {}",
                self.items.len(),
                answer.values.len(),
                answer.logits.len(),
            )));
        }
        let values = answer.values.iter().map(|v| v.win + v.draw + v.loss);
        // All are looked at, whatever the first says, so that several are at a time.
        let finite = |all: bool, x: f32| all & x.is_finite();
        if answer.logits.iter().copied().fold(true, finite) && values.fold(true, finite) {
            Ok(())
        } else {
            Err(EvaluatorError("an output is not finite".to_owned()))
        }
    }

    /// Puts the answers into the cache.
    fn keep(&self, answer: &Evaluations) {
        if let Some(cache) = &self.cache {
            for (place, (key, _)) in self.items.iter().enumerate() {
                cache.insert(*key, self.logits(answer, place), answer.values[place]);
            }
        }
    }

    fn logits<'a>(&self, answer: &'a Evaluations, place: usize) -> &'a [f32] {
        let start = place
            .checked_sub(1)
            .map_or(0, |before| self.items[before].1);
        &answer.logits[start..self.items[place].1]
    }
}
