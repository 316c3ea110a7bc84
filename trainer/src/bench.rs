//! How fast training is, and what holds it up.
//!
//! Four measurements on the same network and batches: the pipeline alone (sampling and encoding
//! on worker threads, nobody computes), loading alone (planes and targets made of an encoded batch on the training thread,
//! which a processor does between its steps and a GPU's driver while it computes), the step alone (a batch that already
//! lies on the device, again and again), and all together, as training does it.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::chess::moves::canonical_moves;
use rookery_common::chess::{GameEnd, GameHistory, Termination};
use rookery_common::chunk::{GameKind, GameRecord, GameStart, PlyRecord};
use rookery_common::ids::Seed;
use rookery_common::params::TrainingParams;
use rookery_train::Trainer;
use serde::Serialize;

use crate::buffer::{Mixture, ReplayBuffer, StoredGame};
use crate::pipeline::{BatchPlan, Prefetcher, Sampled, Sampler, encode_batch};
use crate::training_loop::DevicePrefetch;

/// Steps before a measurement, in which libtorch makes its plans and the threads get ahead.
const WARM_UP: usize = 3;
/// Visits that a made game's plies record.
const VISITS: u32 = 100;
/// Longest made game, in plies.
const LONGEST: usize = 160;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speeds {
    /// Positions sampled and encoded a second, by the worker threads alone.
    pub pipeline_samples_per_s: f64,
    /// Positions brought to the device a second, by the training thread.
    pub load_samples_per_s: f64,
    /// Positions trained on a second, all of them on the device already.
    pub step_samples_per_s: f64,
    /// Positions trained on a second, sampled and encoded meanwhile.
    pub together_samples_per_s: f64,
}

/// How it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// Threads that encode.
    pub threads: usize,
    /// Least time of each measurement.
    pub time: Duration,
}

/// Measures all four.
///
/// # Errors
///
/// If the system gives no thread, or a step fails.
pub fn measure(
    trainer: &mut Trainer,
    params: &TrainingParams,
    mixture: &Mixture,
    conditions: Conditions,
) -> anyhow::Result<Speeds> {
    let plan = BatchPlan::new(trainer.spec(), params);
    let source = Sampled {
        mixture: mixture.clone(),
        plan,
        sampler: SAMPLER,
    };
    let begin = || Prefetcher::start(source.clone(), 0..u64::MAX, conditions.threads);
    Ok(Speeds {
        pipeline_samples_per_s: pipeline(begin()?, conditions.time)?,
        load_samples_per_s: load(trainer, mixture, &plan, conditions.time)?,
        step_samples_per_s: step(trainer, mixture, &plan, conditions.time)?,
        together_samples_per_s: together(trainer, begin()?, conditions.time)?,
    })
}

const SAMPLER: Sampler = Sampler {
    seed: 1,
    candidate: 0,
};
/// So small that the weights stay finite however long it takes.
const RATE: f64 = 1e-6;

fn pipeline(mut batches: Prefetcher, time: Duration) -> anyhow::Result<f64> {
    // What the threads have made before the clock starts must not count: they are ahead by some
    // batches at its end, too.
    speed(WARM_UP * 10, time, || {
        Ok(batches.next_batch().map_or(0, |batch| {
            let positions = batch.values.len();
            batches.give_back(batch);
            positions
        }))
    })
}

fn load(
    trainer: &mut Trainer,
    mixture: &Mixture,
    plan: &BatchPlan,
    time: Duration,
) -> anyhow::Result<f64> {
    let batch = encode_batch(mixture, SAMPLER, 0, plan);
    speed(WARM_UP, time, || {
        trainer.load(&batch)?;
        Ok(plan.batch_size)
    })
}

fn step(
    trainer: &mut Trainer,
    mixture: &Mixture,
    plan: &BatchPlan,
    time: Duration,
) -> anyhow::Result<f64> {
    let batch = trainer.load(&encode_batch(mixture, SAMPLER, 0, plan))?;
    speed(WARM_UP, time, || {
        trainer.step_loaded(&batch, RATE)?;
        Ok(plan.batch_size)
    })
}

fn together(trainer: &mut Trainer, batches: Prefetcher, time: Duration) -> anyhow::Result<f64> {
    let mut prefetch = DevicePrefetch::new(batches);
    speed(WARM_UP, time, || {
        let stepped = prefetch.step(trainer, RATE)?;
        Ok(stepped.map_or(0, |(_, positions)| positions))
    })
}

/// Positions a second of `work`, which says how many it did.
fn speed(
    warm_up: usize,
    time: Duration,
    mut work: impl FnMut() -> anyhow::Result<usize>,
) -> anyhow::Result<f64> {
    for _ in 0..warm_up {
        work()?;
    }
    let (begin, mut positions) = (Instant::now(), 0);
    while begin.elapsed() < time {
        let done = work()?;
        anyhow::ensure!(done > 0, "a thread that encodes positions has failed");
        positions += done;
    }
    Ok(positions as f64 / begin.elapsed().as_secs_f64())
}

/// Made games with at least this number of positions: random moves from the standard start
/// with random visits, as many legal moves and boards of history as real games have.
///
/// # Errors
///
/// None, as the games begin at the standard start.
pub fn made_games(positions: u64, seed: u64) -> anyhow::Result<ReplayBuffer> {
    let mut buffer = ReplayBuffer::new(u64::MAX);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    while buffer.positions() < positions {
        buffer.add(StoredGame::from_record(&made_game(&mut rng))?);
    }
    Ok(buffer)
}

fn made_game(rng: &mut ChaCha8Rng) -> GameRecord {
    let mut game = GameHistory::default();
    let mut plies = Vec::new();
    while plies.len() < LONGEST && game.end().is_none() {
        let legal = canonical_moves(game.position());
        let mut visits = vec![0; legal.len()];
        (0..VISITS).for_each(|_| visits[rng.random_range(0..legal.len())] += 1);
        let played = legal[rng.random_range(0..legal.len())];
        plies.push(PlyRecord {
            visits,
            root_draw: 0.2,
            ..PlyRecord::new(played)
        });
        game.push(played);
    }
    GameRecord {
        index: 0,
        kind: GameKind::SelfPlay { play_on: false },
        seed: Seed(0),
        start: GameStart::default(),
        plies,
        end: game.end().unwrap_or(GameEnd::draw(Termination::PlyLimit)),
    }
}

#[cfg(test)]
mod tests {
    use rookery_backend_torch::ComputeDevice;
    use rookery_engine::Precision;

    use super::*;
    use crate::testing;

    #[test]
    fn all_four_are_measured_and_the_weights_stay_finite() {
        rookery_backend_torch::use_threads(1);
        let window = made_games(500, 3).unwrap().window(500);
        assert_eq!(window.len(), 500);
        let params = TrainingParams {
            batch_size: 8,
            ..TrainingParams::default()
        };
        let (network, device) = (testing::network(), ComputeDevice::CPU);
        let mut trainer = Trainer::new(&network, &params, device, Precision::F32).unwrap();
        let conditions = Conditions {
            threads: 1,
            time: Duration::from_millis(50),
        };
        let speeds = measure(&mut trainer, &params, &Mixture::of(window), conditions).unwrap();
        let all = [
            speeds.pipeline_samples_per_s,
            speeds.load_samples_per_s,
            speeds.step_samples_per_s,
            speeds.together_samples_per_s,
        ];
        assert!(all.iter().all(|speed| *speed > 0.0), "{speeds:?}");
        assert!(trainer.averaged().is_ok());
    }
}
