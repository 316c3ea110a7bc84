//! The network that comes with Rookery, part of every program that names it: `networks/small.safetensors`.
//!
//! ```
//! let weights = rookery_model::included::weights()?;
//! assert_eq!(weights.spec().shape(), "6x64");
//! # Ok::<(), rookery_model::ModelError>(())
//! ```

use crate::error::Result;
use crate::weights::Weights;

/// What command lines call it.
pub const NAME: &str = "small";

/// Its file, as `networks/README.md` describes it.
pub const FILE: &[u8] = include_bytes!("../../../networks/small.safetensors");

/// Reads it.
///
/// # Errors
///
/// As [`Weights::from_bytes`]; a test reads it.
pub fn weights() -> Result<Weights> {
    Ok(Weights::from_bytes(FILE)?.1)
}

#[cfg(test)]
mod tests {
    use rookery_common::signing::{RunKey, Signature};

    use super::*;

    #[test]
    fn it_is_read_and_small() {
        assert_eq!(weights().unwrap().spec().shape(), "6x64");
        assert!(FILE.len() < 2_000_000);
    }

    #[test]
    fn it_is_signed_by_the_key_beside_it() {
        let key = include_str!("../../../networks/rookery.pub");
        let key: RunKey = key.lines().nth(1).unwrap().parse().unwrap();
        let signature = include_str!("../../../networks/small.safetensors.minisig");
        key.verify(FILE, &Signature(signature.to_owned())).unwrap();
        key.verify(&FILE[1..], &Signature(signature.to_owned()))
            .unwrap_err();
    }
}
