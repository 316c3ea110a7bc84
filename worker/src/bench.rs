//! The command `bench`: how fast this machine evaluates, and how much of that self-play keeps.

mod bare;
mod selfplay;

use std::io::Write as _;
use std::time::Duration;

use rookery_nn::Weights;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::cli::BenchArgs;
use crate::config::{Compute, ConfigFile};
use crate::machine::Machine;
use crate::network_argument;
use crate::networks::Trial;

/// What is measured.
#[derive(Debug, Serialize)]
struct Benchmark {
    device: String,
    /// The numbers in which it computes.
    precision: String,
    network: String,
    threads: usize,
    bare: Vec<bare::Bare>,
    selfplay: selfplay::SelfPlay,
}

/// Measures and prints.
///
/// # Errors
///
/// If the device or the network cannot be used.
pub fn run(args: &BenchArgs, file: &ConfigFile, runtime: &Runtime) -> anyhow::Result<()> {
    anyhow::ensure!(
        (0.1..=600.0).contains(&args.seconds),
        "seconds is {}, allowed is 0.1 to 600",
        args.seconds
    );
    let machine = Machine::open(&Compute::resolve(&args.compute, file)?)?;
    let trial = Trial {
        device: machine.device,
        precision: machine.precision,
    };
    let (weights, network) =
        network_argument::load(&args.network, &args.server, file, trial, runtime)?;
    let benchmark = measure(args, &machine, &weights, network)?;
    let mut output = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut output, &benchmark)?;
        writeln!(output)?;
    } else {
        write!(output, "{}", for_people(&benchmark))?;
    }
    Ok(())
}

fn measure(
    args: &BenchArgs,
    machine: &Machine,
    weights: &Weights,
    network: String,
) -> anyhow::Result<Benchmark> {
    let time = Duration::from_secs_f64(args.seconds);
    let games = machine.games.get();
    let mut batches = args.batches.clone();
    if batches.is_empty() {
        batches = powers_below(games);
    }
    batches.retain(|batch| (1..=65_536).contains(batch));
    let bytes = weights.to_bytes()?;
    let mut measured = Vec::new();
    for batch in batches {
        tracing::info!("evaluating in batches of {batch}");
        measured.push(bare::measure(machine, &bytes, batch, time)?);
    }
    tracing::info!("playing {} games at once", machine.all_games());
    let played = selfplay::play(machine, &bytes, args.visits, time)?;
    // Bare evaluation in batches as large as those of the games is what self-play is held against.
    let size = (played.batch.round() as usize).max(1);
    let own = bare::measure(machine, &bytes, size, time)?;
    let selfplay = played.against(&own);
    Ok(Benchmark {
        device: machine.device.to_string(),
        precision: machine.precision.to_string(),
        network,
        threads: machine.threads.get(),
        bare: measured,
        selfplay,
    })
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
    } = benchmark;
    let mut text = format!("{network} on {device} in {precision}, {threads} threads\n");
    for row in bare {
        text += &format!(
            "  batch {:5}: {:9.0} evaluations/s\n",
            row.batch, row.evals_per_s
        );
    }
    text += &format!(
        "self-play, {} games, {} visits, batches of {:.0}:\n  {:.0} evaluations/s ({:.0} % of bare), {:.1} positions/s, {:.0} % from the cache\n",
        selfplay.games,
        selfplay.visits,
        selfplay.batch,
        selfplay.evals_per_s,
        100.0 * selfplay.utilization,
        selfplay.positions_per_s,
        100.0 * selfplay.cache_hit_share,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_sizes_end_with_that_of_self_play() {
        assert_eq!(powers_below(1), [1]);
        assert_eq!(powers_below(64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(powers_below(100).last(), Some(&100));
    }
}
