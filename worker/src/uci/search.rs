//! One search: gather, evaluate, apply, until there is enough.

use std::time::{Duration, Instant};

use rookery_engine::search::{GatherBudget, Gathered, Searcher};
use rookery_engine::{Evaluations, Evaluator, EvaluatorError};

use super::control::Requests;
use super::limits::{Limits, Progress, Verdict};
use super::pace::Pace;
use super::player::GoOrder;
use super::report::Reporter;

/// Longest batch, so that `stop` is obeyed at once.
const LONGEST_BATCH: Duration = Duration::from_millis(50);
/// A batch takes no more than this share of the time left for the move.
const SHARE_OF_TIME: u32 = 4;
/// Visits for each leaf of a batch: batches grow with the tree, as the leaves of a large batch in
/// a small tree are poor ones.
const VISITS_PER_LEAF: u32 = 8;
/// How often the GUI hears of a search that waits.
const WAIT: Duration = Duration::from_millis(900);

/// A search that runs.
pub(super) struct Search<'a> {
    pub(super) order: &'a GoOrder,
    pub(super) limits: &'a Limits,
    pub(super) searcher: &'a mut Searcher,
    pub(super) evaluator: &'a mut dyn Evaluator,
    pub(super) gathered: &'a mut Gathered,
    pub(super) pace: &'a mut Pace,
    /// Most positions of one batch.
    pub(super) most_leaves: usize,
    pub(super) reporter: &'a mut Reporter,
}

impl Search<'_> {
    /// Searches until there is enough and the GUI allows an answer. The root is evaluated in any
    /// case.
    ///
    /// # Errors
    ///
    /// [`EvaluatorError`] if the evaluator fails.
    pub(super) fn run(&mut self) -> Result<(), EvaluatorError> {
        let mut answer = Evaluations::default();
        loop {
            let requests = self.order.control.requests();
            let evaluated = self.searcher.stats().visits > 0;
            if evaluated && requests.stop {
                break;
            }
            let can_go_on = self.can_go_on(requests);
            if evaluated && !can_go_on {
                if self.may_answer(requests) {
                    break;
                }
                self.reporter.report(self.searcher, &self.order.game);
                self.order.control.wait(requests, WAIT);
                continue;
            }
            self.advance(requests, &mut answer)?;
            self.reporter.report_news(self.searcher, &self.order.game);
        }
        self.reporter.report(self.searcher, &self.order.game);
        Ok(())
    }

    /// Whether there is something left to search, and reason to.
    fn can_go_on(&self, requests: Requests) -> bool {
        !self.searcher.is_over()
            && !self.searcher.is_exhausted()
            && !self.searcher.is_full(1)
            && self.limits.verdict(&self.progress(requests)) == Verdict::Continue
    }

    /// Whether the GUI accepts an answer now.
    fn may_answer(&self, requests: Requests) -> bool {
        let pondering = self.order.go.ponder && requests.ponder_hit.is_none();
        !pondering && !self.limits.is_endless()
    }

    /// One batch.
    fn advance(
        &mut self,
        requests: Requests,
        answer: &mut Evaluations,
    ) -> Result<(), EvaluatorError> {
        let room = self.room(requests);
        self.searcher.gather(room, self.gathered);
        let leaves = self.gathered.batch().len();
        if leaves == 0 {
            return self.searcher.apply(self.gathered, &Evaluations::default());
        }
        let began = Instant::now();
        if let Err(error) = self.evaluator.evaluate(self.gathered.batch(), answer) {
            self.searcher.abandon(self.gathered);
            return Err(error);
        }
        self.pace.note(leaves, began.elapsed());
        self.searcher.apply(self.gathered, answer)
    }

    /// How much the next batch may hold.
    fn room(&self, requests: Requests) -> GatherBudget {
        let left = self.limits.time_left(self.clock(requests));
        let time = left.map_or(LONGEST_BATCH, |left| {
            (left / SHARE_OF_TIME).min(LONGEST_BATCH)
        });
        let planned = self.searcher.planned_visits();
        let grown = (planned / VISITS_PER_LEAF).max(1) as usize;
        let visits = self.limits.nodes.map_or(u32::MAX, |nodes| {
            nodes.saturating_sub(1).saturating_sub(planned).max(1)
        });
        GatherBudget {
            leaves: self.pace.largest_within(time, grown.min(self.most_leaves)),
            visits,
        }
    }

    /// How long the clock has been running; not at all while the GUI ponders.
    fn clock(&self, requests: Requests) -> Option<Duration> {
        let since = if self.order.go.ponder {
            requests.ponder_hit
        } else {
            Some(self.order.received)
        };
        since.map(|since| since.elapsed())
    }

    fn progress(&self, requests: Requests) -> Progress {
        let stats = self.searcher.stats();
        let seconds = self.order.received.elapsed().as_secs_f64();
        Progress {
            clock: self.clock(requests),
            speed: stats.new_visits as f64 / seconds.max(1e-6),
            next_batch: self.pace.time_of(1),
            stats,
            lead: self.searcher.margin(),
            settled: self.searcher.is_settled(),
        }
    }
}
