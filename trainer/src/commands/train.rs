//! `train`: train a network on local chunks, once.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;
use rookery_common::output;
use rookery_common::params::TrainingParams;
use rookery_common::protocol::runs::MetricPoint;
use rookery_common::text::quantity;
use rookery_train::Trainer;
use serde::Serialize;

use super::flags::{DeviceArgs, TrainingArgs};
use crate::buffer::{GameStore, Mixture, Window};
use crate::data::{ChunkIngest, HeldOut};
use crate::learner::Learner;
use crate::metrics::{MetricKind, MetricLog, Values};
use crate::pipeline::{BatchPlan, Sampler};
use crate::training_loop::{
    LOG_EVERY, LossMeter, StepPlan, is_divergence, survey, validate_candidate,
};
use rookery_cli::Screen;
use rookery_cli::Shutdown;
use rookery_cli::chunk_files::chunk_files;
use rookery_cli::flags::{OutputArgs, share};
use rookery_cli::network_file;

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
    /// Whether it may replace one.
    #[command(flatten)]
    pub replace: OutputArgs,
    /// Optimiser steps.
    #[arg(long, value_name = "N")]
    pub steps: u64,
    /// The parameters of training.
    #[command(flatten)]
    pub training: TrainingArgs,
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
    /// Log as --log-format json does, and print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where to train.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Trains.
