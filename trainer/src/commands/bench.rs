//! `bench`: how fast this machine trains.

use std::path::Path;
use std::time::Duration;

use rookery_common::output;
use rookery_common::params::TrainingParams;
use rookery_nn::Weights;
use serde_json::json;

use super::flags::{DeviceArgs, positive, threads_or_cores};
use crate::bench::{Conditions, made_games, measure};
use crate::buffer::Mixture;
use crate::learner::Learner;
use crate::network_file;
use crate::presets;

/// Flags of `bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// The network: a file, a shape such as 6x64, or a name as of `init`.
    #[arg(long, default_value = "6x64")]
    pub network: String,
    /// Positions of a batch.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: u32,
    /// Threads that encode positions ahead of the device. [default: one for each processor core]
    #[arg(long, value_name = "N")]
    pub encode_threads: Option<usize>,
    /// Least seconds of each of the three measurements.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = positive)]
    pub seconds: f64,
    /// Positions of the window, which is made of random games.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub window: u64,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Where to compute.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Measures and prints.
///
/// # Errors
///
/// If the network or the device cannot be had.
pub fn execute(args: &BenchArgs) -> anyhow::Result<()> {
    let params = TrainingParams {
        batch_size: args.batch,
        ..TrainingParams::default()
    };
    let weights = if Path::new(&args.network).exists() {
        network_file::read(Path::new(&args.network))?
    } else {
        Weights::random(presets::named_or_shaped(&args.network)?, 1)?
    };
    let compute = args.device.open()?;
    let mut learner = Learner::new(&weights, &params, compute)?;
    let games = made_games(args.window.max(1), 1)?;
    let bytes_per_position = games.bytes() as f64 / games.positions() as f64;
    let mixture = Mixture::of(games.window(args.window.max(1)));
    let conditions = Conditions {
        threads: threads_or_cores(args.encode_threads),
        time: Duration::from_secs_f64(args.seconds),
    };
    let speeds = measure(&mut learner, &params, &mixture, conditions)?;
    if args.json {
        let mut result = json!(speeds);
        result["device"] = compute.device.to_string().into();
        result["network"] = args.network.clone().into();
        result["batch"] = args.batch.into();
        result["encode_threads"] = conditions.threads.into();
        result["window_bytes_per_position"] = bytes_per_position.into();
        result["together_over_step"] =
            (speeds.together_samples_per_s / speeds.step_samples_per_s).into();
        output::print_json(&result)
    } else {
        output::print_line(&format!(
            "{} on {}, batches of {}:\n  pipeline alone {:9.0} samples/s ({} threads)\n  step \
             alone     {:9.0} samples/s\n  together       {:9.0} samples/s",
            args.network,
            compute.device,
            args.batch,
            speeds.pipeline_samples_per_s,
            conditions.threads,
            speeds.step_samples_per_s,
            speeds.together_samples_per_s
        ))
    }
}
