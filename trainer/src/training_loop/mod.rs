//! Training steps one after the other: the batches of a candidate, the learning rate, the losses.

use anyhow::Context as _;
use rookery_common::network::ValueHead;
use rookery_common::params::LearningRate;
use rookery_train::{Losses, TrainError, Trainer};

use crate::buffer::{Mixture, Window};
use crate::learner::Learner;
use crate::pipeline::{BatchPlan, Prefetcher, Sampled, Sampler, encode_batch};

mod device_prefetch;
mod loss_meter;

pub use device_prefetch::DevicePrefetch;
pub use loss_meter::LossMeter;

/// Steps over which logged losses are means.
pub const LOG_EVERY: u64 = 10;

/// Positions on which validation measures, at most.
const VALIDATION_POSITIONS: usize = 2048;

/// What all steps of a candidate have in common.
#[derive(Debug, Clone)]
pub struct StepPlan {
    /// The batches.
    pub plan: BatchPlan,
    /// Which positions they hold.
    pub sampler: Sampler,
    /// The learning rate.
    pub rate: LearningRate,
    /// The step that is the learning rate's step 0.
    pub rate_from: u64,
    /// Steps that were taken before batch 0.
    pub first_step: u64,
    /// Threads that encode.
    pub threads: usize,
}

/// A plan that has begun.
#[derive(Debug)]
pub struct TrainingLoop {
    plan: StepPlan,
    batches: DevicePrefetch,
    next: u64,
    end: u64,
}

/// What a step measured.
#[derive(Debug, Clone, Copy)]
pub struct StepReport {
    /// The number of its batch.
    pub batch: u64,
    /// Steps that have been taken now.
    pub step: u64,
    /// The learning rate.
    pub rate: f64,
    /// The losses before the step.
    pub losses: Losses,
    /// Positions of the batch.
    pub positions: usize,
}

impl StepPlan {
    /// Begins the steps with these batch numbers on windows that are not empty.
    ///
    /// # Errors
    ///
    /// If there is no position or the system gives no thread.
    pub fn begin(
        self,
        mixture: &Mixture,
        numbers: std::ops::Range<u64>,
    ) -> anyhow::Result<TrainingLoop> {
        anyhow::ensure!(!mixture.is_empty(), "there are no positions to train on");
        let (next, end) = (numbers.start, numbers.end);
        let source = Sampled {
            mixture: mixture.clone(),
            plan: self.plan,
            sampler: self.sampler,
        };
        let batches = Prefetcher::start(source, numbers, self.threads)
            .context("cannot start the threads that encode positions")?;
        Ok(TrainingLoop {
            plan: self,
            batches: DevicePrefetch::new(batches),
            next,
            end,
        })
    }
}

impl TrainingLoop {
    /// Takes the next step; none after the last.
    ///
    /// # Errors
    ///
    /// If training diverged (the step was then not taken) or libtorch failed.
    pub fn step(&mut self, trainer: &mut Trainer) -> anyhow::Result<Option<StepReport>> {
        if self.next == self.end {
            return Ok(None);
        }
        let before = self.plan.first_step + self.next;
        let rate = self
            .plan
            .rate
            .at(before.saturating_sub(self.plan.rate_from));
        let stepped = self.batches.step(trainer, rate);
        let stepped = stepped.map_err(|error| self.explain(error))?;
        let (losses, positions) = stepped.context("a thread that encodes positions has failed")?;
        let number = self.next;
        self.next += 1;
        Ok(Some(StepReport {
            batch: number,
            step: before + 1,
            rate,
            losses,
            positions,
        }))
    }

    fn explain(&self, error: TrainError) -> anyhow::Error {
        anyhow::Error::from(error).context(format!("training stopped at batch {}", self.next))
    }
}

/// Whether training ended because its numbers are not finite any more.
pub fn is_divergence(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(TrainError::Diverged { .. }))
}

/// Losses on positions that are never trained on: the same ones as long as the window is the same.
///
/// # Errors
///
/// libtorch's error. Without positions, none.
pub fn validate(
    trainer: &mut Trainer,
    window: &Window,
    plan: &BatchPlan,
) -> anyhow::Result<Option<LossMeter>> {
    if window.is_empty() {
        return Ok(None);
    }
    let mut meter = LossMeter::default();
    let sampler = Sampler {
        seed: 0,
        candidate: 0,
    };
    let count = VALIDATION_POSITIONS.min(window.len() as usize);
    let mixture = Mixture::of(window.clone());
    for (number, size) in batch_sizes(count, plan.batch_size).enumerate() {
        let batch = encode_batch(&mixture, sampler, number as u64, &plan.plain(size));
        meter.add(&trainer.measure(&batch)?, size);
    }
    Ok(Some(meter))
}

/// The same of the candidate, which has the averaged weights.
///
/// # Errors
///
/// If an averaged weight is not finite, or libtorch's error.
pub fn validate_candidate(
    learner: &Learner,
    window: &Window,
    plan: &BatchPlan,
) -> anyhow::Result<Option<LossMeter>> {
    validate(&mut learner.averaged()?, window, plan)
}

/// Measures before the first step, and warns of values that contradict the games. A loss grows without bound where
/// a network rules out what happens (a WDL head that has never seen a draw, say): the first steps then serve to
/// unlearn that, and tear down what else the network knows.
///
/// # Errors
///
/// libtorch's error.
pub fn survey(trainer: &mut Trainer, window: &Window, plan: &BatchPlan) -> anyhow::Result<()> {
    let Some(meter) = validate(trainer, window, plan)? else {
        return Ok(());
    };
    tracing::info!("held out, before: {meter}");
    let head = trainer.spec().value;
    if contradicts_games(head, meter.value()) {
        tracing::warn!(
            "RK-0719: the network's values contradict these games: their loss is {:.2}; a network that knows nothing \
             has {:.2}. It gives no chance to results that occur, draws for example, and the first steps will cost \
             much of what it knows. Train it on results first, with a low learning rate",
            meter.value(),
            3.0_f64.ln(),
        );
    }
    Ok(())
}

/// Whether a mean value loss is far above that of saying win, draw and loss are as likely.
fn contradicts_games(head: ValueHead, value_loss: f64) -> bool {
    matches!(head, ValueHead::Wdl { .. }) && value_loss > 1.5 * 3.0_f64.ln()
}

/// `count` in parts of at most `batch_size`.
fn batch_sizes(count: usize, batch_size: usize) -> impl Iterator<Item = usize> {
    let batch_size = batch_size.max(1);
    (0..count)
        .step_by(batch_size)
        .map(move |start| batch_size.min(count - start))
}

#[cfg(test)]
mod tests;
