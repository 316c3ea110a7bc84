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

use super::job::{GamePlan, Job, JobError};
use super::judges::Judges;
use super::rules::Rules;
use super::slot::{Scratch, Slot, Stop};
use crate::cache::{CacheKey, EvaluationCache};
use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError};

/// Running and waiting games of one job.
#[derive(Debug)]
pub struct Table {
    rules: Rules,
    seed: Seed,
    /// Games that have not begun.
    queue: std::vec::IntoIter<GamePlan>,
    concurrency: usize,
    slots: Vec<Slot>,
    /// For each evaluator.
    desks: Vec<Desk>,
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

/// What is between the table and one evaluator.
#[derive(Debug, Default)]
struct Desk {
    cache: Option<Arc<EvaluationCache>>,
    /// Slots that wait, with the place in the batch for which they do.
    waiting: Vec<(usize, usize)>,
    /// Each position of the batch: its key (if there is a cache) and where its logits end.
    items: Vec<(CacheKey, usize)>,
    /// The places of the positions in the batch.
    places: HashMap<CacheKey, usize>,
}

impl Table {
    /// A table that plays at most `concurrency` (at least 1) of the job's games at a time.
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
        let desk = |index| Desk {
            cache: caches.get(index).cloned(),
            ..Desk::default()
        };
        Ok(Self {
            rules: Rules::of(&job.work),
            seed: job.seed,
            queue: job.work.plans()?.into_iter(),
            concurrency: concurrency.max(1),
            slots: Vec::new(),
            desks: (0..job.work.evaluators()).map(desk).collect(),
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
    /// these. The batches' old content is dropped. All are empty if and only if the table is
    /// [`done`](Self::done).
    ///
    /// # Panics
    ///
    /// If there are fewer batches than evaluators.
    pub fn gather(&mut self, batches: &mut [Batch]) {
        assert!(
            batches.len() >= self.desks.len(),
            "a batch for each evaluator"
        );
        batches.iter_mut().for_each(Batch::clear);
        self.desks.iter_mut().for_each(Desk::clear);
        let mut slot = 0;
        while slot < self.concurrency {
            if slot == self.slots.len() && !self.begin(None) {
                break;
            }
            if self.advance(slot, batches) {
                slot += 1;
            }
        }
    }

    /// Begins the next game, taking over the memory of a finished one.
    fn begin(&mut self, used: Option<Slot>) -> bool {
        let Some(plan) = self.queue.next() else {
            return false;
        };
        let seed = plan.seed.unwrap_or(self.seed.of_game(plan.index));
        self.slots.push(Slot::new(plan, seed, &self.rules, used));
        self.progress.started += 1;
        true
    }

    /// Lets one game go on until it waits. If it ends instead, the slot goes to the next game or,
    /// if there is none, to the last slot: the answer is then false.
    fn advance(&mut self, index: usize, batches: &mut [Batch]) -> bool {
        let (desks, progress) = (&mut self.desks, &mut self.progress);
        let slot = &mut self.slots[index];
        let stop = slot.advance(
            &self.rules,
            &mut self.scratch,
            |seat, game, moves, known| {
                let batch = &mut batches[seat];
                batch.push_packed(game, moves.iter().copied());
                let asked = desks[seat].ask(index, batch, known);
                match asked {
                    Asked::Waits => progress.evaluations += 1,
                    Asked::WaitsWithOther | Asked::Known => progress.cache_hits += 1,
                }
                asked == Asked::Known
            },
        );
        match stop {
            Stop::Waits => true,
            Stop::Over(record) => {
                self.finish(index, *record);
                false
            }
        }
    }

    fn finish(&mut self, index: usize, record: GameRecord) {
        let slot = self.slots.swap_remove(index);
        self.progress.finished += 1;
        self.progress.positions += record.plies.len() as u64;
        self.progress.visits += slot.visits();
        self.finished.push(record);
        if self.begin(Some(slot)) {
            let last = self.slots.len() - 1;
            self.slots.swap(index, last);
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
        for (index, desk) in self.desks.iter().enumerate() {
            desk.check(answers.get(index).ok_or_else(missing)?)?;
        }
        for (desk, answer) in self.desks.iter_mut().zip(answers) {
            desk.keep(answer);
            for (slot, place) in &desk.waiting {
                let (logits, value) = (desk.logits(answer, *place), answer.values[*place]);
                self.slots[*slot].answer(logits, value, &self.rules);
            }
            desk.clear();
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
        self.slots.is_empty() && self.queue.len() == 0
    }

    /// Games in hand.
    pub const fn running(&self) -> usize {
        self.slots.len()
    }

    /// The games in hand, in no order.
    pub fn games_in_hand(&self) -> impl Iterator<Item = GameInHand<'_>> {
        self.slots.iter().map(Slot::in_hand)
    }

    /// What has been done so far.
    pub fn progress(&self) -> Progress {
        let mut progress = self.progress;
        progress.positions += self
            .slots
            .iter()
            .map(|slot| slot.plies() as u64)
            .sum::<u64>();
        progress.visits += self.slots.iter().map(Slot::visits).sum::<u64>();
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
        self.run_until(evaluators, || false)
    }

    /// Plays until all games have ended or it is time to stop, and gives those that ended.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_until(
        &mut self,
        evaluators: &mut [&mut dyn Evaluator],
        mut is_time: impl FnMut() -> bool,
    ) -> Result<Vec<GameRecord>, EvaluatorError> {
        if evaluators.len() < self.desks.len() {
            return Err(EvaluatorError("this job needs two evaluators".to_owned()));
        }
        let mut batches: Vec<Batch> = evaluators
            .iter()
            .map(|e| Batch::new(e.input(), e.policy()))
            .collect();
        let mut answers = vec![Evaluations::default(); evaluators.len()];
        while !self.done() && !is_time() {
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
        Ok(self.finished().collect())
    }
}

/// What became of a question.
#[derive(PartialEq, Eq)]
enum Asked {
    /// It is in the batch.
    Waits,
    /// It was in the batch already.
    WaitsWithOther,
    /// The answer was in the cache.
    Known,
}

impl Desk {
    fn clear(&mut self) {
        self.waiting.clear();
        self.items.clear();
        self.places.clear();
    }

    /// Asks for the last position of the batch on behalf of a slot; takes it out again if it need
    /// not be evaluated.
    fn ask(&mut self, slot: usize, batch: &mut Batch, known: &mut Evaluations) -> Asked {
        let place = batch.len() - 1;
        let mut key = CacheKey::default();
        if let Some(cache) = &self.cache {
            key = CacheKey::of(batch, place);
            if let Some(other) = self.places.get(&key) {
                self.waiting.push((slot, *other));
                batch.pop();
                return Asked::WaitsWithOther;
            }
            if cache.get(key, known) {
                batch.pop();
                return Asked::Known;
            }
            self.places.insert(key, place);
        }
        self.items.push((key, batch.moves().len()));
        self.waiting.push((slot, place));
        Asked::Waits
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
