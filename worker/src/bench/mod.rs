//! The command `bench`: how fast this machine evaluates, and how much of that self-play keeps.

mod bare;
mod lengths;
mod params;
mod selfplay;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use rookery_backend_gpu::KernelTuner;
use rookery_backends::kernels_path;
use rookery_common::output;
use rookery_common::params::SelfPlayParams;
use rookery_common::text::quantity;
use rookery_model::Weights;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::cli::BenchArgs;
use crate::config::{Compute, ConfigFile, PrecisionChoice, resolve_data_dir};
use crate::machine::{Machine, processor_model};
use crate::network_argument;
use crate::networks::Trial;
use crate::tuning::{MeasuredSpeed, Tuning, best_batch};

/// What is measured.
#[derive(Debug, Serialize)]
struct Benchmark {
    device: String,
    /// With drivers.
    hardware: String,
    processor: String,
    system: &'static str,
    version: &'static str,
    /// The numbers in which it computes.
    precision: String,
    network: String,
    /// How a GPU's kernels divide the work: what was fastest.
    kernels: Option<String>,
    threads: usize,
    bare: Vec<bare::Bare>,
    selfplay: selfplay::SelfPlay,
}

impl Benchmark {
    /// What `devices` lists of it.
    fn speed(&self) -> MeasuredSpeed {
        let bare = self.bare.iter().map(|bare| bare.evals_per_s);
        MeasuredSpeed {
            hardware: self.hardware.clone(),
            precision: self.precision.clone(),
            network: self.network.clone(),
            bare: bare.fold(0.0, f64::max) as u64,
            selfplay: self.selfplay.evals_per_s as u64,
        }
    }
}

/// Measures and prints.
///
/// # Errors
///
/// If the device or the network cannot be used.
pub fn run(args: &BenchArgs, file: &ConfigFile, runtime: &Runtime) -> anyhow::Result<()> {
    anyhow::ensure!(
        (0.1..=600.0).contains(&args.seconds),
        "RK-0009: seconds is {}, allowed is 0.1 to 600",
        args.seconds
    );
    let params = params::selfplay(args)?;
    let mut compute = Compute::resolve(&args.compute, file)?;
    if compute.precision == PrecisionChoice::Auto {
        compute.precision = PrecisionChoice::Measure;
    }
    let data_dir = resolve_data_dir(args.server.dir.clone(), file).ok();
    let mut tuning = data_dir.as_deref().map(Tuning::load).unwrap_or_default();
    let kernels = data_dir.as_deref().map(kernels_path);
    let kernels = kernels.map(KernelTuner::anew).unwrap_or_default();
    let mut machine = Machine::open(&compute, &kernels, &mut tuning, None)?;
    let trial = Trial(Arc::clone(&machine.devices));
    let (weights, network) =
        network_argument::load(&args.network, &args.server, file, trial, runtime)?;
    let chooses = compute.games.is_none() && args.batches.is_empty();
    let benchmark = measure(args, &params, &mut machine, chooses, &weights, network)?;
    if let Some(data_dir) = data_dir.filter(|_| chooses) {
        machine.tune(&mut tuning);
        tuning.note_speed(benchmark.speed());
        tuning.save(&data_dir)?;
        tracing::info!(
            "`run` will play {} at once, in {}; that is kept in {}",
            quantity(machine.all_games(), "game"),
            machine.devices.job_info().precision,
            Tuning::path(&data_dir).display()
        );
    }
    if args.json {
        output::print_json(&benchmark)
    } else {
        output::print(&for_people(&benchmark))
    }
}

/// Measures; if it `chooses`, the machine then plays as many games as suited best.
fn measure(
    args: &BenchArgs,
    params: &SelfPlayParams,
    machine: &mut Machine,
    chooses: bool,
    weights: &Weights,
    network: String,
) -> anyhow::Result<Benchmark> {
    let time = Duration::from_secs_f64(args.seconds);
    let mut batches = args.batches.clone();
    if chooses {
        batches = powers_below(machine.most_games());
    } else if batches.is_empty() {
        batches = powers_below(machine.games.get());
    }
    batches.retain(|batch| (1..=65_536).contains(batch));
    let bytes = weights.to_bytes()?;
    let mut measured = Vec::new();
    for batch in batches {
        tracing::info!("evaluating in batches of {batch}");
        measured.push(bare::measure(machine, weights, batch, time)?);
    }
    let speeds = measured.iter().map(|bare| (bare.batch, bare.evals_per_s));
    if let Some(games) = best_batch(speeds).filter(|_| chooses) {
        machine.games = NonZeroUsize::new(games).unwrap_or(machine.games);
    }
    tracing::info!("playing {} at once", quantity(machine.all_games(), "game"));
    let played = selfplay::play(machine, &bytes, params, time)?;
    // Bare evaluation in batches as large as those of the games is what self-play is held against.
    let size = (played.batch.round() as usize).max(1);
    let own = bare::measure(machine, weights, size, time)?;
    let selfplay = played.against(fastest_up_to(size, &measured, own));
    let loaded = machine.devices.backend(0).load(weights)?;
    Ok(Benchmark {
        device: machine.devices.names(),
        hardware: machine.devices.hardware(),
        processor: processor_model(),
        system: std::env::consts::OS,
        version: env!("CARGO_PKG_VERSION"),
        precision: loaded.precision().to_string(),
        network,
        kernels: loaded.kernels(),
        threads: machine.all_threads(),
        bare: measured,
        selfplay,
    })
}

