//! Backend of libtorch: CUDA, Apple's GPUs, bf16 on processors.
//!
//! `rookery-model` knows files and weights. Of weights a [`NetworkEvaluator`] is made: folded, on a device, behind
//! the engine's `Evaluator`. [`TorchBackend`] is all of it behind the engine's `Backend`. `rookery-train` computes
//! with the same [`graph`].
//!
//! Modules in order of dependency: [`error`]; `cuda`, [`device`] and [`precision`], where and in what
//! numbers to compute; `memory`, for the programs above as well; [`tensors`]; [`convolution`] and [`graph`], the
//! computation written once for evaluation and training; `folded`, its convolutions for evaluation; `host`, the kernels of
//! `rookery-backend-cpu` on tensors; [`unpack`], from packed positions to planes; [`infer`]; `backend`.

mod backend;
pub mod convolution;
mod cuda;
pub mod device;
pub mod error;
mod folded;
pub mod graph;
mod host;
pub mod infer;
mod memory;
pub mod precision;
pub mod tensors;
pub mod unpack;

pub use backend::TorchBackend;
pub use device::{ComputeDevice, use_threads};
pub use error::TorchError;
pub use infer::{Convolutions, InferenceNetwork, NetworkEvaluator};
pub use memory::keep_freed_memory;
pub use precision::has_bf16_instructions;
