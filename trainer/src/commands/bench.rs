//! `bench`: how fast this machine trains.

use std::path::Path;
use std::time::Duration;

use rookery_common::output;
use rookery_common::params::TrainingParams;
use rookery_common::text::quantity;
use rookery_model::Weights;
use rookery_train::Trainer;
use serde::Serialize;

use super::flags::DeviceArgs;
use crate::bench::{Conditions, Speeds, made_games, measure};
use crate::buffer::Mixture;
use crate::presets;
use rookery_cli::flags::{positive, threads_or_cores};
use rookery_cli::network_file;

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
    /// Least seconds of each of the four measurements.
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

/// What is printed.
#[derive(Debug, Serialize)]
struct Answer {
    network: String,
    device: String,
    /// What was computed in, never `auto`.
    precision: &'static str,
    batch: u32,
    encode_threads: usize,
    #[serde(flatten)]
    speeds: Speeds,
    together_over_step: f64,
    window_bytes_per_position: f64,
}

/// Measures and prints.
///
/// # Errors
///
/// If the network or the device cannot be had.
pub fn execute(args: &BenchArgs) -> anyhow::Result<()> {
    let answer = answer(args)?;
    if args.json {
        return output::print_json(&answer);
    }
    output::print_line(&format!(
        "{} on {} in {}, batches of {}:\n  pipeline alone {:9.0} samples/s ({})\n  loading \
         alone  {:9.0} samples/s\n  step alone     {:9.0} samples/s\n  together       {:9.0} \
         samples/s",
        answer.network,
        answer.device,
        answer.precision,
        answer.batch,
        answer.speeds.pipeline_samples_per_s,
        quantity(answer.encode_threads, "thread"),
        answer.speeds.load_samples_per_s,
        answer.speeds.step_samples_per_s,
        answer.speeds.together_samples_per_s
    ))
}

fn answer(args: &BenchArgs) -> anyhow::Result<Answer> {
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
    let (device, precision) = (compute.device, compute.precision);
    let mut trainer = Trainer::new(&weights, &params, device, precision)?;
    let games = made_games(args.window.max(1), 1)?;
    let bytes_per_position = games.bytes() as f64 / games.positions() as f64;
    let mixture = Mixture::of(games.window(args.window.max(1)));
    let conditions = Conditions {
        threads: threads_or_cores(args.encode_threads),
        time: Duration::from_secs_f64(args.seconds),
    };
    let speeds = measure(&mut trainer, &params, &mixture, conditions)?;
    Ok(Answer {
        network: args.network.clone(),
        device: compute.device.to_string(),
        precision: trainer.precision().name(),
        batch: args.batch,
        encode_threads: conditions.threads,
        together_over_step: speeds.together_samples_per_s / speeds.step_samples_per_s,
        speeds,
        window_bytes_per_position: bytes_per_position,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answer_says_where_and_in_what_numbers_it_was_measured() {
        rookery_backend_torch::use_threads(1);
        let line = "bench --network 1x8 --batch 8 --window 300 --encode-threads 1 --seconds 0.02 --device cpu";
        for precision in ["f32", "bf16", "auto"] {
            let line = format!("{line} --precision {precision}");
            let args = rookery_cli::testing::flags(Path::new("."), &line).unwrap();
            let answer = json!(answer(&args).unwrap());
            assert_eq!(answer["device"], "cpu");
            let found = answer["precision"].as_str().unwrap();
            assert!(found == precision || precision == "auto", "{found}");
            assert!(["f32", "bf16"].contains(&found), "{found}");
            assert!(answer["step_samples_per_s"].as_f64().unwrap() > 0.0);
        }
    }
}
