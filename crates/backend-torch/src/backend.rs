//! libtorch behind the engine's [`Backend`].

use std::cell::Cell;
use std::sync::Arc;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::NetworkSpec;
use rookery_engine::{
    Backend, BackendError, BackendInfo, Batch, Evaluations, Evaluator, EvaluatorError,
    LoadedNetwork, Precision,
};
use rookery_model::Weights;

use crate::device::{ComputeDevice, use_threads};
use crate::error::TorchError;
use crate::infer::{InferenceNetwork, NetworkEvaluator};
use crate::precision::{candidates, from_kind, wider};

/// A device with libtorch.
#[derive(Debug)]
pub struct TorchBackend {
    device: ComputeDevice,
    /// What networks are asked for.
    asked: Precision,
    info: BackendInfo,
}

impl TorchBackend {
    /// A device that was tried and works. On CUDA, [`Auto`](Precision::Auto) leaves to each network
    /// whether it is too large for `f16`; elsewhere it is `f32`.
    ///
    /// # Errors
    ///
    /// [`BackendError`] for a precision in which the device does not compute.
    pub fn new(device: ComputeDevice, precision: Precision) -> Result<Self, BackendError> {
        let first = from_kind(candidates(precision, device)?[0]);
        let may_be_wider = precision == Precision::Auto && !wider(precision, device).is_empty();
        Ok(Self {
            device,
            asked: if may_be_wider { precision } else { first },
            info: BackendInfo::new(device.to_string(), first)?,
        })
    }
}

impl Backend for TorchBackend {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        compute_alone();
        let network = InferenceNetwork::new(weights, self.device, self.asked)?;
        Ok(Arc::new(network))
    }

    fn release_memory(&self) {
        self.device.release_kept_memory();
    }
}

impl LoadedNetwork for InferenceNetwork {
    fn spec(&self) -> &NetworkSpec {
        self.spec()
    }

    fn precision(&self) -> Precision {
        self.precision()
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        Box::new(OneThread(NetworkEvaluator::from_network(self)))
    }
}

/// An evaluator whose convolutions share no threads.
#[derive(Debug)]
struct OneThread(NetworkEvaluator);

impl Evaluator for OneThread {
    fn input(&self) -> InputEncoding {
        self.0.input()
    }

    fn policy(&self) -> PolicyEncoding {
        self.0.policy()
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        compute_alone();
        self.0.evaluate(batch, answer)
    }
}

/// Lets libtorch use the calling thread alone for what it is asked there.
fn compute_alone() {
    thread_local! {
        static ALONE: Cell<bool> = const { Cell::new(false) };
    }
    if !ALONE.replace(true) {
        use_threads(1);
    }
}

impl From<TorchError> for BackendError {
    fn from(error: TorchError) -> Self {
        match error {
            TorchError::OutOfMemory(_) => Self::OutOfMemory(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::NetworkSpec;
    use rookery_engine::dummy::random_batch;

    use super::*;

    #[test]
    fn a_backend_computes_as_it_says() {
        for precision in [Precision::Auto, Precision::F32, Precision::Bf16] {
            let backend = TorchBackend::new(ComputeDevice::CPU, precision).unwrap();
            let weights = Weights::random(NetworkSpec::resnet(1, 16), 3).unwrap();
            let network = backend.load(&weights).unwrap();
            assert_eq!(network.precision(), backend.info().precision);
            assert_eq!(network.spec(), weights.spec());
            let batch = random_batch(weights.spec().input, weights.spec().policy.encoding, 5, 1);
            let mut answer = Evaluations::default();
            let mut evaluator = network.evaluator();
            evaluator.evaluate(&batch, &mut answer).unwrap();
            assert_eq!(answer.values.len(), 5);
        }
        let refused = TorchBackend::new(ComputeDevice::CPU, Precision::F16).unwrap_err();
        assert!(refused.to_string().contains("f16"), "{refused}");
    }

    #[test]
    fn a_full_device_is_told_from_other_failures() {
        let full = BackendError::from(TorchError::OutOfMemory("2 GiB".to_owned()));
        assert!(matches!(full, BackendError::OutOfMemory(_)), "{full}");
        let other = BackendError::from(TorchError::Torch("illegal address".to_owned()));
        assert!(matches!(other, BackendError::Failed(_)), "{other}");
    }
}
