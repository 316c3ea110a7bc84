//! How fast networks are evaluated, beside the limit that the processor's multiplications set. `--help` tells the options.

#![expect(clippy::print_stdout, reason = "a benchmark for people to read")]

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork, Instructions, LANES};
use rookery_common::network::NetworkSpec;
use rookery_engine::dummy::random_batch;
use rookery_engine::{Batch, Evaluations, Evaluator};
use rookery_model::{NetworkFile, Weights};

const HELP: &str = "\
Evaluates networks of random weights or from files, by each set of instructions in turn.

cargo bench -p rookery-backend-cpu --bench evaluations -- [OPTIONS] [NETWORK]...

  NETWORK              a shape such as 6x64, or a network file [4x32 6x64 10x128]
  --batches N,..       positions of a batch [1,8,32,128]
  --threads N,..       threads, each with batches of its own [1,2]
  --instructions NAME,..  of avx512, avx2, target [all that the processor has]
  --rounds N           turns of each set, whose medians are told [7]
  --milliseconds N     how long a turn is [200]

Seconds are those in which a thread ran, where Linux tells them, so that other programs disturb little. A product is a
multiplication with its addition; the limit is how many a thread makes of numbers that are in registers.";

type Error = Box<dyn std::error::Error>;

struct Options {
    networks: Vec<String>,
    batches: Vec<usize>,
    threads: Vec<usize>,
    instructions: Vec<Instructions>,
    rounds: usize,
    turn: Duration,
}

fn main() -> Result<(), Error> {
    let Some(options) = parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    println!("network batch threads instructions evaluations/s products/s share-of-limit");
    for name in &options.networks {
        let weights = load(name)?;
        let network = Arc::new(CpuNetwork::new(&weights)?);
        for &size in &options.batches {
            let spec = network.spec();
            let batch = random_batch(spec.input, spec.policy.encoding, size, 1);
            for &threads in &options.threads {
                let mut turns = vec![Vec::new(); options.instructions.len()];
                for _ in 0..options.rounds {
                    for (turns, &set) in turns.iter_mut().zip(&options.instructions) {
                        turns.push(turn(&network, &batch, threads, set, options.turn));
                    }
                }
                for (turns, set) in turns.iter().zip(&options.instructions) {
                    let speed = median(turns.iter().map(|(speed, _)| *speed));
                    let products = speed * network.products() as f64;
                    let share = products / median(turns.iter().map(|(_, limit)| *limit));
                    let set = set.name();
                    println!("{name} {size} {threads} {set} {speed:.0} {products:.3e} {share:.2}");
                }
            }
        }
    }
    Ok(())
}

/// None if help is asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, Error> {
    let numbers = |list: &str| list.split(',').map(str::parse).collect::<Result<_, _>>();
    let mut options = Options {
        networks: Vec::new(),
        batches: vec![1, 8, 32, 128],
        threads: vec![1, 2],
        instructions: Instructions::NAMES
            .iter()
            .filter_map(|name| Instructions::named(name))
            .collect(),
        rounds: 7,
        turn: Duration::from_millis(200),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} has no value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            // Cargo's own.
            "--bench" => {}
            "--batches" => options.batches = numbers(&value()?)?,
            "--threads" => options.threads = numbers(&value()?)?,
            "--instructions" => {
                let known = |name: &str| {
                    Instructions::named(name).ok_or(format!("this processor does not have {name}"))
                };
                options.instructions = value()?.split(',').map(known).collect::<Result<_, _>>()?;
            }
            "--rounds" => options.rounds = value()?.parse()?,
            "--milliseconds" => options.turn = Duration::from_millis(value()?.parse()?),
            option if option.starts_with('-') => return Err(format!("no option {option}").into()),
            _ => options.networks.push(argument),
        }
    }
    if options.networks.is_empty() {
        options.networks = ["4x32", "6x64", "10x128"].map(String::from).to_vec();
    }
    Ok(Some(options))
}

fn load(name: &str) -> Result<Weights, Error> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(NetworkFile::read(path)?.into_weights());
    }
    Ok(Weights::random(NetworkSpec::from_shape(name)?, 1)?)
}

/// Evaluations a second, and products a second in registers, of all threads.
fn turn(
    network: &Arc<CpuNetwork>,
    batch: &Batch,
    threads: usize,
    instructions: Instructions,
    turn: Duration,
) -> (f64, f64) {
    let barrier = Barrier::new(threads);
    let evaluate = || {
        let mut evaluator = CpuEvaluator::with_instructions(Arc::clone(network), instructions);
        let mut answer = Evaluations::default();
        let mut once = || {
            evaluator
                .evaluate(batch, &mut answer)
                .expect("a valid batch");
            batch.len()
        };
        once();
        barrier.wait();
        let speed = per_second(turn, once);
        barrier.wait();
        let limit = per_second(turn, || {
            std::hint::black_box(instructions.multiply_in_registers(10_000));
            10_000 * 16 * LANES
        });
        (speed, limit)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(evaluate)).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    })
}

/// How much is done in a second.
fn per_second(turn: Duration, mut once: impl FnMut() -> usize) -> f64 {
    let (begun, ran, mut done) = (Instant::now(), running_time(), 0);
    while begun.elapsed() < turn {
        done += once();
    }
    let seconds = match (ran, running_time()) {
        (Some(before), Some(after)) => (after - before) as f64 / 1e9,
        _ => begun.elapsed().as_secs_f64(),
    };
    done as f64 / seconds
}

/// Nanoseconds that this thread ran, where Linux tells them.
fn running_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
