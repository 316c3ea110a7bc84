//! Parameters of a whole run, as operators set them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::job::{MatchParams, PuzzleParams, SelfPlayParams};
use super::sampling::{Sampling, SourceWeights};
use super::search::{ParamsError, within};
use crate::rating::gate::GateRule;

/// Everything that defines how a run learns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunParams {
    /// Self-play games.
    pub selfplay: SelfPlayParams,
    /// Puzzle games.
    pub puzzle: PuzzleParams,
    /// Match games.
    pub matches: MatchParams,
    /// When a candidate replaces best.
    pub gate: GateRule,
    /// How likely, by all match games, an earlier network must be stronger than best to take its place
    /// again, 0.9 to 0.999999. It never does if this is not given.
    pub rollback: Option<f64>,
    /// How jobs are shared out.
    pub scheduling: SchedulingParams,
    /// What the trainer does.
    pub training: TrainingParams,
}

/// How jobs are shared out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SchedulingParams {
    /// Share of training positions from games that begin at puzzles, 0 to 1.
    pub puzzle_share: f32,
    /// Share of jobs given to an open gate match, 0.01 to 1.
    pub gate_share: f32,
    /// Share of jobs given to an open rating match if no gate match takes them, 0 to 1.
    pub rating_share: f32,
    /// Pairs of each rating match that the coordinator opens by itself when none is open, between
    /// the two networks whose games say most about the ratings, 0 to 10,000; with 0 only
    /// operators open them.
    pub rating_pairs: u32,
    /// Self-play games of a job, 1 to 4,096. Jobs of all kinds are made larger for workers that
    /// play many games at once or say that they are fast, and smaller for slow ones.
    pub selfplay_games: u32,
    /// Puzzle games of a job, 1 to 4,096.
    pub puzzle_games: u32,
    /// Match games of a job, an even number from 2 to 1,024.
    pub match_games: u32,
    /// For how long a job keeps a worker busy that knows its speed, in seconds, 10 to 3,600. A gate match
    /// begins when a worker has ended the job that it has.
    pub job_seconds: u32,
    /// How long a lease lasts without a heartbeat, in seconds, 10 to 86,400.
    pub lease_seconds: u32,
}

impl Default for SchedulingParams {
    fn default() -> Self {
        Self {
            puzzle_share: 0.2,
            gate_share: 0.8,
            rating_share: 0.05,
            rating_pairs: 20,
            selfplay_games: 32,
            puzzle_games: 64,
            match_games: 16,
            job_seconds: 300,
            lease_seconds: 120,
        }
    }
}

/// What the trainer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TrainingParams {
    /// Positions of a batch.
    pub batch_size: u32,
    /// Optimiser steps between two candidates.
    pub steps_per_candidate: u32,
    /// New positions that must have arrived before the next candidate is trained.
    pub positions_per_candidate: u64,
    /// The window that is sampled.
    pub window: WindowParams,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// The learning rate.
    pub learning_rate: LearningRate,
    /// L2 weight decay on convolution and dense weights.
    pub weight_decay: f64,
    /// Weight of the policy loss.
    pub policy_weight: f64,
    /// Weight of the value loss.
    pub value_weight: f64,
    /// Weight of the losses of each auxiliary head, where the network has some.
    pub auxiliary_weight: f64,
    /// Share of the search's root value in the value target; the rest is the game's result.
    pub q_ratio: f64,
    /// Share of the policy target that is spread evenly over the legal moves, 0 to 0.5.
    pub label_smoothing: f64,
    /// Share of positions that are trained on mirrored, files a to h as h to a, 0 to 1. It applies
    /// where neither side could castle in the position or the boards seen before it.
    pub mirror_share: f64,
    /// How positions are drawn from the window.
    pub sampling: Sampling,
    /// What share of a batch each kind of game gets; by their positions in the window if not given.
    pub sources: Option<SourceWeights>,
    /// Gradients are scaled down to this norm, if it is given.
    pub gradient_clip: Option<f64>,
    /// Decay of the averaged weights that are exported, for each step; 0 exports the last weights.
    pub ema_decay: f64,
}

impl Default for TrainingParams {
    fn default() -> Self {
        Self {
            batch_size: 256,
            steps_per_candidate: 500,
            positions_per_candidate: 20_000,
            window: WindowParams::default(),
            optimizer: Optimizer::default(),
            learning_rate: LearningRate::default(),
            weight_decay: 1e-4,
            policy_weight: 1.0,
            value_weight: 1.0,
            auxiliary_weight: 0.1,
            q_ratio: 0.25,
            label_smoothing: 0.0,
            mirror_share: 0.0,
            sampling: Sampling::default(),
            sources: None,
            gradient_clip: Some(10.0),
            ema_decay: 0.99,
        }
    }
}

/// The positions that are sampled: the newest ones, a window that grows as
/// `min * (total / min)^exponent` up to `max` (KataGo's power law).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WindowParams {
    /// Positions before the first training and smallest window.
    pub min: u64,
    /// Largest window.
    pub max: u64,
    /// Growth, 0 (a fixed window of `min`) to 1 (everything up to `max`).
    pub exponent: f64,
}

