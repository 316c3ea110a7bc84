//! Networks of Lc0 (<https://lczero.org>): its `.pb.gz` files, read and written.
//!
//! A Rookery network with input `lc0-112` and policy `lc0-1858` is an Lc0 residual network layer
//! for layer. Two things differ and are translated here: Lc0's rule50 plane is not divided by 99, and
//! its numbers usually have 16 bits.
//!
//! ```text
//! file --gzip--> protobuf --scan--> blocks --wire--> Net --formats, import--> Weights
//! file <-gzip--- protobuf <------------------ Net <---------------- export--- Weights
//! ```
//!
//! A file may come from anyone. Nothing is allocated in proportion to what it claims: it is
//! unpacked up to a limit, its blocks are counted before they are decoded, and every layer must
//! be exactly as long as the specification that follows from the file, which is checked first.

mod convolution;
mod error;
mod export;
mod formats;
pub(crate) mod gzip;
mod import;
mod layer;
mod scan;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::error::Result;
use crate::io::read_bounded;
use crate::weights::Weights;

pub use error::Lc0Error;
pub use export::{holds, to_bytes};
pub use import::from_bytes;

/// Whether a file begins as Lc0's do, compressed or not, and none of ours.
pub(crate) fn is_lc0(bytes: &[u8]) -> bool {
    bytes.starts_with(&gzip::GZIP) || import::has_magic(bytes) || import::is_text(bytes)
}

/// Reads a network file of Lc0.
///
/// # Errors
///
/// [`ModelError::File`](crate::ModelError::File) if it cannot be read,
/// [`ModelError::Lc0`](crate::ModelError::Lc0) if it is not a network or one that is not supported.
pub fn read(path: &Path) -> Result<Weights> {
    from_bytes(&read_bounded(path, gzip::MAX_BYTES)?)
}
