//! Trying a network on one position before it is played with.

use std::sync::Arc;

use rookery_common::chess::GameHistory;
use rookery_engine::{Backend, BackendError, Batch, Evaluations, Evaluator as _, EvaluatorError};
use rookery_model::{ModelError, Weights};
use shakmaty::Position as _;

/// Where networks are tried.
#[derive(Debug, Clone)]
pub struct Trial(pub Arc<dyn Backend>);

/// Why a network cannot be computed here.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ModelError),
    /// It cannot be loaded.
    #[error(transparent)]
    Load(#[from] BackendError),
    /// It does not evaluate.
    #[error(transparent)]
    Evaluate(#[from] EvaluatorError),
    /// Its answer makes no sense.
    #[error("it values the start position at {0:?}")]
    Value(rookery_engine::Wdl),
}

impl Trial {
    /// Loads a network from its file's bytes and evaluates the start position.
    ///
    /// # Errors
    ///
    /// [`TrialError`] saying why it cannot be computed here.
    pub fn run(&self, bytes: &[u8]) -> Result<(), TrialError> {
        let (_, weights) = Weights::from_bytes(bytes)?;
        let mut evaluator = self.0.load(&weights)?.evaluator();
        let mut batch = Batch::new(evaluator.input(), evaluator.policy());
        let game = GameHistory::default();
        batch.push(&game, &game.position().legal_moves());
        let mut answer = Evaluations::default();
        evaluator.evaluate(&batch, &mut answer)?;
        let value = answer.values.first().copied().unwrap_or_default();
        let sum = value.win + value.draw + value.loss;
        if (0.99..1.01).contains(&sum) {
            Ok(())
        } else {
            Err(TrialError::Value(value))
        }
    }
}
