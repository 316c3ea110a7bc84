//! The steps of one candidate.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Context as _;
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;

use super::Session;
use super::state::{Phase, Training};
use crate::buffer::Mixture;
use crate::metrics::{MetricKind, values};
use crate::pipeline::Sampler;
use crate::training_loop::{
    LOG_EVERY, LossMeter, StepPlan, StepReport, is_divergence, survey, validate_candidate,
};

impl Session {
    /// Takes the steps that are left, saving now and then, and exports the candidate.
    pub(super) fn train(&mut self, training: &Training) -> anyhow::Result<ControlFlow<()>> {
        self.take_steps(training).map_err(|error| {
            if is_divergence(&error) {
                self.diverged(error)
            } else {
                error
            }
        })
    }

    fn take_steps(&mut self, training: &Training) -> anyhow::Result<ControlFlow<()>> {
        if training.done == 0 {
            let (held_out, plan) = (self.ingest.validation(), self.batches());
            survey(&mut self.learner.trainer, &held_out, &plan)?;
        }
        let plan = self.step_plan(training)?;
        let mixture = self.mixture(training);
        let mut steps = plan.begin(&mixture, training.done..training.steps)?;
        let mut task = self.context.screen.task("training", training.steps);
        let (mut meter, mut saved) = (LossMeter::default(), Instant::now());
        while let Some(report) = steps.step(&mut self.learner.trainer)? {
            self.count(&report);
            meter.add(&report.losses, report.positions);
            if meter.steps() == LOG_EVERY || report.batch + 1 == training.steps {
                task.at(report.batch + 1, &meter.to_string());
                self.log_losses(&meter, &report, training)?;
                meter = LossMeter::default();
            }
            if self.context.shutdown.is_requested() {
                self.save_after(&report)?;
                tracing::info!(
                    "saved after step {} of {}",
                    report.batch + 1,
                    training.steps
                );
                return Ok(ControlFlow::Break(()));
            }
            if saved.elapsed() >= self.settings.checkpoint_every {
                self.save_after(&report)?;
                saved = Instant::now();
            }
        }
        drop(task);
        self.finish()?;
        Ok(ControlFlow::Continue(()))
    }

    /// What the candidate's batches are drawn from.
    fn mixture(&self, training: &Training) -> Mixture {
        let window = self.ingest.training().window(training.window);
        Mixture::of_run(window, self.state.params.sources, self.others.clone())
    }

    fn step_plan(&self, training: &Training) -> anyhow::Result<StepPlan> {
        let first_step = self.state.step.checked_sub(training.done);
        Ok(StepPlan {
            plan: self.batches(),
            sampler: Sampler {
                seed: self.state.seed,
                candidate: self.state.candidate,
            },
            rate: self.state.params.learning_rate.clone(),
            rate_from: self.state.rate_from,
            first_step: first_step.context(
                "the checkpoint contradicts itself: it has more steps of the candidate than of all \
                 training",
            )?,
            threads: self.settings.encode_threads,
        })
    }

    fn count(&mut self, report: &StepReport) {
        self.state.step = report.step;
        if let Phase::Train(training) = &mut self.state.phase {
            training.done = report.batch + 1;
        }
    }

    fn save_after(&mut self, report: &StepReport) -> anyhow::Result<()> {
        let place = || format!("training stopped after batch {}", report.batch);
        self.save().with_context(place)
    }

    fn log_losses(
        &mut self,
        meter: &LossMeter,
        report: &StepReport,
        training: &Training,
    ) -> anyhow::Result<()> {
        let mut point = meter.training();
        point.extend(values([
            ("learning_rate", report.rate),
            ("window", training.window as f64),
            ("reuse", training.reuse),
        ]));
        self.record(MetricKind::Train, point)
    }

    /// Measures the candidate on held-out positions and writes its file.
    fn finish(&mut self) -> anyhow::Result<()> {
        let held_out = self.ingest.validation();
        let plan = self.batches();
        if let Some(meter) = validate_candidate(&self.learner, &held_out, &plan)? {
            tracing::info!("held out: {meter}");
            self.record(MetricKind::Validation, meter.validation())?;
        }
        self.write_candidate().map(drop)
    }

    /// Exports the candidate, writes its file, and enters [`Phase::Submit`].
    pub(super) fn write_candidate(&mut self) -> anyhow::Result<(ContentHash, Vec<u8>)> {
        let bytes = self.learner.export(Some(self.state.parent));
        let bytes = bytes.context("cannot export the candidate")?;
        let hash = ContentHash::of(&bytes);
        let path = self.candidate_path(hash);
        let folder = path.parent().unwrap_or(&self.settings.dir);
        let written = std::fs::create_dir_all(folder).and_then(|()| write_whole(&path, &bytes));
        written.with_context(|| format!("cannot write {}", path.display()))?;
        self.enter(Phase::Submit { hash })?;
        Ok((hash, bytes))
    }

    /// Where the file of the candidate in work is.
    pub(super) fn candidate_path(&self, hash: ContentHash) -> std::path::PathBuf {
        let name = format!("{:05}-{}.safetensors", self.state.candidate, hash.short());
        self.settings.dir.join("candidates").join(name)
    }
}
