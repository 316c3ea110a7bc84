//! Networks on libtorch: build, load, save, evaluate, train. The only crate that links libtorch.
//!
//! A network is [`Weights`]: named tensors in memory, checked by `rookery-common` against the
//! specification in their file. From weights come the two things that compute:
//!
//! ```text
//! file --io--> Weights --infer--> NetworkEvaluator   (folded, on a device, behind `Evaluator`)
//!   ^           ^ |  ^
//!   +-----io----|-+  +---train--- Trainer            (one step a batch; exports averaged weights)
//!               +---- lc0, onnx: files of other programs
//! ```
//!
//! Modules in order of dependency: [`error`]; `cuda`, [`device`] and [`precision`], where and in what
//! numbers to compute; [`files`], written whole or not at all, and `memory`, for the programs above as
//! well; `tensors`; [`weights`], `init`, [`io`](mod@io); `convolution`, `graph`, the computation written once for both
//! uses; `folded` and `normed`, its two kinds of convolution; `host`, what a processor computes between
//! convolutions; `unpack` and `outputs`, from packed positions to planes and from raw outputs to legal
//! moves; [`infer`]; `optim`, `losses`, `checkpoint` and [`train`]; `plain`, the numbers as other
//! programs take them, [`lc0`] and [`onnx`]; [`network_file`], files of either format.

mod checkpoint;
mod convolution;
mod cuda;
pub mod device;
pub mod error;
pub mod files;
mod folded;
mod graph;
mod host;
pub mod infer;
mod init;
pub mod io;
pub mod lc0;
mod losses;
mod memory;
pub mod network_file;
mod normed;
pub mod onnx;
mod optim;
mod outputs;
mod plain;
pub mod precision;
mod tensors;
pub mod train;
mod unpack;
pub mod weights;

#[cfg(test)]
mod testing;

pub use device::{ComputeDevice, DeviceChoice, use_threads};
pub use error::NnError;
pub use infer::{Convolutions, FoldedNetwork, NetworkEvaluator, ParallelEvaluator};
pub use memory::{keep_freed_memory, peak_rss_bytes};
pub use network_file::NetworkFile;
pub use precision::Precision;
pub use train::{Ahead, LoadedBatch, Losses, Replies, TrainBatch, Trainer};
pub use weights::Weights;
