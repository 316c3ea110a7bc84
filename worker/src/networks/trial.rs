//! Trying a network on one position before it is played with.

use std::sync::Arc;

use rookery_common::chess::GameHistory;
use rookery_common::ids::ContentHash;
use rookery_engine::{BackendError, Batch, Evaluations, Evaluator as _, Wdl};
use rookery_model::{ModelError, Weights};
use shakmaty::Position as _;

use crate::device_pool::DevicePool;

/// Where networks are tried.
#[derive(Debug, Clone)]
pub struct Trial(pub Arc<DevicePool>);

/// Why a network cannot be computed here.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ModelError),
    /// No device loads or evaluates it.
    #[error(transparent)]
    Compute(#[from] BackendError),
    /// Its answer makes no sense.
    #[error("it values the start position at {0:?}")]
    Value(Wdl),
}

impl Trial {
    /// Loads a network from its file's bytes and evaluates the start position, on each device that computes side by side with
    /// others, or on what takes its place.
    ///
    /// # Errors
    ///
    /// [`TrialError`] saying why it cannot be computed here.
    pub fn run(&self, bytes: &[u8]) -> Result<(), TrialError> {
        let (_, weights) = Weights::from_bytes(bytes)?;
        let hash = ContentHash::of(bytes);
        let game = GameHistory::default();
        for lane in 0..self.0.lanes() {
            let tried = self.0.try_each(lane, hash, |backend| {
                let mut evaluator = backend.load(&weights)?.evaluator();
                let mut batch = Batch::new(evaluator.input(), evaluator.policy());
                batch.push(&game, &game.position().legal_moves());
                let mut answer = Evaluations::default();
                evaluator.evaluate(&batch, &mut answer)?;
                Ok(answer.values.first().copied().unwrap_or_default())
            });
            let (_, value) = tried?;
            if !value.is_distribution() {
                return Err(TrialError::Value(value));
            }
        }
        Ok(())
    }
}
