//! Networks on libtorch: evaluate and train. The only crate that links libtorch.
//!
//! The numbers come from `rookery-model`, which knows files and weights. From them come the two things
//! that compute:
//!
//! ```text
//! rookery_model::Weights --infer--> NetworkEvaluator   (folded, on a device, behind `Evaluator`)
//!             ^      +--train--> Trainer               (one step a batch)
//!             +--------averaged weights----+
//! ```
//!
//! Modules in order of dependency: [`error`]; `cuda`, [`device`] and `precision`, where and in what
//! numbers to compute; `memory`, for the programs above as well; `tensors`; `convolution`, `graph`, the
//! computation written once for both uses; `folded` and `normed`, its two kinds of convolution; `host`, the kernels of
//! `rookery-backend-cpu` on tensors; `unpack`, from packed positions to planes; [`infer`]; `backend`, all that behind the
//! engine's interface; `optim`, `losses`, `checkpoint` and [`train`].

mod backend;
mod checkpoint;
mod convolution;
mod cuda;
pub mod device;
pub mod error;
mod folded;
mod graph;
mod host;
pub mod infer;
mod losses;
mod memory;
mod normed;
mod optim;
mod precision;
mod tensors;
pub mod train;
mod unpack;

pub use backend::TorchBackend;
pub use device::{ComputeDevice, use_threads};
pub use error::NnError;
pub use infer::{Convolutions, FoldedNetwork, NetworkEvaluator};
pub use memory::keep_freed_memory;
pub use precision::has_bf16_instructions;
pub use train::{Ahead, LoadedBatch, Losses, Replies, TrainBatch, Trainer};
