//! Network files: bytes to [`Weights`] and back.
//!
//! Bytes are verified by `rookery_common::network::verify` before a tensor is allocated.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rookery_common::ids::ContentHash;
use rookery_common::network::file::{MAX_FILE_BYTES, SPEC_KEY};
use rookery_common::network::{NetworkFileError, VerifiedNetwork, tensors, verify};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use tch::{Kind, Tensor};

use crate::error::{NnError, Result};
use crate::files;
use crate::tensors::{shape_of, to_f32_bytes};
use crate::weights::Weights;

impl Weights {
    /// Reads a network from the bytes of its file, after full verification.
    ///
    /// # Errors
    ///
    /// [`NnError::Network`] with the first thing that is wrong, [`NnError::Program`] if the file is
    /// that of a program.
    pub fn from_bytes(bytes: &[u8]) -> Result<(VerifiedNetwork, Self)> {
        let verified = verify(bytes)?;
        let format = |e: safetensors::SafeTensorError| NetworkFileError::Format(e.to_string());
        let file = SafeTensors::deserialize(bytes).map_err(format)?;
        let mut all = BTreeMap::new();
        for layout in tensors(&verified.spec) {
            let view = file.tensor(&layout.name).map_err(format)?;
            let kind = if view.dtype() == Dtype::F16 {
                Kind::Half
            } else {
                Kind::Float
            };
            let tensor = Tensor::f_from_data_size(view.data(), &shape_of(&layout), kind)?;
            all.insert(layout.name, tensor);
        }
        let weights = Self::new(verified.spec.clone(), all)?;
        Ok((verified, weights))
    }

    /// The bytes of this network's file; the same network always gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`NnError::Network`] if a number is not finite, or libtorch's error.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut parts = Vec::new();
        for layout in tensors(self.spec()) {
            let bytes = to_f32_bytes(self.get(&layout.name)?)?;
            parts.push((
                layout.name,
                layout.shape.iter().map(|n| *n as usize).collect(),
                bytes,
            ));
        }
        let spec = serde_json::to_string(self.spec())
            .map_err(|error| NetworkFileError::SpecSyntax(error.to_string()))?;
        let bytes = to_safetensors(&parts, SPEC_KEY, spec)?;
        verify(&bytes)?;
        Ok(bytes)
    }

    /// Reads and verifies a network file.
    ///
    /// # Errors
    ///
    /// [`NnError::File`] if it cannot be read, [`NnError::Network`] if it is no usable network,
    /// [`NnError::Program`] if it is a program.
    pub fn read(path: &Path) -> Result<(VerifiedNetwork, Self)> {
        Self::from_bytes(&read_bounded(path, MAX_FILE_BYTES)?)
    }

    /// Writes the network's file, whole or not at all, and gives its name.
    ///
    /// # Errors
    ///
    /// [`NnError::File`] if it cannot be written, [`NnError::Network`] if a number is not finite.
    pub fn write(&self, path: &Path) -> Result<ContentHash> {
        let bytes = self.to_bytes()?;
        write_whole(path, &bytes)?;
        Ok(ContentHash::of(&bytes))
    }
}

/// A tensor of a file: name, shape, little-endian `f32`.
pub(crate) type Part = (String, Vec<usize>, Vec<u8>);

/// Serialises 32-bit tensors with one entry of metadata.
pub(crate) fn to_safetensors(parts: &[Part], key: &str, value: String) -> Result<Vec<u8>> {
    let format = |e: safetensors::SafeTensorError| NetworkFileError::Format(e.to_string());
    let mut views = Vec::new();
    for (name, shape, bytes) in parts {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(format)?;
        views.push((name.as_str(), view));
    }
    let metadata = HashMap::from([(key.to_owned(), value)]);
    Ok(safetensors::serialize(views, Some(metadata)).map_err(format)?)
}

/// Reads a file that is not larger than `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let failed = |source| NnError::File {
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
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    files::write_whole(path, bytes).map_err(|source| NnError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
