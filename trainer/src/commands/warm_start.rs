//! `warm-start`: train a network on games of people and engines.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_common::ids::ContentHash;
use rookery_common::params::TrainingParams;
use rookery_common::protocol::runs::MetricPoint;
use rookery_nn::Weights;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flags::{DeviceArgs, OutputArgs, TrainingArgs, share};
use crate::checkpoint::CheckpointFolder;
use crate::files::{FolderLock, write_whole};
use crate::learner::{Compute, Learner};
use crate::lessons::Meter;
use crate::metrics::{MetricLog, values};
use crate::pipeline::Sampler;
use crate::screen::{Screen, Task};
use crate::shutdown::Shutdown;
use crate::warm::stream::{Plan, Read, total_bytes};
use crate::warm::{Block, Counts, Filter, Place, Skipped, Stream};

/// Steps over which logged losses are means.
const LOG_EVERY: u64 = 10;

/// Flags of `warm-start`.
#[derive(Debug, clap::Args)]
pub struct WarmStartArgs {
    /// PGN files, plain, gzip or zstd.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub pgn: Vec<PathBuf>,
    /// The network to begin with.
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// Write the trained network to this file.
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,
    /// Whether it may replace one; a warm start that goes on replaces its own.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Keep checkpoints in this folder; a warm start that was stopped, in whatever way, goes on
    /// from there with the same batches. [default: none are kept]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only read and encode the games, and say what they hold.
    #[arg(long)]
    pub dry_run: bool,
    /// End after so many optimiser steps. [default: when all games have been read]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// Read the files so often.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub epochs: u32,
    /// Pass over games in which a player is rated lower.
    #[arg(long, value_name = "ELO", default_value_t = 0.0)]
    pub min_elo: f64,
    /// Take this as the rating of players without one. [default: such games are passed over]
    #[arg(long, value_name = "ELO")]
    pub assume_elo: Option<f64>,
    /// Plies from the start of each game that are not trained on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_plies: u32,
    /// Train on at most so many positions of a game, chosen at random.
    #[arg(long, value_name = "N")]
    pub plies: Option<u32>,
    /// Hold this share of the games out of training, to measure on.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = share)]
    pub held_out: f64,
    /// Positions that are shuffled together; two such blocks are in memory, at about a kilobyte a
    /// position.
    #[arg(long, value_name = "POSITIONS", default_value_t = 65_536)]
    pub block: usize,
    /// The parameters of training.
    #[command(flatten)]
    pub training: TrainingArgs,
    /// Train on this share of the positions mirrored, files a to h as h to a, where nobody may
    /// castle. [default: the parameters' mirror-share]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub mirror: Option<f64>,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub checkpoint_every: u64,
    /// Append losses to this file, a JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where to train.
    #[command(flatten)]
    pub device: DeviceArgs,
}

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
}

/// A warm start at work.
struct Course<'a> {
    args: &'a WarmStartArgs,
    around: (&'a Screen, &'a Shutdown),
    learner: Learner,
    state: State,
    checkpoints: Option<CheckpointFolder>,
    _lock: Option<FolderLock>,
    log: Option<MetricLog>,
    meter: Meter,
    saved: Instant,
    begun: Instant,
    /// Games that an earlier session had read.
    games_before: u64,
    /// The newest block's counts and positions held out.
    seen: Option<(Counts, std::sync::Arc<Block>)>,
}

/// Why the loop goes on or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    /// All steps are done, or the user has stopped.
    Stop,
}

impl WarmStartArgs {
    fn plan(&self) -> anyhow::Result<Plan> {
        anyhow::ensure!(self.block > 0, "--block is a number above 0");
        Ok(Plan {
            files: self.pgn.clone(),
            epochs: self.epochs,
            filter: Filter {
                min_elo: self.min_elo,
                assumed_elo: self.assume_elo,
                skip_plies: self.skip_plies,
                positions_per_game: self.plies,
            },
            held_out: self.held_out,
            block: self.block,
            seed: self.seed,
        })
    }
}

