//! A network on a GPU.

use std::sync::Arc;

use rookery_backend_cpu::PolicyCells;
use rookery_common::network::NetworkSpec;
use rookery_engine::{BackendError, Evaluator, LoadedNetwork, Precision};
use rookery_model::Weights;

use crate::evaluator::GpuEvaluator;
use crate::gpu::{Gpu, GpuError};
use crate::kernel::Storage;
use crate::layers::Planner;
use crate::plan::Plan;
use crate::submission_bound::{LONGEST, SubmissionBound};
use crate::variant::TowerPath;

/// A network that any number of [evaluators](GpuEvaluator) share.
#[derive(Debug)]
pub struct GpuNetwork {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) plan: Plan,
    pub(crate) cells: PolicyCells,
    pub(crate) storage: Storage,
    path: TowerPath,
    spec: NetworkSpec,
    /// How many positions a submission may have.
    pub(crate) bound: SubmissionBound,
}

impl GpuNetwork {
    /// Brings a network to a GPU, to be computed in this way.
    ///
    /// # Errors
    ///
    /// [`BackendError`] for weights that the storage cannot hold, and if the device fails or has too little memory.
    pub(crate) fn new(
        gpu: Arc<Gpu>,
        weights: &Weights,
        storage: Storage,
        path: TowerPath,
    ) -> Result<Self, BackendError> {
        let plan = gpu.attempt(|| Planner::new(&gpu, weights, storage)?.plan(path));
        let plan = plan.map_err(|error| match error {
            GpuError::OutOfMemory => BackendError::OutOfMemory(format!(
                "RK-0304: the GPU's memory is full: {} has too little for a network of {}",
                gpu.adapter,
                weights.spec().shape()
            )),
            GpuError::Failed(why) => {
                BackendError::Failed(format!("{} cannot be used: {why}", gpu.adapter))
            }
        })??;
        Ok(Self {
            plan,
            cells: PolicyCells::new(&weights.spec().policy),
            storage,
            path,
            spec: weights.spec().clone(),
            bound: SubmissionBound::new(LONGEST),
            gpu,
        })
    }
}

impl LoadedNetwork for GpuNetwork {
    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn precision(&self) -> Precision {
        self.storage.precision()
    }

    fn kernels(&self) -> Option<String> {
        Some(self.path.to_string())
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        Box::new(GpuEvaluator::new(self))
    }
}
