//! The processor behind the engine's [`Backend`].

use std::sync::Arc;

use rookery_common::network::NetworkSpec;
use rookery_engine::{Backend, BackendError, BackendInfo, Evaluator, LoadedNetwork, Precision};
use rookery_model::Weights;

use crate::{CpuEvaluator, CpuNetwork};

/// The processor, computing in 32 bits.
#[derive(Debug)]
pub struct CpuBackend {
    info: BackendInfo,
}

impl CpuBackend {
    /// The processor, which always works.
    ///
    /// # Errors
    ///
    /// [`BackendError`] for another precision than `f32`, which [`Auto`](Precision::Auto) is here too.
    pub fn new(precision: Precision) -> Result<Self, BackendError> {
        match precision {
            Precision::Auto | Precision::F32 => Ok(Self {
                info: BackendInfo::new("cpu", Precision::F32)?,
            }),
            Precision::Bf16 | Precision::F16 => Err(BackendError::Failed(format!(
                "the kernels for processors compute in f32 and not in {precision}"
            ))),
        }
    }
}

impl Backend for CpuBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        Ok(Arc::new(CpuNetwork::new(weights)?))
    }
}

impl LoadedNetwork for CpuNetwork {
    fn spec(&self) -> &NetworkSpec {
        self.spec()
    }

    fn precision(&self) -> Precision {
        Precision::F32
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        Box::new(CpuEvaluator::new(self))
    }
}
