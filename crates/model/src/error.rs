//! What can be wrong with a network's file or weights.

use std::path::PathBuf;

use rookery_common::network::{NetworkFileError, Program, SpecError};

use crate::lc0::Lc0Error;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file or bytes are no usable network.
    #[error("RK-0604: not a usable network: {0}")]
    Network(#[from] NetworkFileError),
    /// The file is no usable network of Lc0, or the network cannot become one.
    #[error("RK-0605: Lc0's network format: {0}")]
    Lc0(#[from] Lc0Error),
    /// The specification is outside the bounds.
    #[error("the network specification is not allowed: {0}")]
    Spec(#[from] SpecError),
    /// The file or specification is that of a program.
    #[error("this is the program {0}, and no network that could be computed")]
    Program(Program),
    /// Weights do not fit their specification.
    #[error(
        "tensor {name:?} is missing or has the wrong shape; its specification asks for {expected:?}"
    )]
    Tensor {
        /// The tensor.
        name: String,
        /// The shape that the specification asks for.
        expected: Vec<u32>,
    },
    /// Another block would change what the network computes.
    #[error(
        "a network with Mish cannot get more blocks and stay the same network; give it more filters, or \
         begin one with ReLU"
    )]
    Grow,
    /// The weights are finite but so large that the network cannot be computed.
    #[error("tensor {0:?} is not finite once its normalisation is folded into it")]
    NotComputable(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ModelError>;
