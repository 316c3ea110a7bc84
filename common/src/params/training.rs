//! Parameters of training: batches, the window, the optimiser, the learning rate.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::range::{ParamsError, inside, within, within_u64};
use super::sampling::{CutOff, Sampling, SourceWeights};
use crate::network::{AuxiliaryHead, NetworkSpec, SpecError};

/// Most positions or steps that a parameter may ask for.
const MOST: u64 = 1_000_000_000_000;

/// What the trainer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TrainingParams {
    /// Positions of a batch, 1 to 65,536.
    pub batch_size: u32,
    /// Optimiser steps between two candidates, 1 to 10,000,000.
    pub steps_per_candidate: u32,
    /// How often each new position is trained on at least: where more positions have arrived than `steps_per_candidate`
    /// does that for, a candidate gets more steps, up to four times as many. 0, which never asks for more, to 100.
    pub min_reuse: f64,
    /// New positions that must have arrived before the next candidate is trained, 1 to 10^12.
    pub positions_per_candidate: u64,
    /// The window that is sampled.
    pub window: WindowParams,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// The learning rate.
    pub learning_rate: LearningRate,
    /// L2 weight decay on convolution and dense weights, 0 to 1.
    pub weight_decay: f64,
    /// Weight of the policy loss, 0 to 1,000.
    pub policy_weight: f64,
    /// Weight of the value loss, 0 to 1,000.
    pub value_weight: f64,
    /// Weight of the losses of each of the auxiliary heads moves-left, short-value and opponent-reply, where the network
    /// has them, 0 to 1,000.
    pub auxiliary_weight: f64,
    /// The same of future-board and final-board.
    pub board_weight: f64,
    /// The same of soft-policy.
    pub soft_policy_weight: f64,
    /// Share of the search's root value in the value target, 0 to 1; the rest is the game's result. In games from PGN
    /// files, of the evaluation in a comment, where there is one.
    pub q_ratio: f64,
    /// Plies over which the search's share is a mean of the searches from the position on, the nearer the more, as in
    /// TD(lambda); 1, which takes the position's own search, to 100.
    pub q_horizon: f64,
    /// What a result or a later search counts for a ply before it, 0.9 to 1; the rest counts as a draw. Below 1 a win is worth
    /// more the nearer it is.
    pub discount: f64,
    /// What counts as the result of a game that its ply limit ended.
    pub cut_off: CutOff,
    /// Share of the policy target that is spread evenly over the legal moves, 0 to 0.5.
    pub label_smoothing: f64,
    /// Share of positions that are trained on mirrored, files a to h as h to a, 0 to 1. It applies
    /// where neither side could castle in the position or the boards seen before it.
    pub mirror_share: f64,
    /// How positions are drawn from the window.
    pub sampling: Sampling,
    /// What share of a batch each kind of game gets; by their positions in the window if not given.
    pub sources: Option<SourceWeights>,
    /// Gradients are scaled down to this norm, if it is given, 10^-6 to 10^9.
    pub gradient_clip: Option<f64>,
    /// Decay of the averaged weights that are exported, for each step, 0 to 0.999999; 0 exports the
    /// last weights.
    pub ema_decay: f64,
    /// Steps, 0 to 10^12, and the shape, blocks x filters, that the network in training grows to with the
    /// first candidate after them. What is as large already does not change.
    pub grow: Vec<(u64, String)>,
}

impl Default for TrainingParams {
    fn default() -> Self {
        Self {
            batch_size: 256,
            steps_per_candidate: 500,
            min_reuse: 0.0,
            positions_per_candidate: 20_000,
            window: WindowParams::default(),
            optimizer: Optimizer::default(),
            learning_rate: LearningRate::default(),
            weight_decay: 1e-4,
            policy_weight: 1.0,
            value_weight: 1.0,
            auxiliary_weight: 0.1,
            board_weight: 0.15,
            soft_policy_weight: 8.0,
            q_ratio: 0.25,
            q_horizon: 1.0,
            discount: 1.0,
            cut_off: CutOff::default(),
            label_smoothing: 0.0,
            mirror_share: 0.0,
            sampling: Sampling::default(),
            sources: None,
            gradient_clip: Some(10.0),
            ema_decay: 0.99,
            grow: Vec::new(),
        }
    }
}

