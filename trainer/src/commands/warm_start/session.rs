//! A session of a warm start: blocks in, steps taken, checkpoints kept, a network out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::file_lock::FileLock;
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;
use rookery_common::network::NetworkSpec;
use rookery_common::output;
use rookery_common::params::TrainingParams;
use rookery_common::protocol::runs::MetricPoint;
use rookery_common::text::quantity;
use rookery_model::Weights;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{WarmStartArgs, report};
use crate::checkpoint::CheckpointFolder;
use crate::folder_lock;
use crate::learner::{Compute, Learner};
use crate::metrics::{MetricKind, MetricLog, values};
use crate::pipeline::{Prefetcher, Sampler};
use crate::training_loop::{DevicePrefetch, LOG_EVERY, LossMeter};
use crate::warm::stream::{Plan, Read};
use crate::warm::{Block, Counts, Mirroring, Place, Shuffled, Stream};
use rookery_cli::Shutdown;
use rookery_cli::Task;

/// Threads that make batches: they copy what has been encoded already, far faster than any device learns it.
const BATCH_THREADS: usize = 1;

/// Where a warm start stands, as checkpoints hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    plan: Plan,
    params: TrainingParams,
    /// The first network.
    parent: ContentHash,
    /// Where the block in work begins.
    place: Place,
    /// What had been read before it.
    counts: Counts,
    /// Batches of it that are done.
    batches: u64,
    step: u64,
    /// The network's file, which alone is replaced without --force.
    #[serde(default)]
    output: Option<PathBuf>,
}

/// A warm start from where it begins, or where the last session of it stopped, until it ends or is stopped.
pub(super) struct WarmSession<'a> {
    args: &'a WarmStartArgs,
    shutdown: &'a Shutdown,
    learner: Learner,
    state: State,
    checkpoints: Option<CheckpointFolder>,
    _lock: Option<FileLock>,
    log: Option<MetricLog>,
    meter: LossMeter,
    saved: Instant,
    begun: Instant,
    /// Games that an earlier session had read.
    games_before: u64,
    /// The newest block's counts and positions held out.
    seen: Option<(Counts, Arc<Block>)>,
}

impl<'a> WarmSession<'a> {
    /// Begins, or goes on where the checkpoints of the folder end.
    ///
    /// # Errors
    ///
    /// If the folder is another warm start's or in use, or the network cannot be trained.
    pub(super) fn begin(
        args: &'a WarmStartArgs,
        shutdown: &'a Shutdown,
        parent: ContentHash,
        weights: &Weights,
        compute: Compute,
    ) -> anyhow::Result<Self> {
        let mut params = args.training.params()?;
        params.mirror_share = args.mirror.unwrap_or(params.mirror_share);
        let fresh = State {
            plan: args.plan()?,
            params,
            parent,
            place: Place::default(),
            counts: Counts::default(),
            batches: 0,
            step: 0,
            output: args.output.as_deref().map(absolute).transpose()?,
        };
        let folder = args.dir.as_deref().filter(|_| !args.dry_run);
        let lock = folder.map(folder_lock::take).transpose()?;
        let checkpoints = folder.map(|dir| CheckpointFolder::open(dir.join("checkpoints")));
        let checkpoints = checkpoints.transpose()?;
        let resume = |state: &State, path: &Path| -> anyhow::Result<Learner> {
            check_same(&fresh, state, args.dir.as_deref())?;
            Ok(Learner::resume(path, &fresh.params, compute)?)
        };
        let loaded = checkpoints.as_ref().map(|folder| folder.load(resume));
        let loaded = loaded.transpose()?.flatten();
        let own = loaded.as_ref().and_then(|one| one.state.output.as_ref());
        if let Some(path) = args.output.as_deref().filter(|_| !args.dry_run)
            && own != fresh.output.as_ref()
        {
            args.replace.check(path)?;
        }
        let (state, learner) = match loaded {
            Some(loaded) => {
                tracing::info!("going on after step {}", loaded.state.step);
                let state = State {
                    output: fresh.output,
                    ..loaded.state
                };
                (state, loaded.learner)
            }
            None => {
                let learner = Learner::new(weights, &fresh.params, compute)?;
                (fresh, learner)
            }
        };
        Ok(Self {
            args,
            shutdown,
            learner,
            checkpoints,
            _lock: lock,
            log: args.log_file.as_deref().map(MetricLog::open).transpose()?,
            meter: LossMeter::default(),
            saved: Instant::now(),
            begun: Instant::now(),
            games_before: state.counts.games_read(),
            state,
            seen: None,
        })
    }