///
/// # Errors
///
/// If a file cannot be read or written, there is nothing to train on, or training diverges.
pub fn execute(args: &TrainArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<()> {
    args.replace.check(&args.output)?;
    let trained = train(args, screen, shutdown).map_err(advise)?;
    if args.json {
        output::print_json(&trained)
    } else {
        output::print_line(&trained.network.to_string())
    }
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Trained {
    network: ContentHash,
    steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Values>,
}

/// Says what to do where training diverged.
fn advise(error: anyhow::Error) -> anyhow::Error {
    if is_divergence(&error) {
        error.context(
            "RK-0705: training diverged, and no network was written; start again with a lower --learning-rate or a lower \
             gradient_clip in --params",
        )
    } else {
        error
    }
}

fn train(args: &TrainArgs, screen: &Screen, shutdown: &Shutdown) -> anyhow::Result<Trained> {
    let begun = Instant::now();
    let params = args.training.params()?;
    let compute = args.device.open()?;
    let (parent, weights) = network_file::read_hashed(&args.network)?;
    let mut learner = Learner::new(&weights, &params, compute)?;
    let ingest = read_chunks(args, screen)?;
    let (held_out, plan) = (
        ingest.validation(),
        BatchPlan::new(learner.trainer.spec(), &params),
    );
    survey(&mut learner.trainer, &held_out, &plan)?;
    let taken = steps(
        args,
        &params,
        &mut learner.trainer,
        &ingest,
        (screen, &|| {
            shutdown.is_requested() || args.training.is_over(begun)
        }),
    )?;
    let validation = validate_candidate(&learner, &held_out, &plan)?;
    if let Some(meter) = &validation {
        tracing::info!("held out: {meter}");
    }
    let bytes = learner.export(Some(parent))?;
    write_whole(&args.output, &bytes)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    tracing::info!(
        "wrote {} after {}",
        args.output.display(),
        quantity(taken, "step")
    );
    Ok(Trained {
        network: ContentHash::of(&bytes),
        steps: taken,
        validation: validation.map(|meter| meter.validation()),
    })
}

/// Takes the steps; the answer is how many, fewer if it is over before.
fn steps(
    args: &TrainArgs,
    params: &TrainingParams,
    trainer: &mut Trainer,
    ingest: &ChunkIngest,
    (screen, is_over): (&Screen, &dyn Fn() -> bool),
) -> anyhow::Result<u64> {
    let step_plan = StepPlan {
        plan: BatchPlan::new(trainer.spec(), params),
        sampler: Sampler {
            seed: args.seed,
            candidate: 0,
        },
        rate: params.learning_rate.clone(),
        rate_from: 0,
        first_step: 0,
        threads: args.encode_threads,
    };
    let window = ingest.training().window(params.window.max);
    let none = (Window::new(Vec::new(), 0), 0.0);
    let mixture = Mixture::of_run(window, params.sources, none);
    let mut training = step_plan.begin(&mixture, 0..args.steps)?;
    let mut log = args.log_file.as_deref().map(MetricLog::open).transpose()?;
    let mut task = screen.task("training", args.steps);
    let (mut meter, mut taken) = (LossMeter::default(), 0);
    while let Some(report) = training.step(trainer)? {
        taken = report.step;
        meter.add(&report.losses, report.positions);
        if meter.steps() == LOG_EVERY || taken == args.steps {
            task.at(taken, &meter.to_string());
            if let Some(log) = &mut log {
                let (step, values) = (taken, meter.training());
                log.write(MetricKind::Train, &MetricPoint { step, values })?;
            }
            meter = LossMeter::default();
        }
        if is_over() {
            break;
        }
    }
    Ok(taken)
}

fn read_chunks(args: &TrainArgs, screen: &Screen) -> anyhow::Result<ChunkIngest> {
    let files = chunk_files(&args.chunks)?;
    let mut ingest = ChunkIngest::new(
        GameStore::in_memory(),
        u64::MAX,
        HeldOut::share(args.held_out),
    );
    let mut task = screen.task("chunks", files.len() as u64);
    for (index, path) in files.iter().enumerate() {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.display().to_string();
        if let Some(chunk) = ingest.decode(ContentHash::of(&bytes), &name, &bytes)? {
            ingest.add(chunk);
        }
        task.at(index as u64 + 1, "");
    }
    drop(task);
    let positions = ingest.training().positions();
    anyhow::ensure!(
        positions > 0,
        "RK-0710: no position to train on in {} ({}; match games are not trained on)",
        shown(&args.chunks),
        quantity(files.len(), "chunk file")
    );
    tracing::info!(
        "{} to train on, {} held out",
        quantity(positions, "position"),
        ingest.validation().len()
    );
    Ok(ingest)
}

fn shown(paths: &[PathBuf]) -> String {
    let shown = paths.iter().map(|path| path.display().to_string());
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rookery_model::Weights;

    use super::*;
    use crate::testing;
    use crate::training_loop::validate;

    fn args(dir: &Path, flags: &str) -> TrainArgs {
        let line = format!(
            "train --device cpu --network DIR/in.safetensors -o DIR/out.safetensors {flags}"
        );
        rookery_cli::testing::flags(dir, &line).unwrap()
    }

    fn execute_with(dir: &Path, flags: &str) -> anyhow::Result<()> {
        execute(&args(dir, flags), &Screen::hidden(), &Shutdown::default())
    }

    /// A network to begin with, and chunks with this number of games each; the answer is the network's name.
    fn prepare(dir: &Path, chunks: u64, games: u64) -> ContentHash {
        rookery_backend_torch::use_threads(1);
        std::fs::create_dir(dir.join("games")).unwrap();
        for seed in 0..chunks {
            let path = dir.join(format!("games/{seed}.chunk"));
            std::fs::write(path, testing::chunk(seed, games).1).unwrap();
        }
        let path = dir.join("in.safetensors");
        testing::network().write(&path).unwrap()
    }

    #[test]
    fn local_chunks_make_a_trained_network() {
        let dir = tempfile::tempdir().unwrap();
        let hash = prepare(dir.path(), 4, 3);
        std::fs::write(dir.path().join("games/bad.chunk"), b"no chunk").unwrap();
        let flags = "--chunks DIR/games --steps 5 --batch-size 8 --log-file DIR/log";
        execute_with(dir.path(), flags).unwrap();
        let trained = Weights::read(&dir.path().join("out.safetensors"))
            .unwrap()
            .0;
        assert_eq!(trained.spec.training_step, 5);
        assert_eq!(trained.spec.parent, Some(hash));
        let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(log.contains("policy_loss"), "{log}");
        let error = execute_with(dir.path(), flags).unwrap_err().to_string();
        assert!(
            error.contains("out.safetensors is there already"),
            "{error}"
        );
        let flags = "--chunks DIR/games/bad.chunk --steps 5 --force";
        let error = execute_with(dir.path(), flags).unwrap_err();
        assert!(
            error.to_string().contains("no position to train on")
                && error.to_string().contains("bad.chunk"),
            "{error}"
        );
    }

    #[test]
    fn what_is_measured_is_the_network_that_is_written() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path(), 10, 5);
        let flags = "--chunks DIR/games --steps 5 --batch-size 8 --held-out 0.2";
        let args = args(dir.path(), flags);
        let screen = Screen::hidden();
        let trained = train(&args, &screen, &Shutdown::default()).unwrap();
        let (file, weights) = Weights::read(&args.output).unwrap();
        assert_eq!((trained.network, trained.steps), (file.hash, 5));
        let (params, compute) = (args.training.params().unwrap(), args.device.open().unwrap());
        let mut written = Learner::new(&weights, &params, compute).unwrap();
        let held_out = read_chunks(&args, &screen).unwrap().validation();
        let plan = BatchPlan::new(weights.spec(), &params);
        let expected = validate(&mut written.trainer, &held_out, &plan).unwrap();
        assert_eq!(trained.validation, expected.map(|meter| meter.validation()));
        assert!(trained.validation.is_some());
    }

    #[test]
    fn training_that_diverges_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path(), 4, 3);
        let params = "weight_decay = 1.0\n[learning_rate]\nbase = 100.0\nwarmup_steps = 0\n";
        std::fs::write(dir.path().join("p.toml"), params).unwrap();
        let flags = "--chunks DIR/games --steps 40 --batch-size 8 --params DIR/p.toml";
        let error = execute_with(dir.path(), flags).unwrap_err().to_string();
        assert!(error.contains("lower --learning-rate"), "{error}");
        assert!(!dir.path().join("out.safetensors").exists());
    }

    #[test]
    fn parameters_come_from_the_file_and_flags_win() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.toml");
        std::fs::write(&path, "batch_size = 32\nema_decay = 0.5\n").unwrap();
        let line =
            "train --chunks c --network n -o o --steps 1 --batch-size 16 --params DIR/p.toml";
        let args: TrainArgs = rookery_cli::testing::flags(dir.path(), line).unwrap();
        let params = args.training.params().unwrap();
        assert_eq!((params.batch_size, params.ema_decay), (16, 0.5));
        std::fs::write(&path, "ema_decay = 2.0\n").unwrap();
        assert!(args.training.params().is_err(), "outside its range");
        let run = "[selfplay.search]\nvisits = 32\n[training]\nema_decay = 0.5\n";
        std::fs::write(&path, run).unwrap();
        let params = args.training.params().unwrap();
        assert_eq!((params.batch_size, params.ema_decay), (16, 0.5));
        std::fs::write(&path, "[training]\nema_decai = 0.5\n").unwrap();
        let error = format!("{:#}", args.training.params().unwrap_err());
        assert!(error.contains("training.ema_decai"), "{error}");
    }
}
