//! What can be wrong with a network of Lc0.

use rookery_common::file_kind::FileKind;

/// Why a file is no usable network of Lc0, or a network cannot become one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lc0Error {
    /// The bytes cannot be unpacked.
    #[error("the file cannot be decompressed ({0}); download it again")]
    Gzip(String),
    /// It is too large once it is unpacked.
    #[error("the file unpacks to more than {0} bytes")]
    TooLarge(u64),
    /// It is no protobuf of a network.
    #[error("the file has not what marks networks (protobuf `Net`, magic 0x1c0)")]
    Magic,
    /// It is another kind of file.
    #[error("the file is {0}")]
    Other(FileKind),
    /// It is compressed, and another kind of file.
    #[error("the compressed file holds {0}")]
    Holds(FileKind),
    /// It is a network of ours, compressed.
    #[error("the compressed file holds a safetensors file; unpack it first, it needs no import")]
    PackedSafetensors,
    /// It is compressed, and empty.
    #[error("the compressed file holds nothing")]
    Nothing,
    /// It has the weights as text, as Lc0's first networks had.
    #[error(
        "the file has its weights as text; make a protobuf of it first (txt2proto.py of lczero-common)"
    )]
    Text,
    /// The protobuf is broken.
    #[error("the protobuf cannot be read ({0}); download it again")]
    Schema(String),
    /// It is a network of another kind.
    #[error("{what} {found} is not supported; supported is {supported}")]
    NotSupported {
        /// Which property.
        what: &'static str,
        /// What the file has, in Lc0's words.
        found: String,
        /// What it may have.
        supported: &'static str,
    },
    /// A layer is missing.
    #[error("layer {0} is missing")]
    Missing(String),
    /// A layer's length fits no network.
    #[error("layer {layer} has {numbers} numbers, expected are one or more times {unit}")]
    Shape {
        /// The layer.
        layer: String,
        /// How many numbers it has.
        numbers: usize,
        /// What it must be a multiple of.
        unit: usize,
    },
    /// A layer's length does not fit the others.
    #[error("layer {layer} has {found} bytes, expected are {expected}")]
    Length {
        /// The layer.
        layer: String,
        /// Its length.
        found: usize,
        /// The length that follows from other layers.
        expected: usize,
    },
    /// A layer holds numbers that cannot be computed with.
    #[error("layer {layer} holds {what}")]
    Value {
        /// The layer.
        layer: String,
        /// What was found.
        what: &'static str,
    },
    /// The network cannot be written as one of Lc0's.
    #[error("it has no networks with {what} {found}, only with {supported}")]
    NotInLc0 {
        /// Which property.
        what: &'static str,
        /// What the network has.
        found: &'static str,
        /// What it must have.
        supported: &'static str,
    },
}

/// A result of reading or writing Lc0's format.
pub(super) type Lc0Result<T> = Result<T, Lc0Error>;
