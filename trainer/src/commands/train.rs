//! `train`: train a network on local chunks, once.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::ids::ContentHash;
use rookery_common::params::TrainingParams;
use rookery_common::protocol::runs::MetricPoint;
use rookery_nn::Weights;

use super::{DeviceArgs, share};
use crate::data::{HeldOut, Intake};
use crate::files::write_whole;
use crate::learner::Learner;
use crate::lessons::{Course, Meter, validate};
use crate::metrics::MetricLog;
use crate::pipeline::{BatchPlan, Sampler};
use crate::screen::Screen;
use crate::shutdown::Shutdown;

/// Steps over which logged losses are means.
const LOG_EVERY: u64 = 10;

/// Flags of `train`.
#[derive(Debug, clap::Args)]
pub struct TrainArgs {
    /// Chunk files, or folders with `.chunk` files; the newest positions are those of the last.
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub chunks: Vec<PathBuf>,
    /// The network to begin with.
    #[arg(long, value_name = "FILE")]
    pub network: PathBuf,
    /// Write the trained network to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Optimiser steps.
    #[arg(long, value_name = "N")]
    pub steps: u64,
    /// A TOML file with training parameters as a run has them; what is absent has its default.
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Positions of a batch. [default: the parameters' batch-size]
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,
    /// Learning rate. [default: the parameters' rate]
    #[arg(long, value_name = "RATE")]
    pub learning_rate: Option<f64>,
    /// Hold this share of the chunks out of training, to measure losses on them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = share)]
    pub held_out: f64,
    /// The seed of all sampling.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads that encode positions ahead of the device.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub encode_threads: usize,
    /// Append losses to this file, a JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Where to train.
    #[command(flatten)]
    pub device: DeviceArgs,
}

impl TrainArgs {
    fn params(&self) -> anyhow::Result<TrainingParams> {
        let mut params = match &self.params {
            Some(path) => read_params(path)?,
            None => TrainingParams::default(),
        };
        if let Some(size) = self.batch_size {
            params.batch_size = size;
        }
        if let Some(rate) = self.learning_rate {
            params.learning_rate.base = rate;
        }
        let run = rookery_common::params::RunParams {
            training: params,
            ..Default::default()
        };
        run.check()?;
        Ok(run.training)
    }
}

fn read_params(path: &Path) -> anyhow::Result<TrainingParams> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the parameters {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("{} holds no parameters", path.display()))
}

/// Trains.
///
/// # Errors
///
/// If a file cannot be read or written, there is nothing to train on, or training diverges.
pub fn execute(args: &TrainArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    let params = args.params()?;
    let place = args.device.open()?;
    let (parent, weights) = Weights::read(&args.network)?;
    let mut learner = Learner::new(&weights, &params, place)?;
    let intake = read_chunks(args, screen)?;
    let taken = steps(args, &params, &mut learner, &intake, (screen, shutdown))?;
    let plan = BatchPlan::new(learner.spec(), &params);
    if let Some(meter) = validate(&mut learner, &intake.validation(), &plan)? {
        tracing::info!("held out: {meter}");
    }
    let bytes = learner.export(Some(parent.hash))?;
    write_whole(&args.output, &bytes)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    let hash = ContentHash::of(&bytes);
    tracing::info!("wrote {} after {taken} steps", args.output.display());
    println!("{hash}");
    Ok(())
}

/// Takes the steps; the answer is how many, fewer if the user stops.
fn steps(
    args: &TrainArgs,
    params: &TrainingParams,
    learner: &mut Learner,
    intake: &Intake,
    (screen, shutdown): (&Screen, &Shutdown),
) -> anyhow::Result<u64> {
    let course = Course {
        plan: BatchPlan::new(learner.spec(), params),
        sampler: Sampler {
            seed: args.seed,
            candidate: 0,
        },
        rate: params.learning_rate.clone(),
        first_step: 0,
        threads: args.encode_threads,
    };
    let window = intake.training().window(params.window.max);
    let mut lessons = course.begin(&window, 0..args.steps)?;
    let mut log = args.log_file.as_deref().map(MetricLog::open).transpose()?;
    let mut task = screen.task("training", args.steps);
    let (mut meter, mut taken) = (Meter::default(), 0);
    while let Some(report) = lessons.step(learner)? {
        taken = report.step;
        meter.add(&report.losses, report.positions);
        if meter.steps() == LOG_EVERY || taken == args.steps {
            task.at(taken, &meter.to_string());
            if let Some(log) = &mut log {
                log.write(
                    "train",
                    &MetricPoint {
                        step: taken,
                        values: meter.training(),
                    },
                )?;
            }
            meter = Meter::default();
        }
        if shutdown.is_requested() {
            break;
        }
    }
    Ok(taken)
}

fn read_chunks(args: &TrainArgs, screen: &Screen) -> anyhow::Result<Intake> {
    let files = chunk_files(&args.chunks)?;
    let mut intake = Intake::new(u64::MAX, HeldOut::share(args.held_out));
    let mut task = screen.task("chunks", files.len() as u64);
    for (index, path) in files.iter().enumerate() {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        intake.add(ContentHash::of(&bytes), &bytes);
        task.at(index as u64 + 1, "");
    }
    drop(task);
    let positions = intake.training().positions();
    anyhow::ensure!(
        positions > 0,
        "no position to train on in {} chunk files",
        files.len()
    );
    tracing::info!(
        "{positions} positions to train on, {} held out",
        intake.validation().len()
    );
    Ok(intake)
}

/// The chunk files among these paths and in these folders (and theirs), in order of their names.
fn chunk_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let cannot = || format!("cannot read the folder {}", path.display());
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path).with_context(cannot)? {
            entries.push(entry.with_context(cannot)?.path());
        }
        entries.sort();
        entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|e| e == "chunk"));
        files.extend(chunk_files(&entries)?);
    }
    Ok(files)
}