/// The fastest bare evaluation in batches of at most this size: other programs may have slowed any one of them.
fn fastest_up_to(size: usize, measured: &[bare::Bare], own: bare::Bare) -> f64 {
    let smaller = measured.iter().filter(|bare| bare.batch <= size);
    let speeds = smaller.map(|bare| bare.evals_per_s);
    speeds.fold(own.evals_per_s, f64::max)
}

/// Share of the speed of bare evaluation that self-play reaches with `evals_per_s`.
fn share_of_bare(evals_per_s: f64, utilization: f64) -> String {
    if utilization > 1.0 {
        "no less than bare, which other programs have slowed".to_owned()
    } else {
        let bare = evals_per_s / utilization;
        format!("{:.0} % of {bare:.0} bare", 100.0 * utilization)
    }
}

/// 1, 2, 4 … and `most` itself.
fn powers_below(most: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n))
        .take_while(|n| *n < most)
        .collect();
    sizes.push(most);
    sizes
}

fn for_people(benchmark: &Benchmark) -> String {
    let Benchmark {
        device,
        precision,
        network,
        threads,
        bare,
        selfplay,
        hardware,
        kernels,
        ..
    } = benchmark;
    let mut text = format!(
        "{network} on {device} in {precision}, {}\n",
        quantity(*threads, "thread")
    );
    if hardware != device {
        text += &format!("  {hardware}\n");
    }
    if let Some(kernels) = kernels {
        text += &format!("  kernels: {kernels}\n");
    }
    for row in bare {
        text += &format!(
            "  batch {:5}: {:9.0} evaluations/s\n",
            row.batch, row.evals_per_s
        );
    }
    let about = if selfplay.positions_estimated {
        "about "
    } else {
        ""
    };
    text += &format!(
        "self-play, {}, {}, batches of {:.0}:\n  {:.0} evaluations/s ({}), {}{:.1} positions/s, {:.0} % from the cache\n",
        quantity(selfplay.games, "game"),
        quantity(selfplay.visits, "visit"),
        selfplay.batch,
        selfplay.evals_per_s,
        share_of_bare(selfplay.evals_per_s, selfplay.utilization),
        about,
        selfplay.positions_per_s,
        100.0 * selfplay.cache_hit_share,
    );
    if let Some(games) = selfplay.games_per_hour {
        text += &format!(
            "  about {games:.0} games/h of {:.0} positions ({} ended)\n",
            selfplay.positions_per_game, selfplay.games_ended
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_an_hour_are_told_to_people_and_programs() {
        let mut benchmark = Benchmark {
            device: "gpu:0".to_owned(),
            hardware: "Card (vulkan, driver maker 1.2)".to_owned(),
            processor: "Processor".to_owned(),
            system: "linux",
            version: "1.2.3",
            precision: "f32".to_owned(),
            network: "4x32".to_owned(),
            kernels: Some("layer by layer".to_owned()),
            threads: 1,
            bare: Vec::new(),
            selfplay: selfplay::SelfPlay {
                games: 64,
                batch: 60.0,
                visits: 100,
                evals_per_s: 5000.0,
                positions_per_s: 50.0,
                positions_estimated: false,
                games_per_hour: Some(1800.0),
                positions_per_game: 100.0,
                games_ended: 3,
                utilization: 0.9,
                cache_hit_share: 0.1,
                peak_rss_bytes: None,
            },
        };
        let text = for_people(&benchmark);
        let first = "4x32 on gpu:0 in f32, 1 thread\n  Card (vulkan, driver maker 1.2)\n  kernels: layer by layer\n";
        assert!(text.starts_with(first), "{text}");
        let told = "about 1800 games/h of 100 positions (3 ended)";
        assert!(text.contains(told), "{text}");
        let json = serde_json::to_value(&benchmark).unwrap();
        assert_eq!(json["selfplay"]["games_per_hour"], 1800.0);
        assert_eq!(json["hardware"], "Card (vulkan, driver maker 1.2)");
        benchmark.bare = [(1, 99.5), (64, 5100.9)]
            .map(|(batch, evals_per_s)| bare::Bare { batch, evals_per_s })
            .into();
        let speed = benchmark.speed();
        assert_eq!((speed.bare, speed.selfplay), (5100, 5000));
        assert_eq!(speed.hardware, "Card (vulkan, driver maker 1.2)");
        benchmark.selfplay.games_per_hour = None;
        assert!(!for_people(&benchmark).contains("games/h"));
        let json = serde_json::to_value(&benchmark).unwrap();
        assert!(json["selfplay"]["games_per_hour"].is_null());
    }

    #[test]
    fn self_play_is_held_against_the_fastest_bare_evaluation() {
        let bare = |batch, evals_per_s| bare::Bare { batch, evals_per_s };
        let measured = [bare(32, 900.0), bare(64, 1100.0), bare(128, 2000.0)];
        assert_eq!(fastest_up_to(100, &measured, bare(100, 1000.0)), 1100.0);
        assert_eq!(fastest_up_to(100, &[], bare(100, 1000.0)), 1000.0);
        assert_eq!(share_of_bare(4570.0, 0.914), "91 % of 5000 bare");
        assert!(!share_of_bare(4570.0, 1.21).contains('%'));
    }

    #[test]
    fn batch_sizes_end_with_that_of_self_play() {
        assert_eq!(powers_below(1), [1]);
        assert_eq!(powers_below(64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(powers_below(100).last(), Some(&100));
    }
}
