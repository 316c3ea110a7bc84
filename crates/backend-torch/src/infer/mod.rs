//! A network behind the engine's [`Evaluator`]: folded, on a device, in the device's best numbers.
//!
//! Packed positions go in; planes are unpacked and legal moves' logits gathered on the device, so
//! only those and the values come back, in one transfer. A processor unpacks nothing where its first layer
//! takes packed planes. Threads that share a GPU [take
//! turns](ComputeDevice::turn) from there on.

mod computation;
mod inference_network;

use std::sync::Arc;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::{NetworkSpec, ValueHead};
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError, Precision, Wdl};
use rookery_model::Weights;
use tch::{Kind, Tensor, no_grad};

use self::computation::Computation;

use crate::device::ComputeDevice;
use crate::error::{Result, TorchError, TorchResult};
use crate::folded::FoldedConvolution;
use crate::host;
use crate::precision;
use crate::tensors::copy_f32;
use crate::unpack::Unpacker;

pub use crate::folded::Convolutions;
pub use inference_network::InferenceNetwork;

/// A network that evaluates. It can move to another thread; two of them can run side by side (see
/// [`use_threads`](crate::use_threads)), also [from one network](Self::from_network).
#[derive(Debug)]
pub struct NetworkEvaluator {
    network: Arc<InferenceNetwork>,
    /// What the network was computed with last.
    computation: Arc<Computation>,
    unpacker: Unpacker,
    gathered: Vec<i64>,
    numbers: Vec<f32>,
    /// Most positions that have room on the device at once, as far as is known.
    most: usize,
}

impl NetworkEvaluator {
    /// An evaluator of a network that no other evaluates.
    ///
    /// # Errors
    ///
    /// As [`InferenceNetwork::new`].
    pub fn new(weights: &Weights, device: ComputeDevice, precision: Precision) -> Result<Self> {
        let network = InferenceNetwork::new(weights, device, precision)?;
        Ok(Self::from_network(Arc::new(network)))
    }

    /// An evaluator of a network that others may evaluate at the same time.
    pub fn from_network(network: Arc<InferenceNetwork>) -> Self {
        let computation = network.present();
        Self {
            unpacker: unpacker(&network, &computation),
            gathered: Vec::new(),
            numbers: Vec::new(),
            most: usize::MAX,
            computation,
            network,
        }
    }

    /// What the network is.
    pub fn spec(&self) -> &NetworkSpec {
        &self.network.spec
    }

    /// Where it computes.
    pub fn device(&self) -> ComputeDevice {
        self.network.device
    }

    /// In what numbers it computes.
    pub fn precision(&self) -> Precision {
        precision::from_kind(self.computation.kind)
    }

    fn compute_with(&mut self, computation: Arc<Computation>) {
        if !Arc::ptr_eq(&self.computation, &computation) {
            self.unpacker = unpacker(&self.network, &computation);
            self.computation = computation;
        }
    }

