//! What a network is: its specification, its tensors, and its file.
//!
//! [`spec`] describes an architecture within bounds, or a [`program`] in its place, [`layout`] derives the names
//! and shapes of its tensors, [`auxiliary`] names the heads that only training uses, [`file`](mod@file) checks a
//! safetensors file against both without allocating a tensor. The crate `rookery-model` holds their numbers.

pub mod auxiliary;
mod error;
pub mod file;
pub mod layout;
pub mod program;
pub mod spec;

pub use auxiliary::AuxiliaryHead;
pub use error::SpecError;
pub use file::{NetworkFileError, VerifiedNetwork, program_file, verify};
pub use layout::{TensorLayout, tensors};
pub use program::Program;
pub use spec::{Activation, Architecture, NetworkSpec, PolicyHead, PolicySpec, Resnet, ValueHead};