    /// The blocks that are still to be trained on.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub(super) fn stream(&self, spec: &NetworkSpec) -> anyhow::Result<Stream> {
        let state = &self.state;
        let empty = Block::new(spec, state.params.q_ratio);
        Stream::start(state.plan.clone(), empty, state.place, state.counts.clone())
            .context("cannot start the thread that reads games")
    }

    /// Trains on a block of the stream. Returns whether that was the last one.
    ///
    /// # Errors
    ///
    /// If training diverges, or the log or a checkpoint cannot be written.
    pub(super) fn take(
        &mut self,
        read: Read,
        stream: &Stream,
        task: &mut Task,
    ) -> anyhow::Result<bool> {
        self.seen = Some((read.counts.clone(), read.held_out));
        task.at(stream.bytes_read(), &self.note());
        if self.args.dry_run {
            return Ok(self.is_over());
        }
        let block = self.shuffled(read.block, read.begin);
        let numbers = self.state.batches..block.batches();
        let batches = Prefetcher::start(block, numbers.clone(), BATCH_THREADS)
            .context("cannot start the thread that makes batches")?;
        let mut prefetch = DevicePrefetch::new(batches);
        for _ in numbers {
            if self.is_over() {
                return Ok(true);
            }
            self.step(&mut prefetch)?;
            if self.meter.steps() == LOG_EVERY {
                self.log()?;
                task.at(stream.bytes_read(), &self.note());
                self.meter = LossMeter::default();
            }
            if self.saved.elapsed() >= Duration::from_secs(self.args.checkpoint_every) {
                self.save()?;
            }
        }
        self.state.place = read.end;
        self.state.counts = read.counts;
        self.state.batches = 0;
        Ok(self.is_over())
    }

    /// Whether all steps are done, the time is over, or the user has stopped.
    fn is_over(&self) -> bool {
        let enough = self.args.steps.is_some_and(|most| self.state.step >= most);
        enough || self.args.training.is_over(self.begun) || self.shutdown.is_requested()
    }

    /// The batches of a block that begins at this place.
    fn shuffled(&self, block: Block, begin: Place) -> Shuffled {
        let State { plan, params, .. } = &self.state;
        let mirroring = Mirroring {
            sampler: Sampler {
                seed: plan.seed,
                candidate: 0,
            },
            share: params.mirror_share,
            first_step: self.state.step.saturating_sub(self.state.batches),
        };
        let size = params.batch_size as usize;
        Shuffled::new(block, plan.seed ^ begin.games, size, mirroring)
    }

    fn step(&mut self, prefetch: &mut DevicePrefetch) -> anyhow::Result<()> {
        let rate = self.state.params.learning_rate.at(self.state.step);
        let stepped = prefetch
            .step(&mut self.learner.trainer, rate)
            .with_context(|| {
                format!(
                    "training stopped at step {} (batch {} of the block after game {}); the last \
                 checkpoint is kept",
                    self.state.step, self.state.batches, self.state.place.games
                )
            })?;
        let (losses, positions) = stepped.context("the thread that makes batches has failed")?;
        self.meter.add(&losses, positions);
        self.state.step += 1;
        self.state.batches += 1;
        Ok(())
    }

    /// How far it is, for people.
    fn note(&self) -> String {
        let Some((counts, _)) = &self.seen else {
            return String::new();
        };
        let games = counts.games_read();
        let fresh = games.saturating_sub(self.games_before);
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        let mut note = format!(
            "{}, {:.0} games/s",
            quantity(games, "game"),
            fresh as f64 / seconds
        );
        if self.meter.steps() > 0 {
            note.push_str(&format!(", step {}, {}", self.state.step, self.meter));
        }
        note
    }

    fn log(&mut self) -> anyhow::Result<()> {
        let step = self.state.step;
        let rate = self.state.params.learning_rate.at(step.saturating_sub(1));
        let rate = values([("learning_rate", rate)]);
        let mut values = self.meter.training();
        values.extend(rate);
        if let Some(log) = &mut self.log {
            log.write(MetricKind::Train, &MetricPoint { step, values })?;
        }
        Ok(())
    }

    fn save(&mut self) -> anyhow::Result<()> {
        self.saved = Instant::now();
        let trainer = &self.learner.trainer;
        match &mut self.checkpoints {
            Some(folder) => folder.save(&self.state, |path| Ok(trainer.save(path)?)),
            None => Ok(()),
        }
    }

    /// Measures on the games held out, writes the network and says what was done. `is_over` is false if all games were
    /// read: a session that stops before its first step writes the network as it was.
    ///
    /// # Errors
    ///
    /// If there was nothing to train on, or a file cannot be written.
    pub(super) fn finish(mut self, is_over: bool) -> anyhow::Result<()> {
        let (counts, held_out) = self.seen.take().context("there are no games to read")?;
        let seconds = self.begun.elapsed().as_secs_f64();
        let fresh = counts.games_read().saturating_sub(self.games_before);
        report::log(&counts, fresh, seconds);
        let mut result = json!({
            "counts": counts,
            "seconds": seconds,
            "steps": self.state.step,
            "peak_rss_bytes": rookery_common::memory::peak_rss_bytes(),
        });
        if !self.args.dry_run {
            anyhow::ensure!(
                self.state.step > 0 || is_over,
                "RK-0709: nothing to train on: {} gave {}, and a batch has {}{}",
                quantity(counts.games, "game"),
                quantity(counts.positions, "position"),
                self.state.params.batch_size,
                report::unrated(&counts)
            );
            self.save()?;
            if let Some(meter) = self.measure(&held_out)? {
                tracing::info!("held out: {meter}");
                result["validation"] = json!(meter.validation());
                result["validation_positions"] = held_out.len().into();
            }
            let hash = self.write()?;
            result["network"] = hash.to_string().into();
        }
        if self.args.json {
            output::print_json(&result)?;
        } else if let Some(hash) = result["network"].as_str() {
            output::print_line(hash)?;
        }
        Ok(())
    }

    /// Losses of the averaged weights, those that are exported.
    fn measure(&mut self, held_out: &Block) -> anyhow::Result<Option<LossMeter>> {
        if held_out.is_empty() {
            return Ok(None);
        }
        let mut meter = LossMeter::default();
        let order: Vec<u32> = (0..held_out.len() as u32).collect();
        let mut averaged = self.learner.averaged()?;
        for places in order.chunks(self.state.params.batch_size as usize) {
            let losses = averaged.measure(&held_out.batch(places))?;
            meter.add(&losses, places.len());
        }
        Ok(Some(meter))
    }

    fn write(&self) -> anyhow::Result<ContentHash> {
        let path = self.args.output.as_deref();
        let path = path.context("no --output says where to write the network")?;
        let bytes = self.learner.export(Some(self.state.parent))?;
        write_whole(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        tracing::info!(
            "wrote {} after {}",
            path.display(),
            quantity(self.state.step, "step")
        );
        Ok(ContentHash::of(&bytes))
    }
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}

/// A folder of another warm start is not gone on with.
fn check_same(asked: &State, found: &State, dir: Option<&Path>) -> anyhow::Result<()> {
    let same =
        asked.plan == found.plan && asked.params == found.params && asked.parent == found.parent;
    anyhow::ensure!(
        same,
        "RK-0707: the folder {} belongs to a warm start of other files, settings or first network; give \
         those again to go on with it, or another --dir",
        dir.unwrap_or(Path::new("")).display()
    );
    Ok(())
}
