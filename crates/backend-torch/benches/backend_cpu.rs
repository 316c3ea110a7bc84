//! The processor's backend beside libtorch in f32, on one thread, in turns:
//! `cargo bench -p rookery-backend-torch --bench backend_cpu [-- 6x64 10x128 FILE]`.

#![expect(clippy::print_stdout, reason = "a benchmark for people to read")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rookery_backend_cpu::{CpuEvaluator, CpuNetwork};
use rookery_backend_torch::{ComputeDevice, NetworkEvaluator, use_threads};
use rookery_common::network::NetworkSpec;
use rookery_engine::dummy::random_batch;
use rookery_engine::{Batch, Evaluations, Evaluator, Precision};
use rookery_model::{NetworkFile, Weights};

type Error = Box<dyn std::error::Error>;

/// How long each evaluator works in a round, and how many rounds there are.
const TURN: Duration = Duration::from_millis(300);
const ROUNDS: usize = 9;

fn main() -> Result<(), Error> {
    use_threads(1);
    let given: Vec<String> = std::env::args().skip(1).collect();
    let mut names: Vec<&str> = given.iter().map(String::as_str).collect();
    names.retain(|name| !name.starts_with('-'));
    if names.is_empty() {
        names = vec!["4x32", "6x64", "10x128"];
    }
    println!("network batch libtorch/s backend-cpu/s ratio");
    for name in names {
        let weights = load(name)?;
        let network = Arc::new(CpuNetwork::new(&weights)?);
        let mut own = CpuEvaluator::new(network);
        let mut torch = NetworkEvaluator::new(&weights, ComputeDevice::CPU, Precision::F32)?;
        for size in [1, 8, 32, 128] {
            let spec = weights.spec();
            let batch = random_batch(spec.input, spec.policy.encoding, size, 1);
            let mut rounds: Vec<[f64; 2]> = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push([speed(&mut torch, &batch)?, speed(&mut own, &batch)?]);
            }
            let [torch, own] = [0, 1].map(|one| median(rounds.iter().map(|round| round[one])));
            let ratio = median(rounds.iter().map(|[torch, own]| own / torch));
            println!("{name} {size} {torch:.0} {own:.0} {ratio:.3}");
        }
    }
    Ok(())
}

fn load(name: &str) -> Result<Weights, Error> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(NetworkFile::read(path)?.into_weights());
    }
    Ok(Weights::random(NetworkSpec::from_shape(name)?, 1)?)
}

/// Positions a second.
fn speed(evaluator: &mut impl Evaluator, batch: &Batch) -> Result<f64, Error> {
    let mut answer = Evaluations::default();
    evaluator.evaluate(batch, &mut answer)?;
    let (begun, mut positions) = (Instant::now(), 0);
    while begun.elapsed() < TURN {
        evaluator.evaluate(batch, &mut answer)?;
        positions += batch.len();
    }
    Ok(positions as f64 / begun.elapsed().as_secs_f64())
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
