//! Training of networks on libtorch.
//!
//! ```text
//! rookery_model::Weights --> Trainer, one optimiser step a batch --> averaged rookery_model::Weights
//! ```
//!
//! Modules in order of dependency: [`error`]; `precision`, in what numbers to train; `training_graph`, the graph of
//! `rookery-backend-torch` with convolutions and normalisations apart; `optimizer`, `losses` and `checkpoint`;
//! [`trainer`].

mod checkpoint;
pub mod error;
mod losses;
mod optimizer;
mod precision;
pub mod trainer;
mod training_graph;

pub use error::TrainError;
pub use trainer::{
    AuxiliaryTargets, BoardsAhead, LoadedBatch, Losses, OpponentReplyTargets, TrainBatch, Trainer,
};