impl Default for WindowParams {
    fn default() -> Self {
        Self {
            min: 20_000,
            max: 1_000_000,
            exponent: 0.75,
        }
    }
}

impl WindowParams {
    /// The window's size, in positions, when `total` have ever been produced.
    pub fn size(&self, total: u64) -> u64 {
        let min = self.min.max(1) as f64;
        let growth = (total as f64 / min).max(1.0).powf(self.exponent);
        ((min * growth) as u64).min(self.max)
    }
}

/// The optimiser.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Optimizer {
    /// Stochastic gradient descent with Nesterov momentum.
    Sgd {
        /// The momentum.
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
    /// The rate after warm-up.
    pub base: f64,
    /// Steps over which it rises from 0.
    pub warmup_steps: u64,
    /// Steps and the factors that apply from them on, in order.
    pub drops: Vec<(u64, f64)>,
    /// A fall along half a cosine, if it is given.
    pub cosine: Option<Cosine>,
}

/// A fall from 1 to `floor` along half a cosine (Loshchilov and Hutter, "SGDR", 2017, without
/// restarts).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cosine {
    /// The step at which `floor` is reached.
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

impl RunParams {
    /// Checks every parameter against its range.
    ///
    /// # Errors
    ///
    /// The first parameter that is outside.
    pub fn check(&self) -> Result<(), ParamsError> {
        self.selfplay.check()?;
        self.puzzle.check()?;
        self.matches.check()?;
        if let Some(superiority) = self.rollback {
            within("rollback", superiority, 0.9, 0.999_999)?;
        }
        self.scheduling.check()?;
        self.training.check()
    }
}

impl SchedulingParams {
    fn check(&self) -> Result<(), ParamsError> {
        within("puzzle share", self.puzzle_share, 0.0, 1.0)?;
        within("gate share", self.gate_share, 0.01, 1.0)?;
        within("rating share", self.rating_share, 0.0, 1.0)?;
        within("rating pairs", self.rating_pairs, 0.0, 10_000.0)?;
        within("self-play games of a job", self.selfplay_games, 1.0, 4096.0)?;
        within("puzzle games of a job", self.puzzle_games, 1.0, 4096.0)?;
        within("match games of a job", self.match_games, 2.0, 1024.0)?;
        within("job seconds", self.job_seconds, 10.0, 3600.0)?;
        within("lease seconds", self.lease_seconds, 10.0, 86_400.0)
    }
}

impl TrainingParams {
    fn check(&self) -> Result<(), ParamsError> {
        within("batch size", self.batch_size, 1.0, 65_536.0)?;
        within("steps per candidate", self.steps_per_candidate, 1.0, 1e7)?;
        within("learning rate", self.learning_rate.base, 1e-9, 100.0)?;
        if let Some(cosine) = self.learning_rate.cosine {
            within("cosine floor", cosine.floor, 0.0, 1.0)?;
            within("cosine steps", cosine.steps as f64, 1.0, 1e12)?;
        }
        within("weight decay", self.weight_decay, 0.0, 1.0)?;
        within("policy weight", self.policy_weight, 0.0, 1e3)?;
        within("value weight", self.value_weight, 0.0, 1e3)?;
        within("auxiliary weight", self.auxiliary_weight, 0.0, 1e3)?;
        within("q ratio", self.q_ratio, 0.0, 1.0)?;
        within("label smoothing", self.label_smoothing, 0.0, 0.5)?;
        within("mirror share", self.mirror_share, 0.0, 1.0)?;
        if let Some(sources) = self.sources {
            sources.check()?;
        }
        within("ema decay", self.ema_decay, 0.0, 0.999_999)?;
        within("window exponent", self.window.exponent, 0.0, 1.0)?;
        within("window minimum", self.window.min as f64, 1.0, 1e12)?;
        within(
            "window maximum",
            self.window.max as f64,
            self.window.min as f64,
            1e12,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range_and_round_trip() {
        let params = RunParams::default();
        assert_eq!(params.check(), Ok(()));
        let json = serde_json::to_string(&params).unwrap();
        assert_eq!(serde_json::from_str::<RunParams>(&json).unwrap(), params);
        assert_eq!(serde_json::from_str::<RunParams>("{}").unwrap(), params);
    }

    #[test]
    fn the_ends_of_a_range_are_in_it() {
        let mut scheduling = SchedulingParams::default();
        for share in [0.01, 1.0] {
            scheduling.gate_share = share;
            assert_eq!(scheduling.check(), Ok(()));
        }
        for share in [0.0099, 1.001] {
            scheduling.gate_share = share;
            assert!(scheduling.check().is_err());
        }
    }

    #[test]
    fn the_window_grows_by_a_power_law() {
        let window = WindowParams {
            min: 1000,
            max: 5000,
            exponent: 0.5,
        };
        assert_eq!(window.size(10), 1000);
        assert_eq!(window.size(4000), 2000);
        assert_eq!(window.size(1_000_000), 5000);
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