/// Trains, or only reads.
///
/// # Errors
///
/// If a file cannot be read or written, there is nothing to train on, or training diverges.
pub fn execute(args: &WarmStartArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let total = total_bytes(&args.pgn)? * u64::from(args.epochs);
    let (parent, weights) = Weights::read(&args.network)?;
    let compute = args.device.open()?;
    let mut course = Course::begin(args, (screen, shutdown), parent.hash, &weights, compute)?;
    let state = &course.state;
    let empty = Block::new(weights.spec(), state.params.q_ratio);
    let stream = Stream::start(state.plan.clone(), empty, state.place, state.counts.clone())
        .context("cannot start the thread that reads games")?;
    let mut task = screen.task("bytes of PGN", total);
    while let Some(read) = stream.next_block()? {
        let progress = |task: &mut Task, course: &Course<'_>| {
            task.at(stream.bytes_read(), &course.note());
        };
        if course.take(read, &mut task, progress)? == Flow::Stop {
            break;
        }
    }
    drop(task);
    drop(stream);
    course.finish()
}

impl<'a> Course<'a> {
    fn begin(
        args: &'a WarmStartArgs,
        around: (&'a Screen, &'a Shutdown),
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
        };
        let folder = args.dir.as_deref().filter(|_| !args.dry_run);
        let lock = folder.map(FolderLock::take).transpose()?;
        let checkpoints = folder.map(|dir| CheckpointFolder::open(dir.join("checkpoints")));
        let checkpoints = checkpoints.transpose()?;
        let loaded = checkpoints.as_ref().map(CheckpointFolder::load::<State>);
        let (state, learner) = match loaded.transpose()?.flatten() {
            Some(loaded) => {
                check_same(&fresh, &loaded.state, args.dir.as_deref())?;
                tracing::info!("going on after step {}", loaded.state.step);
                let learner = Learner::resume(&loaded.learner, &fresh.params, compute)?;
                (loaded.state, learner)
            }
            None => {
                if let Some(path) = args.output.as_deref().filter(|_| !args.dry_run) {
                    args.replace.check(path)?;
                }
                let learner = Learner::new(weights, &fresh.params, compute)?;
                (fresh, learner)
            }
        };
        Ok(Self {
            args,
            around,
            learner,
            checkpoints,
            _lock: lock,
            log: args.log_file.as_deref().map(MetricLog::open).transpose()?,
            meter: Meter::default(),
            saved: Instant::now(),
            begun: Instant::now(),
            games_before: games_read(&state.counts),
            state,
            seen: None,
        })
    }

    /// Trains on a block.
    fn take(
        &mut self,
        read: Read,
        task: &mut Task,
        progress: impl Fn(&mut Task, &Self),
    ) -> anyhow::Result<Flow> {
        let size = self.state.params.batch_size as usize;
        let order = read.block.order(self.state.plan.seed ^ read.begin.games);
        self.seen = Some((read.counts.clone(), read.held_out));
        progress(task, self);
        if self.args.dry_run {
            return Ok(self.flow());
        }
        // The last batch of the last block may be smaller; one of a few positions teaches noise.
        let batches = order.chunks(size).filter(|places| 2 * places.len() >= size);
        for places in batches.skip(self.state.batches as usize) {
            if self.flow() == Flow::Stop {
                return Ok(Flow::Stop);
            }
            self.step(&read.block, places)?;
            if self.meter.steps() == LOG_EVERY {
                self.log()?;
                progress(task, self);
                self.meter = Meter::default();
            }
            if self.saved.elapsed() >= Duration::from_secs(self.args.checkpoint_every) {
                self.save()?;
            }
        }
        self.state.place = read.end;
        self.state.counts = read.counts;
        self.state.batches = 0;
        Ok(self.flow())
    }

    fn flow(&self) -> Flow {
        let enough = self.args.steps.is_some_and(|most| self.state.step >= most);
        if enough || self.around.1.is_requested() {
            Flow::Stop
        } else {
            Flow::On
        }
    }

    fn step(&mut self, block: &Block, places: &[u32]) -> anyhow::Result<()> {
        let mut batch = block.batch(places);
        let sampler = Sampler {
            seed: self.state.plan.seed,
            candidate: 0,
        };
        let share = self.state.params.mirror_share;
        let mirrored = sampler.mirrored(self.state.step, places.len(), share);
        block.mirror(&mut batch, places, &mirrored);
        let rate = self.state.params.learning_rate.at(self.state.step);
        let losses = self.learner.step(&batch, rate).with_context(|| {
            format!(
                "training stopped at step {} (batch {} of the block after game {}); the last \
                 checkpoint is kept",
                self.state.step, self.state.batches, self.state.place.games
            )
        })?;
        self.meter.add(&losses, places.len());
        self.state.step += 1;
        self.state.batches += 1;
        Ok(())
    }

    fn note(&self) -> String {
        let Some((counts, _)) = &self.seen else {
            return String::new();
        };
        let games = games_read(counts);
        let fresh = games.saturating_sub(self.games_before);
        let seconds = self.begun.elapsed().as_secs_f64().max(1e-9);
        let mut note = format!("{games} games, {:.0} games/s", fresh as f64 / seconds);
        if self.meter.steps() > 0 {
            note.push_str(&format!(", step {}, {}", self.state.step, self.meter));
        }
        note
    }

    fn log(&mut self) -> anyhow::Result<()> {
        let step = self.state.step;
        let mut point = self.meter.training();
        let rate = self.state.params.learning_rate.at(step.saturating_sub(1));
        point.extend(values([("learning_rate", rate)]));
        if let Some(log) = &mut self.log {
            log.write(
                "train",
                &MetricPoint {
                    step,
                    values: point,
                },
            )?;
        }
        Ok(())
    }

    fn save(&mut self) -> anyhow::Result<()> {
        self.saved = Instant::now();
        let learner = &self.learner;
        match &mut self.checkpoints {
            Some(folder) => folder.save(&self.state, |path| Ok(learner.save(path)?)),
            None => Ok(()),
        }
    }

    /// Measures on the games held out, writes the network and says what was done.
    fn finish(mut self) -> anyhow::Result<()> {
        let (counts, held_out) = self.seen.take().context("there are no games to read")?;
        let seconds = self.begun.elapsed().as_secs_f64();
        report_counts(
            &counts,
            games_read(&counts).saturating_sub(self.games_before),
            seconds,
        );
        let mut result = json!({
            "counts": counts,
            "seconds": seconds,
            "steps": self.state.step,
            "peak_rss_bytes": rookery_nn::peak_rss_bytes(),
        });
        if !self.args.dry_run {
            anyhow::ensure!(
                self.state.step > 0,
                "nothing to train on: {} games gave {} positions, and a batch has {}{}",
                counts.games,
                counts.positions,
                self.state.params.batch_size,
                unrated(&counts)
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
            println!("{result}");
        } else if let Some(hash) = result["network"].as_str() {
            println!("{hash}");
        }
        Ok(())
    }

    /// Losses of the averaged weights, those that are exported.
    fn measure(&mut self, held_out: &Block) -> anyhow::Result<Option<Meter>> {
        if held_out.is_empty() {
            return Ok(None);
        }
        let mut meter = Meter::default();
        let order: Vec<u32> = (0..held_out.len() as u32).collect();
        let mut averaged = self.learner.averaged()?;
        for places in order.chunks(self.state.params.batch_size as usize) {
            let losses = averaged.measure(&held_out.batch(places))?;
            meter.add(&losses, places.len());
        }
        Ok(Some(meter))
    }

    fn write(&self) -> anyhow::Result<ContentHash> {
        let path = self.args.output.as_deref().unwrap_or(Path::new("-"));
        let bytes = self.learner.export(Some(self.state.parent))?;
        write_whole(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        tracing::info!("wrote {} after {} steps", path.display(), self.state.step);
        Ok(ContentHash::of(&bytes))
    }
}

/// A folder of another warm start is not gone on with.
fn check_same(asked: &State, found: &State, dir: Option<&Path>) -> anyhow::Result<()> {
    let same =
        asked.plan == found.plan && asked.params == found.params && asked.parent == found.parent;
    anyhow::ensure!(
        same,
        "the folder {} belongs to a warm start of other files, settings or first network; give \
         those again to go on with it, or another --dir",
        dir.unwrap_or(Path::new("")).display()
    );
    Ok(())
}

/// Games that were used or passed over.
fn games_read(counts: &Counts) -> u64 {
    counts.games + counts.held_out + counts.skipped.values().sum::<u64>()
}

/// What helps where games were passed over because nobody has rated their players.
fn unrated(counts: &Counts) -> String {
    let help = |games| {
        format!("; {games} games have no rating: --assume-elo says which one they are to have")
    };
    let games = counts.skipped.get(&Skipped::NoRating);
    games.map_or_else(String::new, help)
}

fn report_counts(counts: &Counts, fresh: u64, seconds: f64) {
    tracing::info!(
        "{} games read: {} to train on with {} positions, {} held out; {:.0} games/s",
        games_read(counts),
        counts.games,
        counts.positions,
        counts.held_out,
        fresh as f64 / seconds.max(1e-9)
    );
    for (reason, count) in &counts.skipped {
        let help = match reason {
            Skipped::NoRating => " (--assume-elo gives them one)",
            _ => "",
        };
        tracing::info!("passed over: {count} games: {reason}{help}");
    }
}

#[cfg(test)]
#[path = "warm_start/tests.rs"]
mod tests;