    /// Adds a batch's evaluations to `answer`. What does not fit into the device's memory is halved until it does,
    /// and later batches are not larger than that. What is too large for the network's numbers is computed in others,
    /// if there are any for it, and so are later batches, also by others who evaluate this network.
    fn evaluate_batch(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<()> {
        if batch.len() > self.most {
            return self.evaluate_parts(batch, answer);
        }
        match self.evaluate_whole(batch, answer) {
            Err(TorchError::OutOfMemory(reason)) if batch.len() > 1 => {
                self.most = batch.len() / 2;
                let device = self.device();
                tracing::warn!(
                    "{device} has no memory for {} positions at once, now tries {}: {reason}",
                    batch.len(),
                    self.most
                );
                self.evaluate_parts(batch, answer)
            }
            Err(error @ TorchError::NotFinite { .. }) => {
                let other = self.network.instead_of(&self.computation)?;
                self.compute_with(other.ok_or(error)?);
                self.evaluate_batch(batch, answer)
            }
            done => done,
        }
    }

    fn evaluate_parts(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<()> {
        let mut part = Batch::new(batch.input(), batch.policy());
        let mut next = 0;
        while next < batch.len() {
            part.clear();
            let end = batch.len().min(next + self.most);
            (next..end).for_each(|index| part.push_from(batch, index));
            self.evaluate_batch(&part, answer)?;
            next = end;
        }
        Ok(())
    }

    fn evaluate_whole(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<()> {
        let cells = &self.network.cells;
        cells
            .of_batch(batch, &mut self.gathered)
            .map_err(|(position, index)| {
                TorchError::Batch(format!(
                    "position {position} has a move of policy index {index}"
                ))
            })?;
        no_grad(|| self.compute(batch))?;
        if let Some(index) = self.numbers.iter().position(|number| !number.is_finite()) {
            return Err(TorchError::NotFinite {
                output: index,
                precision: self.precision().name(),
            });
        }
        let (logits, values) = self.numbers.split_at(batch.moves().len());
        answer.logits.extend_from_slice(logits);
        let width = values.len() / batch.len();
        answer.values.extend(values.chunks_exact(width).map(to_wdl));
        Ok(())
    }

    /// Leaves the logits of all legal moves, then all values, in `numbers`.
    fn compute(&mut self, batch: &Batch) -> TorchResult<()> {
        let computation = Arc::clone(&self.computation);
        let graph = computation.graph.graph();
        if let Some(first) = &computation.first {
            let begun = host::apply_first(first, batch, computation.kind)?;
            let x = graph.tower_on(begun, &FoldedConvolution::apply)?;
            return self.read_out(&x, batch.len(), None);
        }
        let planes = self.unpacker.unpack_with(batch, &self.gathered)?;
        let cells = planes.cells().map(Tensor::shallow_clone);
        let _turn = self.network.device.turn();
        let x = graph.tower(planes.tensor(), &FoldedConvolution::apply)?;
        self.read_out(&x, batch.len(), cells)
    }

    /// What the heads say of what the tower made of a batch's `positions`, and perhaps of empty ones after them; the
    /// legal moves' `cells` may be on the device already.
    fn read_out(&mut self, x: &Tensor, positions: usize, cells: Option<Tensor>) -> TorchResult<()> {
        let (network, computation) = (&*self.network, &*self.computation);
        let graph = computation.graph.graph();
        let convolve = FoldedConvolution::apply;
        let features = graph.policy_features(x, &convolve)?;
        let value = graph.value(x, &convolve, 0.0)?;
        let value = match network.spec.value {
            ValueHead::Wdl { .. } => value.f_softmax(-1, Kind::Float)?,
            ValueHead::Scalar { .. } => value.f_tanh()?,
        };
        let value = value.f_narrow(0, 0, positions as i64)?;
        let moves = self.gathered.len();
        self.numbers.resize(moves + value.numel(), 0.0);
        let logits = &mut self.numbers[..moves];
        if let Some(legal) = &computation.legal
            && host::write_logits(legal, &features, &self.gathered, logits)
        {
            return copy_f32(&value, &mut self.numbers[moves..]);
        }
        let cells = match cells {
            Some(cells) => cells,
            None => Tensor::f_from_slice(&self.gathered)?.f_to_device(network.device.0)?,
        };
        let policy = graph.policy(&features)?.f_flatten(0, -1)?;
        let logits = policy.f_index_select(0, &cells)?.f_to_kind(Kind::Float)?;
        let both = Tensor::f_cat(&[logits, value.f_flatten(0, -1)?], 0)?;
        copy_f32(&both, &mut self.numbers)
    }
}

fn unpacker(network: &InferenceNetwork, computation: &Computation) -> Unpacker {
    Unpacker::new(network.spec.input, network.device.0, computation.kind)
}

/// One position's value: probabilities of win, draw and loss, or one number from -1 to 1.
fn to_wdl(value: &[f32]) -> Wdl {
    match *value {
        [win, draw, loss] => Wdl { win, draw, loss },
        _ => Wdl::from_q(value.first().copied().unwrap_or_default()),
    }
}

impl Evaluator for NetworkEvaluator {
    fn input(&self) -> InputEncoding {
        self.network.spec.input
    }

    fn policy(&self) -> PolicyEncoding {
        self.network.spec.policy.encoding
    }

    fn evaluate(
        &mut self,
        batch: &Batch,
        answer: &mut Evaluations,
    ) -> std::result::Result<(), EvaluatorError> {
        answer.clear();
        batch.check_encodings(self.input(), self.policy())?;
        if batch.is_empty() {
            return Ok(());
        }
        self.compute_with(self.network.present());
        self.evaluate_batch(batch, answer)
            .map_err(|error| EvaluatorError(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
