//! One batch on several processor threads.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};

use crate::backend::LoadedNetwork;
use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError};

/// Evaluates each batch in as many parts as it has threads, side by side, which on a processor is quicker than
/// convolutions that share threads: those wait for one another after each. For a search of one game; many games
/// better share out themselves.
pub struct ParallelEvaluator {
    own: Box<dyn Evaluator + Send>,
    own_part: Batch,
    helpers: Vec<Helper>,
}

/// A thread that evaluates parts of batches until the last sender is gone.
#[derive(Debug)]
struct Helper {
    tasks: Sender<Task>,
    done: Receiver<Done>,
    /// Its buffers while it has nothing to do.
    idle: Option<Task>,
}

#[derive(Debug)]
struct Task {
    part: Batch,
    answer: Evaluations,
}

type Done = (Task, Result<(), EvaluatorError>);

impl ParallelEvaluator {
    /// An evaluator of the network on this number of threads; the caller's is the first.
    ///
    /// # Errors
    ///
    /// [`std::io::Error`] if a thread cannot be started.
    pub fn new(network: &Arc<dyn LoadedNetwork>, threads: NonZeroUsize) -> std::io::Result<Self> {
        let own = Arc::clone(network).evaluator();
        let helpers = (1..threads.get()).map(|_| Helper::start(Arc::clone(network).evaluator()));
        Ok(Self {
            own_part: Batch::new(own.input(), own.policy()),
            helpers: helpers.collect::<std::io::Result<_>>()?,
            own,
        })
    }

    /// Waits for the parts that were given away, all of them whatever came of the first.
    fn collect(helpers: &mut [Helper], answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        let mut result = Ok(());
        for helper in helpers {
            result = result.and(helper.collect(answer));
        }
        result
    }
}

impl Evaluator for ParallelEvaluator {
    fn input(&self) -> InputEncoding {
        self.own.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.own.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        let parts = batch.len().min(1 + self.helpers.len());
        // An evaluator of its own refuses batches of other encodings, which cannot be shared out.
        if parts < 2 || (batch.input(), batch.policy()) != (self.input(), self.policy()) {
            return self.own.evaluate(batch, answer);
        }
        let start_of = |part: usize| part * batch.len() / parts;
        let busy = &mut self.helpers[..parts - 1];
        for (helper, part) in busy.iter_mut().zip(1..) {
            helper.give(batch, start_of(part)..start_of(part + 1));
        }
        self.own_part.clear();
        (0..start_of(1)).for_each(|index| self.own_part.push_from(batch, index));
        let own = self.own.evaluate(&self.own_part, answer);
        let others = Self::collect(busy, answer);
        own.and(others)
    }
}

impl Helper {
    fn start(mut evaluator: Box<dyn Evaluator + Send>) -> std::io::Result<Self> {
        let part = Batch::new(evaluator.input(), evaluator.policy());
        let (tasks, given) = channel::<Task>();
        let (hand_in, done) = channel();
        let work = move || {
            for mut task in given {
                let result = evaluator.evaluate(&task.part, &mut task.answer);
                if hand_in.send((task, result)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("evaluate".into()).spawn(work)?;
        Ok(Self {
            tasks,
            done,
            idle: Some(Task {
                part,
                answer: Evaluations::default(),
            }),
        })
    }

    /// Lets it evaluate these positions.
    fn give(&mut self, batch: &Batch, positions: std::ops::Range<usize>) {
        // Without buffers it has ended, which `collect` says.
        if let Some(mut task) = self.idle.take() {
            task.part.clear();
            positions.for_each(|index| task.part.push_from(batch, index));
            // As above if the thread is gone.
            let _ = self.tasks.send(task);
        }
    }

    /// Adds what it was given to an answer.
    fn collect(&mut self, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        let Ok((task, result)) = self.done.recv() else {
            return Err(EvaluatorError("a thread that evaluates has ended".into()));
        };
        answer.logits.extend_from_slice(&task.answer.logits);
        answer.values.extend_from_slice(&task.answer.values);
        self.idle = Some(task);
        result
    }
}
