//! How long each kernel takes on a GPU: `cargo bench -p rookery-backend-gpu --bench kernels -- gpu:0 6x64 f16 1024 KIND`.
//!
//! The words are the device, the network, the precision and the positions of a batch, which have these values if they are
//! left out. The kinds of kernels are those whose names have KIND in them, else all.

#![expect(clippy::print_stdout, reason = "a benchmark for people to read")]

use std::time::{Duration, Instant};

use rookery_backend_gpu::{GpuBackend, GpuEvaluator, KernelTuner};
use rookery_common::network::NetworkSpec;
use rookery_engine::dummy::random_batch;
use rookery_engine::{LoadedNetwork as _, Precision};
use rookery_model::Weights;

/// How often each kernel runs.
const ROUNDS: u32 = 10;
/// How long kernels run before they are timed.
const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let word =
        |place: usize, default: &str| words.get(place).map_or(default.to_owned(), String::clone);
    let number = word(0, "gpu:0").trim_start_matches("gpu:").parse()?;
    let (shape, precision) = (word(1, "6x64"), word(2, "f16").parse::<Precision>()?);
    let positions: usize = word(3, "1024").parse()?;

    let spec = NetworkSpec::from_shape(&shape)?;
    let weights = Weights::random(spec.clone(), 1)?;
    let backend = GpuBackend::new(number, precision, KernelTuner::default())?;
    for network in backend.load_variants(&weights, |kind| kind.contains(&word(4, "")))? {
        let kind = network.kernels().unwrap_or_default();
        println!("{shape} in {precision}, {positions} positions: {kind}");
        let batch = random_batch(spec.input, spec.policy.encoding, positions, 1);
        let evaluator = GpuEvaluator::new(network);
        // The clock of a GPU rises with its work.
        let begun = Instant::now();
        while begun.elapsed() < WARM_UP {
            evaluator.kernel_times(&batch, ROUNDS)?;
        }
        let times = evaluator.kernel_times(&batch, ROUNDS)?;
        let all: Duration = times.iter().map(|(_, time)| *time).sum();
        let mut run = 1;
        for (place, (name, time)) in times.iter().enumerate() {
            // Layers of one kind follow one another.
            if times.get(place + 1).is_some_and(|(next, _)| next == name) {
                run += 1;
                continue;
            }
            println!(
                "{run:>5} {name:<14} {:>9.1} us the last",
                1e6 * time.as_secs_f64()
            );
            run = 1;
        }
        println!(
            "      all            {:>9.1} us, {:.0} evaluations/s",
            1e6 * all.as_secs_f64(),
            positions as f64 / all.as_secs_f64()
        );
    }
    Ok(())
}
