//! What training steps measured, together.

use std::fmt;
use std::time::Instant;

use rookery_common::network::AuxiliaryHead;
use rookery_train::Losses;

use crate::metrics::{Values, values};

/// Mean losses over some steps, and how fast they went.
#[derive(Debug, Clone, Copy)]
pub struct LossMeter {
    since: Instant,
    steps: u64,
    positions: usize,
    policy: f64,
    value: f64,
    /// In the order of [`AuxiliaryHead::ALL`].
    auxiliary: [f64; AuxiliaryHead::ALL.len()],
    l2: f64,
    accuracy: f64,
    gradient: f64,
}

impl Default for LossMeter {
    fn default() -> Self {
        let (since, zero) = (Instant::now(), 0.0);
        let [policy, value, l2, accuracy, gradient] = [zero; 5];
        Self {
            since,
            steps: 0,
            positions: 0,
            policy,
            value,
            auxiliary: [0.0; AuxiliaryHead::ALL.len()],
            l2,
            accuracy,
            gradient,
        }
    }
}

impl LossMeter {
    /// Counts the losses of `positions` positions.
    pub fn add(&mut self, losses: &Losses, positions: usize) {
        let weight = positions as f64;
        self.steps += 1;
        self.positions += positions;
        self.policy += losses.policy * weight;
        self.value += losses.value * weight;
        for (sum, loss) in self.auxiliary.iter_mut().zip(losses.auxiliary) {
            *sum += loss * weight;
        }
        self.l2 += losses.l2 * weight;
        self.accuracy += losses.policy_accuracy * weight;
        self.gradient += losses.gradient_norm * weight;
    }

    /// Steps counted.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / (self.positions as f64).max(1.0)
    }

    /// Mean policy loss, in nats.
    pub fn policy(&self) -> f64 {
        self.mean(self.policy)
    }

    /// Mean value loss.
    pub fn value(&self) -> f64 {
        self.mean(self.value)
    }

    /// Share of positions whose likeliest move is the target's.
    pub fn accuracy(&self) -> f64 {
        self.mean(self.accuracy)
    }

    /// Positions a second since the meter was made.
    pub fn speed(&self) -> f64 {
        self.positions as f64 / self.since.elapsed().as_secs_f64().max(1e-9)
    }

    /// The means as metrics of training; those of auxiliary heads only where there are such.
    pub fn training(&self) -> Values {
        let mut all = self.main_losses();
        for (head, sum) in AuxiliaryHead::ALL.into_iter().zip(self.auxiliary) {
            if sum > 0.0 {
                let name = format!("{}_loss", head.name().replace('-', "_"));
                all.insert(name, self.mean(sum));
            }
        }
        all
    }

    fn main_losses(&self) -> Values {
        values([
            ("loss", self.policy() + self.value()),
            ("policy_loss", self.policy()),
            ("value_loss", self.value()),
            ("policy_accuracy", self.accuracy()),
            ("l2", self.mean(self.l2)),
            ("gradient_norm", self.mean(self.gradient)),
            ("samples_per_s", self.speed()),
        ])
    }

    /// The means as metrics of validation.
    pub fn validation(&self) -> Values {
        values([
            ("validation_policy_loss", self.policy()),
            ("validation_value_loss", self.value()),
            ("validation_policy_accuracy", self.accuracy()),
        ])
    }
}

impl fmt::Display for LossMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, value) = (self.policy(), self.value());
        let (accuracy, speed) = (100.0 * self.accuracy(), self.speed());
        write!(f, "policy {policy:.3} (accuracy {accuracy:.0} %), ")?;
        write!(f, "value {value:.3}, {speed:.0} positions/s")
    }
}
