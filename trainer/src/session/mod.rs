//! A run of the trainer: one candidate after the other, until the user stops.
//!
//! ```text
//!            +---------------------------------------------------------------+
//!            v                                                               |
//!   Gather (follow the ledger) -> Train (steps) -> Submit (PUT) -> Await (verdict)
//! ```
//!
//! [`state`] is where in this circle the run stands; it is saved with the learner at every arrow
//! and now and then while training, so that a trainer that was killed goes on where it was.
//! [`begin`] finds or makes the network to begin with, [`gather`], [`train`], [`submit`] are the
//! phases; [`divergence`] is how training goes on after its numbers were no longer finite, [`cleanup`] removes files that
//! no phase needs any more.

mod begin;
mod cleanup;
mod divergence;
mod gather;
pub mod state;
mod submit;
mod train;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use rookery_common::file_lock::FileLock;
use rookery_common::params::TrainingParams;
use rookery_common::protocol::runs::MetricPoint;

pub use state::{Phase, State};

use crate::api::{CallError, Client};
use crate::buffer::Window;
use crate::checkpoint::CheckpointFolder;
use crate::data::ChunkIngest;
use crate::data::ledger_sync::LedgerSync;
use crate::learner::{Compute, Learner};
use crate::metrics::endpoint::Endpoint;
use crate::metrics::{MetricKind, MetricLog, MetricSender, Values};
use crate::pipeline::BatchPlan;
use crate::warm::Library;
use rookery_cli::Screen;
use rookery_cli::Shutdown;

/// What training goes on from after a candidate was rejected, or demoted by a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum OnRejection {
    /// The rejected candidate's weights: more training may be all that it lacks.
    #[default]
    Continue,
    /// The best network's weights.
    Best,
}

/// Where a run's first network comes from, if it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstNetwork {
    /// Random weights of this shape.
    Shape(String),
    /// A file.
    File(PathBuf),
    /// There must be one already.
    Existing,
}

/// How the trainer runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its folder.
    pub dir: PathBuf,
    /// Where the first network comes from.
    pub first: FirstNetwork,
    /// What a rejection leads to.
    pub on_rejection: OnRejection,
    /// The seed of the random network and of all sampling.
    pub seed: u64,
    /// Share of chunks that is held out.
    pub held_out: f64,
    /// How often a position may be trained on, on average.
    pub max_reuse: f64,
    /// How long chunks wait for audits before they are trained on.
    pub chunk_delay: Duration,
    /// Games of others that are mixed into the batches.
    pub library: Option<Library>,
    /// Threads that encode.
    pub encode_threads: usize,
    /// Time between checkpoints while training.
    pub checkpoint_every: Duration,
    /// Time between questions to the coordinator while waiting.
    pub poll_every: Duration,
    /// Verdicts after which the trainer ends.
    pub candidates: Option<u32>,
    /// Where measurements are served for Prometheus.
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Where to train.
    pub compute: Compute,
}

/// What a session is made of beside its settings.
#[derive(Debug)]
pub struct SessionContext {
    /// The coordinator.
    pub client: Client,
    /// Where progress goes.
    pub screen: Screen,
    /// When to end.
    pub shutdown: Shutdown,
}

/// A running trainer.
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    context: SessionContext,
    ledger_sync: LedgerSync,
    ingest: ChunkIngest,
    /// Games of others, with their share of every batch.
    others: (Window, f64),
    checkpoints: CheckpointFolder,
    learner: Learner,
    state: State,
    log: MetricLog,
    _endpoint: Option<Endpoint>,
    sender: MetricSender,
    _lock: FileLock,
}

/// Trains candidates until the user stops or the settings' number of verdicts has come; the state
/// is saved then.
///
/// # Errors
///
/// If the coordinator refuses for good, a file cannot be read or written, or training diverges.
pub async fn run(settings: Settings, context: SessionContext) -> anyhow::Result<()> {
    let mut session = match Session::begin(settings, context).await {
        Err(error) if is_stop(&error) => return Ok(()),
        begun => begun?,
    };
    let result = session.run_phases().await;
    session.sender.finish().await;
    match result {
        Err(error) if !is_stop(&error) => Err(error),
        _ => {
            let step = session.state.step;
            tracing::info!(
                "saved and ended after step {step}; the same command goes on from there"
            );
            Ok(())
        }
    }
}

/// Whether the error is only that the user asked to stop.
fn is_stop(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(CallError::Stopped))
}

impl Session {
    async fn run_phases(&mut self) -> anyhow::Result<()> {
        let mut verdicts = 0;
        loop {
            let flow = match self.state.phase.clone() {
                Phase::Gather => self.gather().await?,
                Phase::Train(training) => self.train(&training)?,
                Phase::Submit { hash } => {
                    self.submit(hash).await?;
                    ControlFlow::Continue(())
                }
                Phase::Await { hash } => {
                    verdicts += 1;
                    self.wait_for_verdict(hash).await?
                }
            };
            let enough = self
                .settings
                .candidates
                .is_some_and(|most| verdicts >= most);
            if flow.is_break() || enough || self.context.shutdown.is_requested() {
                return Ok(());
            }
        }
    }

    /// What the batches of the candidate in work are.
    fn batches(&self) -> BatchPlan {
        BatchPlan::new(self.learner.trainer.spec(), &self.state.params)
    }

    /// Enters a phase and saves it.
    fn enter(&mut self, phase: Phase) -> anyhow::Result<()> {
        self.state.phase = phase;
        self.save()
    }

    fn save(&mut self) -> anyhow::Result<()> {
        let trainer = &self.learner.trainer;
        self.checkpoints
            .save(&self.state, |path| Ok(trainer.save(path)?))
    }

    /// Writes metrics to the log and hands them to the coordinator, whose pages draw them.
    fn record(&mut self, kind: MetricKind, values: Values) -> anyhow::Result<()> {
        let step = self.state.step;
        let point = MetricPoint { step, values };
        self.log.write(kind, &point)?;
        self.sender.send(point);
        Ok(())
    }

    /// Writes what happened to the log only: it is no curve over steps.
    fn note(&mut self, kind: MetricKind, values: Values) -> anyhow::Result<()> {
        let step = self.state.step;
        self.log.write(kind, &MetricPoint { step, values })
    }

    fn follow_params(&mut self, params: TrainingParams) -> anyhow::Result<()> {
        self.ingest.set_capacity(params.window.max);
        let scratch = self.settings.dir.join("parameters-changed.net");
        self.learner.follow(&params, &scratch)?;
        self.state.params = params;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
