//! What a network is: its specification, its tensors, and its file.
//!
//! [`spec`] describes an architecture within bounds, or a [`program`] in its place, [`layers`] derives what is
//! computed, [`layout`] the names, shapes and roles of its tensors, [`auxiliary`] names the heads that only training uses, [`file`](mod@file) checks a
//! safetensors file against both without allocating a tensor. The crate `rookery-model` holds their numbers.

pub mod auxiliary;
mod error;
pub mod file;
pub mod layers;
pub mod layout;
pub mod program;
mod program_file;
pub mod spec;

pub use auxiliary::AuxiliaryHead;
pub use error::SpecError;
pub use file::{NetworkFileError, VerifiedNetwork, verify};
pub use layers::{
    AuxiliaryLayers, Convolution, Dense, DenseHead, Layers, NormalizedConvolution, PolicyLayers,
    PolicyOutput, ResidualBlock, ResidualTower, SquareHead, SqueezeExcitation, Tower,
};
pub use layout::{Role, TensorLayout, tensors};
pub use program::Program;
pub use program_file::program_file;
pub use spec::{Activation, Architecture, NetworkSpec, PolicyHead, PolicySpec, Resnet, ValueHead};
