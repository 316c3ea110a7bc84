//! Training: one optimiser step for each batch, averaged weights for export, checkpoints.

use rookery_backend_cpu::PolicyCells;
use rookery_backend_torch::error::TorchResult;
use rookery_backend_torch::tensors::{is_finite, to_f32};
use rookery_backend_torch::unpack::Unpacker;
use rookery_backend_torch::{ComputeDevice, precision};
use rookery_common::network::{AuxiliaryHead, NetworkSpec};
use rookery_common::params::TrainingParams;
use rookery_engine::{EvaluatorError, Precision};
use rookery_model::Weights;
use tch::{Tensor, no_grad};

use crate::error::{Result, TrainError};
use crate::losses::{LossTensors, Targets};
use crate::optimizer::OptimizerState;
use crate::precision::training_kind;
use crate::training_graph::{FlatWeights, Mode, TrainableNetwork};

mod batch;

pub use batch::{AuxiliaryTargets, BoardsAhead, OpponentReplyTargets, TrainBatch};

/// A batch on the device: its planes and targets.
#[derive(Debug)]
pub struct LoadedBatch {
    planes: Tensor,
    targets: Targets,
}

/// What a step measured, before it moved the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Losses {
    /// Cross-entropy of the policy over the legal moves, in nats, mean over positions.
    pub policy: f64,
    /// Cross-entropy of the value in nats, or its squared error for a scalar head.
    pub value: f64,
    /// Of the auxiliary heads in the order of [`AuxiliaryHead::ALL`], 0 without that head: smooth
    /// absolute error of the plies left in units of 20 plies, cross-entropies of the others in nats (a square's, of boards).
    pub auxiliary: [f64; AuxiliaryHead::ALL.len()],
    /// Half the squared norm of the weights times the weight decay.
    pub l2: f64,
    /// Share of positions whose likeliest move is the target's.
    pub policy_accuracy: f64,
    /// Norm of the gradient before clipping; 0 if there was no step.
    pub gradient_norm: f64,
}

/// A network in training.
///
/// Weights, their gradients and averages have 32 bits everywhere; activations are bf16 where the
/// device multiplies it ([`Precision::Auto`]).
#[derive(Debug)]
pub struct Trainer {
    pub(crate) spec: NetworkSpec,
    pub(crate) params: TrainingParams,
    pub(crate) network: TrainableNetwork,
    pub(crate) averaged: FlatWeights,
    pub(crate) optimizer: OptimizerState,
    /// Steps since the optimiser's state was fresh.
    pub(crate) applied: u64,
    device: ComputeDevice,
    cells: PolicyCells,
    unpacker: Unpacker,
}

impl Trainer {
    /// Begins training at `weights` with a fresh optimiser.
    ///
    /// # Errors
    ///
    /// [`TorchError::Precision`](rookery_backend_torch::TorchError::Precision) for `f16`, in which gradients vanish; or libtorch's error.
    pub fn new(
        weights: &Weights,
        params: &TrainingParams,
        device: ComputeDevice,
        precision: Precision,
    ) -> Result<Self> {
        let kind = training_kind(device, precision)?;
        if let tch::Device::Cuda(_) = device.device() {
            // All batches have one size, for which cuDNN tries its algorithms out, once.
            tch::Cuda::cudnn_set_benchmark(true);
        }
        let spec = weights.spec().clone();
        let flat = FlatWeights::new(weights, device.device())?;
        let averaged = flat.copy()?;
        let mask = flat.decay_mask(&spec)?;
        Ok(Self {
            network: TrainableNetwork::new(&spec, flat)?,
            averaged,
            optimizer: OptimizerState::new(params.optimizer, params.weight_decay, mask)?,
            applied: 0,
            device,
            cells: PolicyCells::new(&spec.policy),
            unpacker: Unpacker::new(spec.input, device.device(), kind),
            params: params.clone(),
            spec,
        })
    }

    /// Optimiser steps since the network's random initialisation.
    pub const fn training_step(&self) -> u64 {
        self.spec.training_step
    }

    /// What the network is; its training step moves with every step.
    pub const fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    /// In what numbers activations are: never [`Precision::Auto`], but what it has come to.
    pub const fn precision(&self) -> Precision {
        precision::from_kind(self.unpacker.kind())
    }

