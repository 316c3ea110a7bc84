//! The network in training, with the parameters that the run asks for.

use std::path::Path;

use rookery_backend_torch::ComputeDevice;
use rookery_cli::network_file;
use rookery_common::ids::ContentHash;
use rookery_common::network::NetworkSpec;
use rookery_common::params::TrainingParams;
use rookery_engine::Precision;
use rookery_model::Weights;
use rookery_train::{TrainError, Trainer};

/// Where to compute, and in what numbers.
#[derive(Debug, Clone, Copy)]
pub struct Compute {
    /// The device.
    pub device: ComputeDevice,
    /// The numbers.
    pub precision: Precision,
}

/// A network in training.
#[derive(Debug)]
pub struct Learner {
    /// What takes its steps.
    pub trainer: Trainer,
    params: TrainingParams,
    compute: Compute,
}

impl Learner {
    /// Begins at `weights` with a fresh optimiser.
    ///
    /// # Errors
    ///
    /// What [`Trainer::new`] gives.
    pub fn new(
        weights: &Weights,
        params: &TrainingParams,
        compute: Compute,
    ) -> Result<Self, TrainError> {
        let trainer = Trainer::new(weights, params, compute.device, compute.precision)?;
        Ok(Self {
            trainer,
            params: params.clone(),
            compute,
        })
    }

    /// Goes on from a checkpoint's file.
    ///
    /// # Errors
    ///
    /// What [`Trainer::resume`] gives.
    pub fn resume(
        path: &Path,
        params: &TrainingParams,
        compute: Compute,
    ) -> Result<Self, TrainError> {
        let trainer = Trainer::resume(path, params, compute.device, compute.precision)?;
        Ok(Self {
            trainer,
            params: params.clone(),
            compute,
        })
    }

    /// Follows new parameters. The optimiser goes on where it is, unless it is of another kind:
    /// then a fresh one goes on from the weights. `scratch` is a file that may be overwritten.
    ///
    /// # Errors
    ///
    /// libtorch's error, or that the file cannot be written.
    pub fn follow(&mut self, params: &TrainingParams, scratch: &Path) -> Result<(), TrainError> {
        if *params == self.params {
            return Ok(());
        }
        self.trainer.save(scratch)?;
        let resumed = match Self::resume(scratch, params, self.compute) {
            Err(TrainError::Checkpoint(reason)) => {
                tracing::info!("the optimiser begins anew: {reason}");
                Self::new(&self.trainer.latest()?, params, self.compute)
            }
            resumed => resumed,
        };
        // A scratch file that cannot be removed is overwritten the next time.
        drop(std::fs::remove_file(scratch));
        *self = resumed?;
        Ok(())
    }

    /// Grows the network to at least these blocks and filters; it computes what it did, and the optimiser
    /// begins anew. `seed` gives the new weights. Whether it was smaller.
    ///
    /// # Errors
    ///
    /// What [`Weights::grown`] and [`Trainer::new`] give.
    pub fn grow(&mut self, blocks: u32, filters: u32, seed: u64) -> Result<bool, TrainError> {
        let Some(grown) = self.trainer.latest()?.grown(blocks, filters, seed)? else {
            return Ok(false);
        };
        *self = Self::new(&grown, &self.params, self.compute)?;
        Ok(true)
    }

    /// The averaged weights, as they are exported, to measure with.
    ///
    /// # Errors
    ///
    /// libtorch's error.
    pub fn averaged(&self) -> Result<Trainer, TrainError> {
        let (weights, compute) = (self.trainer.averaged()?, self.compute);
        Trainer::new(&weights, &self.params, compute.device, compute.precision)
    }

    /// The averaged weights as a network file, made by this program from `parent`.
    ///
    /// # Errors
    ///
    /// If a weight is not finite, or libtorch's error.
    pub fn export(&self, parent: Option<ContentHash>) -> Result<Vec<u8>, TrainError> {
        let weights = self.trainer.averaged()?;
        let spec = NetworkSpec {
            creator: network_file::creator(),
            parent,
            ..weights.spec().clone()
        };
        Ok(weights.with_spec(spec)?.to_bytes()?)
    }
}
