//! Evaluators without a network and batches of random positions, for tests and benchmarks; all of them deterministic.

use rookery_common::encoding::{InputEncoding, PolicyEncoding};

use crate::evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};

mod hand;
mod positions;

pub use hand::HandEvaluator;
pub use positions::random_batch;

/// Finds every move equally likely and every position balanced.
#[derive(Debug, Clone, Copy)]
pub struct UniformEvaluator {
    input: InputEncoding,
    policy: PolicyEncoding,
}

impl UniformEvaluator {
    /// An evaluator that takes these encodings.
    pub const fn new(input: InputEncoding, policy: PolicyEncoding) -> Self {
        Self { input, policy }
    }
}

impl Default for UniformEvaluator {
    fn default() -> Self {
        Self::new(InputEncoding::Classic19, PolicyEncoding::Lc01858)
    }
}

impl Evaluator for UniformEvaluator {
    fn input(&self) -> InputEncoding {
        self.input
    }

    fn policy(&self) -> PolicyEncoding {
        self.policy
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        answer.clear();
        answer.logits.resize(batch.moves().len(), 0.0);
        answer.values.resize(batch.len(), Wdl::from_q(0.0));
        Ok(())
    }
}
