//! A network on a device, ready to be evaluated by any number of threads.

use std::sync::Arc;

use parking_lot::Mutex;
use rookery_backend_cpu::PolicyCells;
use rookery_common::network::NetworkSpec;
use rookery_engine::Precision;
use rookery_model::{ModelError, Weights};
use tch::Kind;

use super::computation::Computation;
use crate::device::ComputeDevice;
use crate::error::{Result, TorchError};
use crate::folded::Convolutions;
use crate::precision;

/// What the evaluators of one network have in common, however many threads they are on: its tensors, which are
/// most of what it takes in memory.
#[derive(Debug)]
pub struct InferenceNetwork {
    pub(super) spec: NetworkSpec,
    pub(super) device: ComputeDevice,
    pub(super) cells: PolicyCells,
    pub(super) state: Mutex<State>,
}

/// In what numbers the network is computed, which may change once.
#[derive(Debug)]
pub(super) struct State {
    pub(super) present: Arc<Computation>,
    /// For a network that turns out to be too large for its numbers.
    wider: Option<Wider>,
}

/// Numbers of more range, and what is needed to compute in them.
#[derive(Debug)]
struct Wider {
    weights: Weights,
    convolutions: Convolutions,
    kinds: &'static [Kind],
}

impl InferenceNetwork {
    /// Folds a network and brings it to a device. Where the precision is to be found by
    /// measurement, that takes a few small batches. One that `Auto` would compute in `f16`, but that is too large for
    /// that, is computed in numbers of more range, from the first position on that shows it.
    ///
    /// # Errors
    ///
    /// [`TorchError::Precision`] for numbers that the device cannot compute with,
    /// [`ModelError::NotComputable`] for weights that are too large, or libtorch's error.
    pub fn new(weights: &Weights, device: ComputeDevice, precision: Precision) -> Result<Self> {
        Self::with_convolutions(weights, device, precision, Convolutions::default())
    }

    /// The same with a choice of how convolutions are computed.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_convolutions(
        weights: &Weights,
        device: ComputeDevice,
        precision: Precision,
        convolutions: Convolutions,
    ) -> Result<Self> {
        let kinds = precision::candidates(precision, device)?;
        Self::among(
            weights,
            device,
            convolutions,
            [kinds, precision::wider(precision, device)],
        )
    }

    /// What the network is.
    pub const fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    /// In what numbers it computes at present.
    pub fn precision(&self) -> Precision {
        precision::from_kind(self.present().kind)
    }

    /// In the fastest of the first kinds, or, where the network is too large for them, of the second, wider ones.
    pub(super) fn among(
        weights: &Weights,
        device: ComputeDevice,
        convolutions: Convolutions,
        [kinds, wider]: [&'static [Kind]; 2],
    ) -> Result<Self> {
        let state = match Computation::fastest(weights, device, convolutions, kinds) {
            Err(TorchError::Model(ModelError::NotComputable(tensor))) if !wider.is_empty() => {
                let found = Computation::fastest(weights, device, convolutions, wider)?;
                warn(device, &format!("its tensor {tensor:?} is"), found.kind);
                State {
                    present: Arc::new(found),
                    wider: None,
                }
            }
            made => State {
                present: Arc::new(made?),
                wider: (!wider.is_empty()).then(|| Wider {
                    weights: weights.clone(),
                    convolutions,
                    kinds: wider,
                }),
            },
        };
        Ok(Self {
            spec: weights.spec().clone(),
            device,
            cells: PolicyCells::new(&weights.spec().policy),
            state: Mutex::new(state),
        })
    }

    /// What to compute with at present.
    pub(super) fn present(&self) -> Arc<Computation> {
        Arc::clone(&self.state.lock().present)
    }

    /// What to compute with where `failed` gave numbers that are not finite; none if there is nothing better. Threads
    /// that ask meanwhile wait, so that it is made once.
    pub(super) fn instead_of(&self, failed: &Arc<Computation>) -> Result<Option<Arc<Computation>>> {
        let mut state = self.state.lock();
        if !Arc::ptr_eq(&state.present, failed) {
            return Ok(Some(Arc::clone(&state.present)));
        }
        let Some(wider) = &state.wider else {
            return Ok(None);
        };
        let found =
            Computation::fastest(&wider.weights, self.device, wider.convolutions, wider.kinds)?;
        let found = Arc::new(found);
        warn(self.device, "what it computes is", found.kind);
        *state = State {
            present: Arc::clone(&found),
            wider: None,
        };
        Ok(Some(found))
    }
}

fn warn(device: ComputeDevice, what: &str, kind: Kind) {
    tracing::warn!(
        "RK-0319: a network overflows in 16 bits on {device}: {what} not finite; it is computed in {} from now on",
        precision::from_kind(kind)
    );
}