/// The positions that are sampled: the newest ones, a window that grows as
/// `min * (1 + slope * ((total / min)^exponent - 1) / exponent)` up to `max`: a power of all positions, scaled so that
/// the window begins at `min` and grows by `slope` for each position there (Wu 2019, "Accelerating Self-Play Learning in
/// Go", on its training window: 250,000, 0.4 and 0.75). Without a slope it is the power itself, `min * (total / min)^exponent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WindowParams {
    /// Positions before the first training and smallest window, 1 to 10^12.
    pub min: u64,
    /// Largest window, `min` to 10^12.
    pub max: u64,
    /// How growth slows down, from 0 (without a slope, a fixed window of `min`; with one, it grows as a logarithm) to 1
    /// (not at all: without a slope, everything up to `max`).
    pub exponent: f64,
    /// Positions by which the window grows at first for each new one, 0 to 1; as `exponent` if not given.
    pub slope: Option<f64>,
}

impl Default for WindowParams {
    fn default() -> Self {
        Self {
            min: 20_000,
            max: 1_000_000,
            exponent: 0.75,
            slope: None,
        }
    }
}

impl WindowParams {
    /// The window's size, in positions, when `total` have ever been produced.
    pub fn size(&self, total: u64) -> u64 {
        let min = self.min.max(1) as f64;
        let ratio = (total as f64 / min).max(1.0);
        let growth = match self.slope {
            None => ratio.powf(self.exponent),
            Some(slope) => 1.0 + slope * flattened(ratio, self.exponent),
        };
        ((min * growth) as u64).min(self.max)
    }
}

/// `(ratio^exponent - 1) / exponent`, which is 0 at 1 and rises there by one for one; the logarithm where the exponent is 0.
fn flattened(ratio: f64, exponent: f64) -> f64 {
    let log = ratio.ln();
    if exponent == 0.0 {
        log
    } else {
        (exponent * log).exp_m1() / exponent
    }
}

/// The optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Optimizer {
    /// Stochastic gradient descent with Nesterov momentum.
    Sgd {
        /// The momentum, 0 to 0.999999.
        momentum: f64,
    },
    /// Adam (Kingma and Ba 2015); weight decay is added to the gradient.
    Adam,
    /// AdamW (Loshchilov and Hutter 2019): decoupled weight decay.
    AdamW,
}

impl Default for Optimizer {
    fn default() -> Self {
        Self::Sgd { momentum: 0.9 }
    }
}

/// A learning rate: a linear warm-up, then steps down, a cosine, or both (their factors multiply).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LearningRate {
    /// The rate after warm-up, 10^-9 to 100.
    pub base: f64,
    /// Steps over which it rises from 0, 0 to 10^12.
    pub warmup_steps: u64,
    /// Steps, 0 to 10^12, and the factors that apply from them on, 10^-9 to 1,000.
    pub drops: Vec<(u64, f64)>,
    /// A fall along half a cosine, if it is given.
    pub cosine: Option<Cosine>,
}

/// A fall from 1 to `floor` along half a cosine (Loshchilov and Hutter, "SGDR", 2017, without
/// restarts).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cosine {
    /// The step at which `floor` is reached, 1 to 10^12.
    pub steps: u64,
    /// The factor from there on, 0 to 1.
    pub floor: f64,
}

impl Cosine {
    fn at(self, step: u64) -> f64 {
        let done = (step as f64 / self.steps.max(1) as f64).min(1.0);
        let height = (1.0 + (std::f64::consts::PI * done).cos()) / 2.0;
        self.floor + (1.0 - self.floor) * height
    }
}

impl Default for LearningRate {
    fn default() -> Self {
        Self {
            base: 0.02,
            warmup_steps: 100,
            drops: Vec::new(),
            cosine: None,
        }
    }
}

impl LearningRate {
    /// The rate at optimiser step `step`, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        let warm = if step < self.warmup_steps {
            (step + 1) as f64 / self.warmup_steps as f64
        } else {
            1.0
        };
        let drops = self.drops.iter().filter(|(from, _)| *from <= step);
        let dropped: f64 = drops.map(|(_, factor)| factor).product();
        self.base * warm * dropped * self.cosine.map_or(1.0, |cosine| cosine.at(step))
    }
}