    /// Moves the weights one step at learning rate `rate`.
    ///
    /// # Errors
    ///
    /// [`TrainError::Batch`] for a batch whose parts do not fit, [`TrainError::Diverged`] if a loss or
    /// the gradient is not finite (the weights then stay as they were, the running statistics do
    /// not), or libtorch's error.
    pub fn step(&mut self, batch: &TrainBatch, rate: f64) -> Result<Losses> {
        let loaded = self.load(batch)?;
        self.step_loaded(&loaded, rate)
    }

    /// As [`step`](Self::step), on a batch that lies on the device already.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn step_loaded(&mut self, batch: &LoadedBatch, rate: f64) -> Result<Losses> {
        let (losses, _) = self.step_while_loading(batch, rate, None)?;
        Ok(losses)
    }

    /// As [`step_loaded`](Self::step_loaded); while a GPU computes, the `next` batch is loaded.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step); what is wrong with `next` as well, when the step has been taken.
    pub fn step_while_loading(
        &mut self,
        batch: &LoadedBatch,
        rate: f64,
        next: Option<&TrainBatch>,
    ) -> Result<(Losses, Option<LoadedBatch>)> {
        let tensors = self.losses(batch, Mode::Train)?;
        let gradient = self.network.gradient(&self.objective(&tensors)?)?;
        // Before the losses are waited for.
        let next = next.map(|next| self.load(next));
        let losses = no_grad(|| self.apply(gradient, &tensors, rate))?;
        self.applied += 1;
        self.spec.training_step += 1;
        Ok((losses, next.transpose()?))
    }

    /// The losses of a batch with the weights as they are, normalised by the running statistics.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn measure(&mut self, batch: &TrainBatch) -> Result<Losses> {
        no_grad(|| {
            let loaded = self.load(batch)?;
            let tensors = self.losses(&loaded, Mode::Evaluate)?;
            self.report(&tensors, None)
        })
    }

    /// The averaged weights, as they are exported.
    ///
    /// # Errors
    ///
    /// [`TrainError::Diverged`] if a number is not finite, or libtorch's error.
    pub fn averaged(&self) -> Result<Weights> {
        self.check_finite(&self.averaged.trainable, "averaged.weights")?;
        self.check_finite(&self.averaged.statistics, "averaged.statistics")?;
        self.averaged.to_weights(self.spec.clone())
    }

    /// The weights of the last step.
    ///
    /// # Errors
    ///
    /// libtorch's error.
    pub fn latest(&self) -> Result<Weights> {
        self.network.flat.to_weights(self.spec.clone())
    }

    /// Checks a batch and brings it to the device.
    ///
    /// # Errors
    ///
    /// [`TrainError::Batch`] for a batch whose parts do not fit, or libtorch's error.
    pub fn load(&mut self, batch: &TrainBatch) -> Result<LoadedBatch> {
        let (input, policy) = (self.spec.input, self.spec.policy.encoding);
        let fits = batch.positions.check_encodings(input, policy);
        fits.map_err(|EvaluatorError(why)| TrainError::Batch(why))?;
        let untaught = |head: &&AuxiliaryHead| match head {
            AuxiliaryHead::MovesLeft | AuxiliaryHead::ShortValue => batch.ahead.is_empty(),
            AuxiliaryHead::OpponentReply => batch.replies.is_empty(),
            AuxiliaryHead::FutureBoard | AuxiliaryHead::FinalBoard => batch.boards.is_empty(),
            AuxiliaryHead::SoftPolicy => false,
        };
        if let Some(head) = self.spec.auxiliary.iter().find(untaught) {
            let reason = format!(
                "the network's auxiliary head {} has no targets",
                head.name()
            );
            return Err(TrainError::Batch(reason));
        }
        Ok(LoadedBatch {
            targets: Targets::new(batch, &self.cells, self.device.device())?,
            planes: self.unpacker.unpack(&batch.positions)?.to_tensor()?,
        })
    }

    fn losses(&mut self, batch: &LoadedBatch, mode: Mode) -> Result<LossTensors> {
        if self.spec.value_dropout > 0.0 && mode == Mode::Train {
            // So that training that was interrupted leaves out the same units.
            tch::manual_seed(self.spec.training_step.cast_signed());
        }
        let raw = self.network.forward(&batch.planes, mode)?;
        Ok(batch.targets.losses(&raw, self.spec.value)?)
    }

    /// What a step makes smaller: the weighted sum of the losses.
    fn objective(&self, tensors: &LossTensors) -> TorchResult<Tensor> {
        let policy = tensors.policy.f_mul_scalar(self.params.policy_weight)?;
        let value = tensors.value.f_mul_scalar(self.params.value_weight)?;
        let mut sum = policy.f_add(&value)?;
        for (head, loss) in AuxiliaryHead::ALL.into_iter().zip(&tensors.auxiliary) {
            if let Some(loss) = loss {
                sum = sum.f_add(&loss.f_mul_scalar(self.params.weight_of(head))?)?;
            }
        }
        Ok(sum)
    }

    /// Checks and clips the gradient, and moves weights and averages.
    fn apply(&mut self, gradient: Tensor, tensors: &LossTensors, rate: f64) -> Result<Losses> {
        let losses = self.report(tensors, Some(&gradient.f_norm()?))?;
        let norm = losses.gradient_norm;
        let gradient = match self.params.gradient_clip {
            Some(limit) if norm > limit => gradient.f_mul_scalar(limit / norm)?,
            _ => gradient,
        };
        let trainable = &mut self.network.flat.trainable;
        self.optimizer
            .step(trainable, &gradient, rate, self.applied)?;
        self.average()?;
        Ok(losses)
    }

    /// Moves the averages towards the weights; at first quickly, so that the initial weights are
    /// soon forgotten.
    fn average(&mut self) -> TorchResult<()> {
        let steps = self.applied as f64;
        let decay = self.params.ema_decay.min((1.0 + steps) / (10.0 + steps));
        let latest = &self.network.flat;
        let _ = self
            .averaged
            .trainable
            .f_lerp_(&latest.trainable, 1.0 - decay)?;
        let _ = self
            .averaged
            .statistics
            .f_lerp_(&latest.statistics, 1.0 - decay)?;
        Ok(())
    }

    /// Brings the losses and the gradient's norm from the device in one transfer, for which a GPU's work of the
    /// step so far has to end, and checks them.
    fn report(&self, tensors: &LossTensors, norm: Option<&Tensor>) -> Result<Losses> {
        let l2 = self.optimizer.l2(&self.network.flat.trainable)?;
        let none = l2.f_zeros_like()?;
        let norm = norm.unwrap_or(&none);
        let (policy, value) = (&tensors.policy, &tensors.value);
        let main = [policy, value, &tensors.accuracy, &l2, norm];
        let auxiliary = tensors.auxiliary.iter();
        let auxiliary = auxiliary.map(|loss| loss.as_ref().unwrap_or(&none));
        let all: Vec<&Tensor> = main.into_iter().chain(auxiliary).collect();
        let all = to_f32(&Tensor::f_stack(&all, 0)?)?;
        let [policy, value, policy_accuracy, l2, gradient_norm] =
            [0, 1, 2, 3, 4].map(|place: usize| f64::from(all[place]));
        let losses = Losses {
            policy,
            value,
            auxiliary: AuxiliaryHead::ALL.map(|head| f64::from(all[main.len() + head.index()])),
            l2,
            policy_accuracy,
            gradient_norm,
        };
        let checked = [
            ("policy loss", policy),
            ("value loss", value),
            ("norm of the weights", l2),
            ("gradient", gradient_norm),
        ];
        let auxiliary =
            AuxiliaryHead::ALL.map(|head| (head.name(), losses.auxiliary[head.index()]));
        let mut checked = checked.into_iter().chain(auxiliary);
        match checked.find(|(_, number)| !number.is_finite()) {
            Some((what, _)) => Err(self.diverged(what)),
            None => Ok(losses),
        }
    }

    /// Finite losses do not say that all is well: normalisations use a batch's own statistics in training, while the
    /// running ones may have outgrown 32 bits.
    pub(crate) fn check_finite(&self, part: &Tensor, name: &str) -> Result<()> {
        if is_finite(part)? {
            Ok(())
        } else {
            Err(self.diverged(name))
        }
    }

    fn diverged(&self, what: &str) -> TrainError {
        TrainError::Diverged {
            what: what.to_owned(),
            step: self.spec.training_step,
        }
    }
}

#[cfg(test)]
mod tests;
