//! Optimisers on one flat tensor, whose state can be saved (libtorch's own cannot be, through tch).

use rookery_backend_torch::error::TorchResult;
use rookery_common::params::Optimizer;
use tch::Tensor;

/// Adam's decay of the mean gradient (the defaults of Kingma and Ba 2015).
const BETA1: f64 = 0.9;
/// Adam's decay of the mean squared gradient.
const BETA2: f64 = 0.999;
/// Keeps Adam from dividing by zero.
const EPSILON: f64 = 1e-8;

/// An optimiser and its state.
#[derive(Debug)]
pub(crate) struct OptimizerState {
    rule: Optimizer,
    weight_decay: f64,
    decay_mask: Tensor,
    /// Momentum; or mean gradient and mean squared gradient. As long as the trainable numbers.
    slots: Vec<Tensor>,
}

/// Tensors of state that a rule keeps.
pub(crate) const fn slot_count(rule: Optimizer) -> usize {
    match rule {
        Optimizer::Sgd { .. } => 1,
        Optimizer::Adam | Optimizer::AdamW => 2,
    }
}

/// The rule's name in checkpoints.
pub(crate) const fn rule_name(rule: Optimizer) -> &'static str {
    match rule {
        Optimizer::Sgd { .. } => "sgd",
        Optimizer::Adam => "adam",
        Optimizer::AdamW => "adam-w",
    }
}

impl OptimizerState {
    /// A fresh state; `decay_mask` is one where weight decay applies.
    pub(crate) fn new(rule: Optimizer, decay: f64, decay_mask: Tensor) -> TorchResult<Self> {
        let slots = (0..slot_count(rule)).map(|_| decay_mask.f_zeros_like());
        let slots = slots.collect::<TorchResult<_>>()?;
        Ok(Self {
            rule,
            weight_decay: decay,
            decay_mask,
            slots,
        })
    }

    /// The state, to be saved.
    pub(crate) fn slots(&self) -> &[Tensor] {
        &self.slots
    }

    /// Half the squared norm of the decayed weights times the decay: the L2 term of the loss.
    pub(crate) fn l2(&self, trainable: &Tensor) -> TorchResult<Tensor> {
        let decayed = trainable.f_mul(&self.decay_mask)?;
        decayed
            .f_square()?
            .f_sum(None)?
            .f_mul_scalar(0.5 * self.weight_decay)
    }

    /// Moves `trainable` one step; `applied` steps were taken before.
    pub(crate) fn step(
        &mut self,
        trainable: &mut Tensor,
        gradient: &Tensor,
        rate: f64,
        applied: u64,
    ) -> TorchResult<()> {
        let decay = trainable
            .f_mul(&self.decay_mask)?
            .f_mul_scalar(self.weight_decay)?;
        let direction = match self.rule {
            Optimizer::Sgd { momentum } => self.nesterov(&gradient.f_add(&decay)?, momentum)?,
            Optimizer::Adam => self.adam(&gradient.f_add(&decay)?, applied)?,
            Optimizer::AdamW => self.adam(gradient, applied)?.f_add(&decay)?,
        };
        let _ = trainable.f_sub_(&direction.f_mul_scalar(rate)?)?;
        Ok(())
    }

    /// `m <- momentum m + g`, direction `g + momentum m` (as Sutskever et al. 2013, in the form
    /// that PyTorch uses).
    fn nesterov(&mut self, gradient: &Tensor, momentum: f64) -> TorchResult<Tensor> {
        let mean = self.slots[0].f_mul_scalar(momentum)?.f_add(gradient)?;
        let direction = gradient.f_add(&mean.f_mul_scalar(momentum)?)?;
        self.slots[0].f_copy_(&mean)?;
        Ok(direction)
    }

    /// Both means corrected for their start at zero.
    fn adam(&mut self, gradient: &Tensor, applied: u64) -> TorchResult<Tensor> {
        let [mean, square] = self.slots.as_mut_slice() else {
            return Ok(gradient.shallow_clone());
        };
        let _ = mean.f_lerp_(gradient, 1.0 - BETA1)?;
        let _ = square.f_lerp_(&gradient.f_square()?, 1.0 - BETA2)?;
        let steps = applied as f64 + 1.0;
        let root = square.f_div_scalar(1.0 - BETA2.powf(steps))?.f_sqrt()?;
        let mean = mean.f_div_scalar(1.0 - BETA1.powf(steps))?;
        mean.f_div(&root.f_add_scalar(EPSILON)?)
    }
}

#[cfg(test)]
mod tests {
    use rookery_backend_torch::tensors::to_f32;
    use tch::{Device, Kind};

    use super::*;

    /// Two steps from 1 with gradients 0.5 and 0.25, by hand.
    fn after_two_steps(rule: Optimizer, weight_decay: f64) -> f32 {
        let mask = Tensor::ones([1], (Kind::Float, Device::Cpu));
        let mut state = OptimizerState::new(rule, weight_decay, mask).unwrap();
        let mut x = Tensor::from_slice(&[1.0_f32]);
        for (step, gradient) in [0.5_f32, 0.25].into_iter().enumerate() {
            state
                .step(&mut x, &Tensor::from_slice(&[gradient]), 0.1, step as u64)
                .unwrap();
        }
        to_f32(&x).unwrap()[0]
    }

    fn near(found: f32, expected: f64) {
        assert!(
            (f64::from(found) - expected).abs() < 1e-6,
            "{found} for {expected}"
        );
    }

    #[test]
    fn steps_match_the_formulas() {
        // m = 0.5, direction 0.5 + 0.45; then m = 0.7, direction 0.25 + 0.63.
        near(
            after_two_steps(Optimizer::Sgd { momentum: 0.9 }, 0.0),
            1.0 - 0.095 - 0.088,
        );
        let second = (0.09 * 0.5 + 0.1 * 0.25) / 0.19;
        let root = ((0.001 * 0.25 * 0.999 + 0.001 * 0.0625) / (1.0 - 0.999_f64.powi(2))).sqrt();
        let adam = 1.0 - 0.1 - 0.1 * second / root;
        near(after_two_steps(Optimizer::Adam, 0.0), adam);
        // Decoupled decay takes a hundredth of the weight before each of Adam's steps.
        let decayed = 1.0 * 0.99 - 0.1;
        near(
            after_two_steps(Optimizer::AdamW, 0.1),
            decayed * 0.99 - 0.1 * second / root,
        );
    }
}
