//! What can be wrong with a specification.

use super::program::Program;
use super::spec::{CREATOR_CHARS, MAX_PARAMETERS};

/// A specification outside the bounds, or one that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A size is outside its bounds.
    #[error("{what} is {value}, allowed is {low} to {high}")]
    OutOfBounds {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// Smallest allowed.
        low: u64,
        /// Largest allowed.
        high: u64,
    },
    /// Filters are not a multiple of eight.
    #[error("filters is {0}, it must be a multiple of 8")]
    FiltersNotMultipleOfEight(u32),
    /// The squeeze-excitation ratio does not divide the filters.
    #[error("se_ratio {se_ratio} does not divide the {filters} filters")]
    SeRatio {
        /// The ratio.
        se_ratio: u32,
        /// The filters.
        filters: u32,
    },
    /// The policy encoding has no convolution head.
    #[error("policy {0} has no convolution head; use a dense one")]
    NoConvolutionHead(&'static str),
    /// A head is listed more than once.
    #[error("the auxiliary head {0} is there twice")]
    HeadTwice(&'static str),
    /// The value head's dropout is no share that can be trained with.
    #[error("value_dropout must be a number from 0 to 0.9")]
    Dropout,
    /// The creator's name is too long, or would mislead its reader.
    #[error(
        "creator may have {CREATOR_CHARS} characters, none of control and none that changes the \
         direction of writing"
    )]
    Creator,
    /// The network has too many parameters.
    #[error("the network would have {0} parameters, allowed are {MAX_PARAMETERS}")]
    TooLarge(u64),
    /// What is asked for is of a network, and this is a program.
    #[error("this is the program {0}, and no network that could be computed")]
    Program(Program),
    /// A program is described as if it were a network.
    #[error(
        "the program {0} has neither sizes nor a history: its specification gives its name only"
    )]
    MoreThanProgram(Program),
    /// A shape such as `6x64` could not be read.
    #[error("RK-0606: {0:?} is not a network shape; write blocks x filters, for example 6x64")]
    Shape(String),
}