impl TrainingParams {
    /// The weight of the loss of an auxiliary head.
    pub const fn weight_of(&self, head: AuxiliaryHead) -> f64 {
        match head {
            AuxiliaryHead::MovesLeft | AuxiliaryHead::ShortValue | AuxiliaryHead::OpponentReply => {
                self.auxiliary_weight
            }
            AuxiliaryHead::FutureBoard | AuxiliaryHead::FinalBoard => self.board_weight,
            AuxiliaryHead::SoftPolicy => self.soft_policy_weight,
        }
    }

    /// The least blocks and filters that the network in training has from `step` on, if any are asked for.
    pub fn least_shape(&self, step: u64) -> Option<(u32, u32)> {
        let due = self.grow.iter().filter(|(from, _)| *from <= step);
        let shapes = due.filter_map(|(_, shape)| sizes(shape).ok());
        shapes.reduce(|(blocks, filters), (b, f)| (blocks.max(b), filters.max(f)))
    }

    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        within("batch_size", self.batch_size, 1.0, 65_536.0)?;
        within("steps_per_candidate", self.steps_per_candidate, 1.0, 1e7)?;
        within("min_reuse", self.min_reuse, 0.0, 100.0)?;
        let positions = self.positions_per_candidate;
        within_u64("positions_per_candidate", positions, 1, MOST)?;
        inside("window", self.window.check())?;
        if let Optimizer::Sgd { momentum } = self.optimizer {
            within("optimizer.momentum", momentum, 0.0, 0.999_999)?;
        }
        inside("learning_rate", self.learning_rate.check())?;
        within("weight_decay", self.weight_decay, 0.0, 1.0)?;
        within("policy_weight", self.policy_weight, 0.0, 1e3)?;
        within("value_weight", self.value_weight, 0.0, 1e3)?;
        within("auxiliary_weight", self.auxiliary_weight, 0.0, 1e3)?;
        within("board_weight", self.board_weight, 0.0, 1e3)?;
        within("soft_policy_weight", self.soft_policy_weight, 0.0, 1e3)?;
        within("q_ratio", self.q_ratio, 0.0, 1.0)?;
        within("q_horizon", self.q_horizon, 1.0, 100.0)?;
        within("discount", self.discount, 0.9, 1.0)?;
        within("label_smoothing", self.label_smoothing, 0.0, 0.5)?;
        within("mirror_share", self.mirror_share, 0.0, 1.0)?;
        if let Some(sources) = self.sources {
            inside("sources", sources.check())?;
        }
        if let Some(norm) = self.gradient_clip {
            within("gradient_clip", norm, 1e-6, 1e9)?;
        }
        within("ema_decay", self.ema_decay, 0.0, 0.999_999)?;
        for (place, (step, shape)) in self.grow.iter().enumerate() {
            within_u64(&format!("grow[{place}][0]"), *step, 0, MOST)?;
            sizes(shape).map_err(|error| ParamsError {
                path: format!("grow[{place}][1]"),
                problem: format!("cannot be: {error}"),
            })?;
        }
        Ok(())
    }
}

/// Blocks and filters of a shape.
fn sizes(shape: &str) -> Result<(u32, u32), SpecError> {
    let spec = NetworkSpec::from_shape(shape)?;
    let body = spec.body()?;
    Ok((body.blocks, body.filters))
}

impl WindowParams {
    fn check(&self) -> Result<(), ParamsError> {
        within_u64("min", self.min, 1, MOST)?;
        within_u64("max", self.max, self.min, MOST)?;
        within("exponent", self.exponent, 0.0, 1.0)?;
        match self.slope {
            Some(slope) => within("slope", slope, 0.0, 1.0),
            None => Ok(()),
        }
    }
}

