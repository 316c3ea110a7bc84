//! Network files and weights: read, checked, written, initialised, folded, and exchanged with Lc0 and ONNX.
//!
//! [`Weights`] are a network in memory: its specification and a slice of `f32` for each tensor that
//! [`layout`](rookery_common::network::layout) derives from it. Nothing here computes a network, and
//! nothing links libtorch; the backends do.
//!
//! ```text
//! Rookery's file --io---> Weights --fold--> backends
//!                <--io---  ^   |
//! random numbers --init----+   +--export_weights--> lc0, onnx
//! smaller Weights --growth-+
//! Lc0's file ------lc0-----+
//! ```
//!
//! # Examples
//!
//! ```
//! use rookery_common::network::NetworkSpec;
//! use rookery_model::{Weights, lc0};
//!
//! # fn main() -> Result<(), rookery_model::ModelError> {
//! let weights = Weights::random(NetworkSpec::resnet(2, 16), 1)?;
//! let file = weights.to_bytes()?;
//! let (verified, read) = Weights::from_bytes(&file)?;
//! assert_eq!(verified.spec.shape(), "2x16");
//! assert_eq!(read.get("input.weight")?.shape(), [16, 112, 3, 3]);
//!
//! let for_lc0 = lc0::to_bytes(&read)?;
//! assert_eq!(lc0::from_bytes(&for_lc0)?.spec(), read.spec());
//! # Ok(())
//! # }
//! ```

pub mod error;
mod export_weights;
pub mod folding;
mod growth;
pub mod included;
mod init;
pub mod io;
pub mod lc0;
pub mod network_file;
pub mod onnx;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod weights;

pub use error::ModelError;
pub use folding::FoldedConvolution;
pub use network_file::NetworkFile;
pub use weights::{Tensor, Weights};
