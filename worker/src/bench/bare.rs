//! Evaluations a second with nothing else to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rookery_engine::dummy::random_batch;
use rookery_engine::{Evaluations, Evaluator};
use rookery_model::Weights;
use serde::Serialize;

use crate::machine::{Machine, Place};

/// One measurement.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Bare {
    /// Positions of a batch.
    pub(super) batch: usize,
    /// Evaluations a second, all threads together.
    pub(super) evals_per_s: f64,
}

/// Evaluates the same batch again and again on every thread.
pub(super) fn measure(
    machine: &Machine,
    weights: &Weights,
    size: usize,
    time: Duration,
) -> anyhow::Result<Bare> {
    let lanes = 0..machine.devices.lanes();
    let networks = lanes.map(|lane| machine.devices.backend(lane).load(weights));
    let networks = networks.collect::<Result<Vec<_>, _>>()?;
    let rates: anyhow::Result<Vec<f64>> = std::thread::scope(|scope| {
        let start = |(number, place): (usize, Place)| {
            // Threads beside those of a GPU have batches as large as their games.
            let is_beside = number >= machine.threads.get();
            let size = if is_beside { place.games.get() } else { size };
            let evaluator = Arc::clone(&networks[place.lane]).evaluator();
            scope.spawn(move || one_thread(evaluator, size, time))
        };
        let threads: Vec<_> = machine.places().enumerate().map(start).collect();
        let ended = threads.into_iter().map(|thread| thread.join().ok());
        ended
            .map(|rate| rate.context("a thread of the benchmark ended early")?)
            .collect()
    });
    Ok(Bare {
        batch: size,
        evals_per_s: rates?.iter().sum(),
    })
}

fn one_thread(mut evaluator: impl Evaluator, size: usize, time: Duration) -> anyhow::Result<f64> {
    let batch = random_batch(evaluator.input(), evaluator.policy(), size, 1);
    let mut answer = Evaluations::default();
    // The first batches also choose kernels and get memory.
    for _ in 0..3 {
        evaluator.evaluate(&batch, &mut answer)?;
    }
    let (start, mut batches) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        evaluator.evaluate(&batch, &mut answer)?;
        batches += 1;
    }
    Ok(f64::from(batches) * size as f64 / start.elapsed().as_secs_f64())
}
