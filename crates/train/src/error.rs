//! What can go wrong in training.

use rookery_backend_torch::TorchError;
use rookery_common::network::SpecError;
use rookery_model::ModelError;
use tch::TchError;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// libtorch failed, or a network, a file or a precision is not usable.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// A training batch whose parts do not fit each other or the network.
    #[error("the training batch is unusable: {0}")]
    Batch(String),
    /// Training has diverged.
    #[error("not every number is finite at training step {step}: {what}")]
    Diverged {
        /// What is not finite: a loss, the gradient, or a part of the state.
        what: String,
        /// Steps that had been taken.
        step: u64,
    },
    /// The bytes are no checkpoint, or one of another network or optimiser.
    #[error("not a usable checkpoint: {0}")]
    Checkpoint(String),
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        TorchError::from(error).into()
    }
}

impl From<ModelError> for TrainError {
    fn from(error: ModelError) -> Self {
        TorchError::from(error).into()
    }
}

impl From<SpecError> for TrainError {
    fn from(error: SpecError) -> Self {
        TorchError::from(error).into()
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, TrainError>;
