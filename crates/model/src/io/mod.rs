//! Network files: bytes to [`Weights`] and back.
//!
//! Bytes are verified by `rookery_common::network::verify` before a tensor is allocated.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use half::f16;
use rookery_common::ids::ContentHash;
use rookery_common::network::file::{MAX_FILE_BYTES, SPEC_KEY};
use rookery_common::network::{NetworkFileError, VerifiedNetwork, tensors, verify};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{ModelError, Result};
use crate::weights::Weights;
use rookery_common::files;

impl Weights {
    /// Reads a network from the bytes of its file, after full verification.
    ///
    /// # Errors
    ///
    /// [`ModelError::Network`] with the first thing that is wrong, [`ModelError::Program`] if the file is
    /// that of a program.
    pub fn from_bytes(bytes: &[u8]) -> Result<(VerifiedNetwork, Self)> {
        let verified = verify(bytes)?;
        let format = |e: safetensors::SafeTensorError| NetworkFileError::Format(e.to_string());
        let file = SafeTensors::deserialize(bytes).map_err(format)?;
        let mut all = BTreeMap::new();
        for layout in tensors(&verified.spec) {
            let view = file.tensor(&layout.name).map_err(format)?;
            all.insert(layout.name, numbers(&view));
        }
        let weights = Self::new(verified.spec.clone(), all)?;
        Ok((verified, weights))
    }

    /// The bytes of this network's file; the same network always gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`ModelError::Network`] if a number is not finite.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.serialized(Dtype::F32, f32::to_le_bytes)
    }

    /// The same in 16-bit numbers, half the size: each is rounded to the nearest of IEEE 754's binary16.
    ///
    /// # Errors
    ///
    /// [`ModelError::Network`] if a number is not finite or, rounded, would be infinite: from 65,520 on.
    pub fn to_half_bytes(&self) -> Result<Vec<u8>> {
        self.serialized(Dtype::F16, |number| f16::from_f32(number).to_le_bytes())
    }

    /// The network's file of numbers of this type.
    fn serialized<const N: usize>(
        &self,
        dtype: Dtype,
        to_bytes: impl Fn(f32) -> [u8; N],
    ) -> Result<Vec<u8>> {
        let mut parts = Vec::new();
        for layout in tensors(self.spec()) {
            let numbers = self.get(&layout.name)?.values().iter();
            let bytes = numbers.flat_map(|number| to_bytes(*number));
            parts.push((
                layout.name,
                layout.shape.iter().map(|n| *n as usize).collect(),
                bytes.collect(),
            ));
        }
        let spec = serde_json::to_string(self.spec())
            .map_err(|error| NetworkFileError::SpecSyntax(error.to_string()))?;
        let bytes = to_safetensors(&parts, dtype, SPEC_KEY, spec)?;
        verify(&bytes)?;
        Ok(bytes)
    }

    /// Reads and verifies a network file.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`] if it cannot be read, [`ModelError::Network`] if it is no usable network,
    /// [`ModelError::Program`] if it is a program.
    pub fn read(path: &Path) -> Result<(VerifiedNetwork, Self)> {
        Self::from_bytes(&read_bounded(path, MAX_FILE_BYTES)?)
    }

    /// Writes the network's file, whole or not at all, and gives its name.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`] if it cannot be written, [`ModelError::Network`] if a number is not finite.
    pub fn write(&self, path: &Path) -> Result<ContentHash> {
        let bytes = self.to_bytes()?;
        write_whole(path, &bytes)?;
        Ok(ContentHash::of(&bytes))
    }
}

/// The numbers of a verified tensor, which have 32 or 16 bits.
fn numbers(view: &TensorView<'_>) -> Vec<f32> {
    if view.dtype() == Dtype::F16 {
        let halves = view.data().as_chunks().0.iter();
        return halves.map(|b| f16::from_le_bytes(*b).to_f32()).collect();
    }
    let singles = view.data().as_chunks().0.iter();
    singles.map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// A tensor of a file: name, shape, little-endian numbers.
pub type Part = (String, Vec<usize>, Vec<u8>);

/// Serialises tensors of one type of number with one entry of metadata.
///
/// # Errors
///
/// [`ModelError::Network`] if a shape does not fit its bytes.
pub fn to_safetensors(parts: &[Part], dtype: Dtype, key: &str, value: String) -> Result<Vec<u8>> {
    let format = |e: safetensors::SafeTensorError| NetworkFileError::Format(e.to_string());
    let mut views = Vec::new();
    for (name, shape, bytes) in parts {
        let view = TensorView::new(dtype, shape.clone(), bytes).map_err(format)?;
        views.push((name.as_str(), view));
    }
    let metadata = HashMap::from([(key.to_owned(), value)]);
    Ok(safetensors::serialize(views, Some(metadata)).map_err(format)?)
}

/// Reads a file that is not larger than `limit` bytes.
///
/// # Errors
///
/// [`ModelError::File`] if it cannot be read, [`ModelError::Network`] if it is larger.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let failed = |source| ModelError::File {
        action: "read",
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    if size <= limit {
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    let length = size.max(bytes.len() as u64);
    if length > limit {
        let what = "the file";
        return Err(NetworkFileError::Size {
            what,
            bytes: length,
            limit,
        }
        .into());
    }
    Ok(bytes)
}

/// Writes a file whole or not at all.
///
/// # Errors
///
/// [`ModelError::File`] if it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    files::write_whole(path, bytes).map_err(|source| ModelError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