impl LearningRate {
    fn check(&self) -> Result<(), ParamsError> {
        within("base", self.base, 1e-9, 100.0)?;
        within_u64("warmup_steps", self.warmup_steps, 0, MOST)?;
        for (place, (step, factor)) in self.drops.iter().enumerate() {
            within_u64(&format!("drops[{place}][0]"), *step, 0, MOST)?;
            within(&format!("drops[{place}][1]"), *factor, 1e-9, 1e3)?;
        }
        if let Some(cosine) = self.cosine {
            within_u64("cosine.steps", cosine.steps, 1, MOST)?;
            within("cosine.floor", cosine.floor, 0.0, 1.0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_by_a_power_law() {
        let window = WindowParams {
            min: 1000,
            max: 5000,
            exponent: 0.5,
            slope: None,
        };
        assert_eq!(window.size(10), 1000);
        assert_eq!(window.size(4000), 2000);
        assert_eq!(window.size(1_000_000), 5000);
        let defaults = WindowParams::default();
        assert_eq!(defaults.size(320_000), 160_000);
    }

    /// By hand: 16^0.75 = 8 and 1 + 0.4 * 7 / 0.75 = 4.7333, 256^0.75 = 64 and 1 + 0.4 * 63 / 0.75 = 34.6.
    #[test]
    fn with_a_slope_the_window_grows_as_katagos() {
        let window = WindowParams {
            min: 250_000,
            max: 100_000_000,
            exponent: 0.75,
            slope: Some(0.4),
        };
        let sizes = [
            (0, 250_000),
            (250_000, 250_000),
            (4_000_000, 1_183_333),
            (64_000_000, 8_650_000),
        ];
        for (total, expected) in sizes {
            let found = window.size(total);
            assert!(found.abs_diff(expected) <= 1, "{found} of {total}");
        }
        // Where growth begins, the window takes four of ten new positions in.
        assert_eq!(window.size(251_000), 250_399);
        let small = WindowParams {
            max: 1_000_000,
            ..window
        };
        assert_eq!(small.size(64_000_000), 1_000_000);
    }

    #[test]
    fn a_slope_like_the_exponent_changes_nothing_and_exponent_0_is_a_logarithm() {
        let window = |exponent, slope| WindowParams {
            min: 20_000,
            max: 100_000_000,
            exponent,
            slope,
        };
        for exponent in [0.3, 0.75, 1.0] {
            for total in [20_000, 47_123, 320_000, 90_000_000] {
                let found = window(exponent, Some(exponent)).size(total);
                let expected = window(exponent, None).size(total);
                assert!(found.abs_diff(expected) <= 1, "{found}, not {expected}");
            }
        }
        // ln 16 = 2.7726.
        assert_eq!(window(0.0, Some(0.5)).size(320_000), 47_725);
        assert_eq!(window(0.0, None).size(320_000), 20_000);
        assert_eq!(window(0.75, Some(0.0)).size(320_000), 20_000);
    }

    #[test]
    fn the_learning_rate_warms_up_and_drops() {
        let rate = LearningRate {
            base: 0.1,
            warmup_steps: 10,
            drops: vec![(100, 0.1), (200, 0.5)],
            cosine: None,
        };
        assert!((rate.at(0) - 0.01).abs() < 1e-12);
        assert!((rate.at(10) - 0.1).abs() < 1e-12);
        assert!((rate.at(150) - 0.01).abs() < 1e-12);
        assert!((rate.at(200) - 0.005).abs() < 1e-12);
    }

    #[test]
    fn the_shape_grows_and_never_shrinks() {
        let shapes = [(0, "4x32"), (100, "6x16"), (200, "10x128")];
        let params = TrainingParams {
            grow: shapes.map(|(step, shape)| (step, shape.to_owned())).into(),
            ..TrainingParams::default()
        };
        params.check().unwrap();
        let sizes = [0, 99, 100, 200].map(|step| params.least_shape(step));
        assert_eq!(sizes, [(4, 32), (4, 32), (6, 32), (10, 128)].map(Some));
        assert_eq!(TrainingParams::default().least_shape(7), None);
        for (shape, told) in [("large", "large"), ("4x33", "33"), ("0x8", "blocks")] {
            let params = TrainingParams {
                grow: vec![(0, "1x8".to_owned()), (5, shape.to_owned())],
                ..TrainingParams::default()
            };
            let error = params.check().unwrap_err();
            assert_eq!(error.path, "grow[1][1]");
            assert!(error.problem.contains(told), "{error}");
        }
    }

    #[test]
    fn a_cosine_falls_to_its_floor_and_stays_there() {
        let rate = LearningRate {
            base: 1.0,
            warmup_steps: 0,
            drops: Vec::new(),
            cosine: Some(Cosine {
                steps: 100,
                floor: 0.1,
            }),
        };
        for (step, expected) in [(0, 1.0), (50, 0.55), (100, 0.1), (1000, 0.1)] {
            assert!((rate.at(step) - expected).abs() < 1e-12, "{step}");
        }
        assert!(rate.at(20) > rate.at(30));
    }
}
