//! Checkpoints: everything that training needs to go on as if it had never stopped.
//!
//! A checkpoint is a safetensors file of flat tensors (weights, running statistics, their averages,
//! the optimiser's state) with a [`Header`] as JSON in its metadata.

use std::path::Path;

use rookery_backend_torch::ComputeDevice;
use rookery_backend_torch::tensors::{is_finite, to_f32};
use rookery_common::network::NetworkSpec;
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_common::params::TrainingParams;
use rookery_engine::Precision;
use rookery_model::Weights;
use rookery_model::io::{Part, read_bounded, to_safetensors, write_whole};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use tch::{Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::optimizer::rule_name;
use crate::trainer::Trainer;

/// The key of the metadata under which the header stands.
const HEADER_KEY: &str = "rookery.checkpoint";

/// Raised when the format changes.
const FORMAT: u32 = 1;

/// Weights, averages and two tensors of optimiser state, and some room for the header.
const MAX_CHECKPOINT_BYTES: u64 = 5 * MAX_FILE_BYTES;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: u32,
    spec: NetworkSpec,
    optimizer: String,
    applied: u64,
}

impl Trainer {
    /// Writes a checkpoint, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`TrainError::Diverged`] if a number is not finite: training cannot go on from it.
    /// [`ModelError::File`](rookery_model::ModelError::File) if it cannot be written, or libtorch's error.
    pub fn save(&self, path: &Path) -> Result<()> {
        let header = Header {
            format: FORMAT,
            spec: self.spec.clone(),
            optimizer: rule_name(self.params.optimizer).to_owned(),
            applied: self.applied,
        };
        let header = serde_json::to_string(&header)
            .map_err(|error| TrainError::Checkpoint(error.to_string()))?;
        let parts = self
            .parts()
            .into_iter()
            .map(|(name, tensor)| -> Result<Part> {
                self.check_finite(&tensor, &name)?;
                Ok((name, vec![tensor.numel()], to_f32_bytes(&tensor)?))
            });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        Ok(write_whole(
            path,
            &to_safetensors(&parts, Dtype::F32, HEADER_KEY, header)?,
        )?)
    }

    /// Goes on from a checkpoint. What `params` asks for may have changed since, but not the kind
    /// of optimiser.
    ///
    /// # Errors
    ///
    /// [`ModelError::File`](rookery_model::ModelError::File) if it cannot be read, [`TrainError::Checkpoint`] if it is not a checkpoint or
    /// was made with another kind of optimiser, and what [`Trainer::new`] gives.
    pub fn resume(
        path: &Path,
        params: &TrainingParams,
        device: ComputeDevice,
        precision: Precision,
    ) -> Result<Self> {
        let bytes = read_bounded(path, MAX_CHECKPOINT_BYTES)?;
        let (header, file) = open(&bytes)?;
        let asked = rule_name(params.optimizer);
        if header.optimizer != asked {
            let made = &header.optimizer;
            return Err(refuse(format!(
                "it was made with {made}, now {asked} is asked for"
            )));
        }
        // The seed does not matter: every number is overwritten below.
        let fresh = Weights::random(header.spec.clone(), 0)?;
        let mut trainer = Self::new(&fresh, params, device, precision)?;
        trainer.applied = header.applied;
        trainer.restore(&file)?;
        Ok(trainer)
    }

    /// Every flat tensor with its name in the file; the tensors share memory with the trainer's.
    fn parts(&self) -> Vec<(String, Tensor)> {
        let latest = &self.network.flat;
        let mut parts = vec![
            ("weights".to_owned(), latest.trainable.shallow_clone()),
            ("statistics".to_owned(), latest.statistics.shallow_clone()),
            (
                "averaged.weights".to_owned(),
                self.averaged.trainable.shallow_clone(),
            ),
            (
                "averaged.statistics".to_owned(),
                self.averaged.statistics.shallow_clone(),
            ),
        ];
        let slots = self.optimizer.slots().iter().enumerate();
        parts.extend(slots.map(|(i, slot)| (format!("optimizer.{i}"), slot.shallow_clone())));
        parts
    }

    fn restore(&mut self, file: &SafeTensors<'_>) -> Result<()> {
        for (name, mut tensor) in self.parts() {
            let saved = read_tensor(file, &name, tensor.numel())?;
            tch::no_grad(|| tensor.f_copy_(&saved))?;
        }
        Ok(())
    }
}

fn refuse(reason: impl Into<String>) -> TrainError {
    TrainError::Checkpoint(reason.into())
}

/// Reads the header and checks what the specification asks for before anything is allocated.
fn open(bytes: &[u8]) -> Result<(Header, SafeTensors<'_>)> {
    let format = |error: safetensors::SafeTensorError| refuse(error.to_string());
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
    let json = metadata
        .metadata()
        .as_ref()
        .and_then(|map| map.get(HEADER_KEY));
    let json = json.ok_or_else(|| refuse(format!("its header has no {HEADER_KEY:?}")))?;
    let header: Header = serde_json::from_str(json).map_err(|error| refuse(error.to_string()))?;
    if header.format != FORMAT {
        return Err(refuse(format!(
            "it has format {}, this program reads {FORMAT}",
            header.format
        )));
    }
    header.spec.check()?;
    Ok((header, SafeTensors::deserialize(bytes).map_err(format)?))
}

fn read_tensor(file: &SafeTensors<'_>, name: &str, length: usize) -> Result<Tensor> {
    let view = file
        .tensor(name)
        .map_err(|_| refuse(format!("tensor {name:?} is missing")))?;
    if view.dtype() != Dtype::F32 || view.shape() != [length] {
        return Err(refuse(format!(
            "tensor {name:?} does not hold {length} 32-bit numbers"
        )));
    }
    let tensor = Tensor::f_from_data_size(view.data(), &[length as i64], Kind::Float)?;
    if is_finite(&tensor)? {
        Ok(tensor)
    } else {
        Err(refuse(format!(
            "tensor {name:?} holds a number that is not finite"
        )))
    }
}

/// A tensor's numbers as the little-endian `f32` that safetensors files hold.
fn to_f32_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    let numbers = to_f32(tensor)?;
    Ok(numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect())
}
