//! The phases of a load: what happens, one after the other.
//!
//! [`calls`] is what every phase is made of; [`routes`] loads one route at a time, [`reconnect`]
//! all workers at once, [`mix`] whole jobs by workers of all habits, and [`candidates`] gives them
//! gates to play.

pub(crate) mod calls;
pub(crate) mod candidates;
mod mix;
mod progress;
mod reconnect;
mod routes;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::protocol::jobs::Job;
use tokio::task::JoinSet;

use crate::book::Book;
use crate::cli::{Cli, Mode};
use crate::games::Pool;
use crate::http::{Connection, bearer};
use crate::measure::Record;
use crate::target::Target;
use calls::Ground;

/// How long a request that must succeed is tried again.
const PATIENCE: Duration = Duration::from_secs(120);

/// A load in progress.
pub(crate) struct Swarm {
    pub(crate) cli: Cli,
    pub(crate) target: Target,
    pub(crate) ground: Arc<Ground>,
    /// What was measured so far.
    pub(crate) record: Record,
    /// How long was measured.
    pub(crate) measured: Duration,
}

/// A job that is held by a worker.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) contributor: usize,
    pub(crate) job: Job,
}

impl Swarm {
    /// Prepares everything: the coordinator, contributors, games.
    ///
    /// # Errors
    ///
    /// If something is missing.
    pub(crate) async fn begin(cli: Cli) -> anyhow::Result<Self> {
        let target = Target::ready(&cli).await?;
        let tokens = target.register(cli.contributors).await?;
        let mut ground = Ground {
            address: target.address,
            run: target.run.clone(),
            contributors: tokens
                .iter()
                .map(|token| bearer(token))
                .collect::<anyhow::Result<_>>()?,
            book: Book::default(),
            pool: None,
            answers: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        };
        if cli.gate_every.is_none() {
            ground.pool = Some(pool(&ground, cli.seed).await?);
        }
        Ok(Self {
            cli,
            target,
            ground: Arc::new(ground),
            record: Record::default(),
            measured: Duration::ZERO,
        })
    }

    /// Runs all phases.
    ///
    /// # Errors
    ///
    /// If a phase cannot be prepared.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        for mode in self.cli.mode.clone() {
            let progress = progress::begin(mode, self.ground.clone());
            let (record, took) = match mode {
                Mode::Jobs => routes::jobs(self).await?,
                Mode::Heartbeats => routes::heartbeats(self).await?,
                Mode::Uploads => routes::uploads(self).await?,
                Mode::Reconnect => reconnect::run(self).await?,
                Mode::Mix => mix::run(self).await?,
            };
            progress.abort();
            self.record.add_phase(record, took);
            self.measured += took;
        }
        Ok(())
    }

    /// Takes this number of jobs, without measuring.
    async fn take_jobs(&self, count: usize) -> anyhow::Result<Vec<Held>> {
        let mut tasks = JoinSet::new();
        for lane in 0..self.cli.connections {
            let ground = self.ground.clone();
            let lanes = self.cli.connections;
            tasks.spawn(async move {
                let mut connection = ground.connection()?;
                let mut held = Vec::new();
                for index in (lane..count).step_by(lanes) {
                    let contributor = index % ground.contributors.len();
                    let name = format!("swarm-{index}");
                    let job = ground
                        .lease_surely(&mut connection, contributor, &name)
                        .await?;
                    held.push(Held { contributor, job });
                }
                anyhow::Ok(held)
            });
        }
        let mut all = Vec::with_capacity(count);
        while let Some(held) = tasks.join_next().await {
            all.extend(held??);
        }
        Ok(all)
    }
}

/// Games for jobs like the first one.
async fn pool(ground: &Ground, seed: u64) -> anyhow::Result<Pool> {
    let first = ground.lease(&mut ground.connection()?, 0, "swarm").await;
    let job = first.map_err(|refusal| anyhow::anyhow!("there is no job: {}", refusal.label()))?;
    tokio::task::spawn_blocking(move || Pool::play(&job, seed)).await?
}

/// Runs a task on each connection, and adds up what they measured.
async fn on_connections<F>(
    connections: usize,
    ground: &Arc<Ground>,
    task: impl Fn(Arc<Ground>, Connection, usize) -> F,
) -> anyhow::Result<(Record, Duration)>
where
    F: Future<Output = anyhow::Result<Record>> + Send + 'static,
{
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for lane in 0..connections {
        tasks.spawn(task(ground.clone(), ground.connection()?, lane));
    }
    let mut all = Record::default();
    while let Some(record) = tasks.join_next().await {
        all.merge(record.context("a task of the swarm broke")??);
    }
    Ok((all, begun.elapsed()))
}
