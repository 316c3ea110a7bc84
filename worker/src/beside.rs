//! Whether the processor plays beside a GPU, where `--device auto` leaves that open: measured.
//!
//! ```text
//! alone:     the faster of the two, as it would play       ... evaluations/s
//! together:  GPU_THREADS on the GPU + all other cores      ... evaluations/s of each
//! ```
//!
//! A thread of the GPU searches the trees of its games on a core of its own, so that the processor has the rest of the
//! cores. Without any left over, or if both together are hardly faster than one alone, one computes alone.

use std::num::NonZeroUsize;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rookery_engine::dummy::random_batch;
use rookery_engine::{Backend, BackendError, Evaluations};
use rookery_model::Weights;
use serde::{Deserialize, Serialize};

use crate::machine::{CPU_GAMES, GPU_GAMES, GPU_THREADS};

/// Rounds of timing, and how long each way of computing is timed in one.
const ROUNDS: usize = 3;
const TIMING: Duration = Duration::from_millis(400);
/// How much faster both have to be than one alone.
const WORTH_IT: f64 = 1.05;
/// Fewest and most games of a thread of the processor beside a GPU.
const GAMES: [usize; 2] = [4, CPU_GAMES];

/// Threads of the processor that play beside those of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// How many.
    pub threads: NonZeroUsize,
    /// Evaluations a second of a thread of the GPU, and of one of these.
    speeds: [u32; 2],
}

impl Beside {
    /// Games of each of these threads where one of the GPU has this many: by their speeds, so that games of both kinds
    /// take as long.
    pub fn games(&self, of_gpu: NonZeroUsize) -> NonZeroUsize {
        let [gpu, processor] = self.speeds.map(f64::from);
        let games = of_gpu.get() as f64 * processor / gpu.max(1.0);
        let games = (games.round() as usize).clamp(GAMES[0], GAMES[1]);
        NonZeroUsize::new(games).unwrap_or(NonZeroUsize::MIN)
    }

    /// Decides by evaluations a second: of the faster one alone, and of both together with this many threads each.
    fn decide(alone: f64, both: [f64; 2], threads: [usize; 2]) -> Option<Self> {
        let worth_it = both[0] + both[1] >= WORTH_IT * alone;
        let processor = NonZeroUsize::new(threads[1]).filter(|_| worth_it)?;
        let speed = |place: usize| (both[place] / threads[place] as f64) as u32;
        Some(Self {
            threads: processor,
            speeds: [speed(0), speed(1)],
        })
    }
}

/// Threads that evaluate batches of one size on one device.
struct Group<'a> {
    backend: &'a dyn Backend,
    threads: usize,
    batch: usize,
}

/// Measures whether the processor, which has this many cores, gains beside a GPU, which computes for `gpu_share` of the
/// time, on a network. `alone` is which of them computes alone otherwise.
///
/// # Errors
///
/// [`BackendError`] if one of them does not compute the network.
pub fn measure(
    [gpu, processor]: [&Arc<dyn Backend>; 2],
    alone: &Arc<dyn Backend>,
    gpu_share: f64,
    cores: usize,
    weights: &Weights,
) -> Result<Option<Beside>, BackendError> {
    let timed = |groups: &[Group<'_>]| rates(groups, weights);
    measure_by(timed, [gpu, processor], alone, gpu_share, cores)
}

/// The same by what `rates` says of some groups that compute at the same time.
fn measure_by(
    rates: impl Fn(&[Group<'_>]) -> Result<Vec<f64>, BackendError>,
    [gpu, processor]: [&Arc<dyn Backend>; 2],
    alone: &Arc<dyn Backend>,
    gpu_share: f64,
    cores: usize,
) -> Result<Option<Beside>, BackendError> {
    let left = cores.saturating_sub(GPU_THREADS);
    if left == 0 {
        return Ok(None);
    }
    let on_gpu = |threads| Group {
        backend: &**gpu,
        threads,
        batch: GPU_GAMES,
    };
    let on_processor = |threads| Group {
        backend: &**processor,
        threads,
        batch: CPU_GAMES,
    };
    let (alone, alone_share) = if Arc::ptr_eq(alone, processor) {
        ([on_processor(cores)], 1.0)
    } else {
        ([on_gpu(GPU_THREADS)], gpu_share)
    };
    let both = [on_gpu(GPU_THREADS), on_processor(left)];
    let mut fastest = (0.0_f64, [0.0_f64; 2]);
    for _ in 0..ROUNDS {
        // They take turns, so that whatever else keeps the machine busy slows both.
        let one = alone_share * rates(&alone)?.iter().sum::<f64>();
        fastest.0 = fastest.0.max(one);
        if let [gpu, processor] = rates(&both)?[..]
            && gpu_share * gpu + processor > fastest.1.iter().sum::<f64>()
        {
            fastest.1 = [gpu_share * gpu, processor];
        }
    }
    let beside = Beside::decide(fastest.0, fastest.1, [GPU_THREADS, left]);
    tracing::info!(
        "{} alone: {:.0} evaluations/s; {} and the processor: {:.0}; {}",
        alone[0].backend.info().device,
        fastest.0,
        gpu.info().device,
        fastest.1.iter().sum::<f64>(),
        match beside {
            Some(_) => "both play",
            None => "one plays alone",
        }
    );
    Ok(beside)
}

/// Evaluations a second of each group, while the threads of all groups compute at the same time.
fn rates(groups: &[Group<'_>], weights: &Weights) -> Result<Vec<f64>, BackendError> {
    let networks = groups.iter().map(|group| group.backend.load(weights));
    let networks = networks.collect::<Result<Vec<_>, _>>()?;
    let barrier = Barrier::new(groups.iter().map(|group| group.threads).sum());
    let spec = weights.spec();
    let one_thread = |group: usize| -> Result<f64, BackendError> {
        let size = groups[group].batch;
        let batch = random_batch(spec.input, spec.policy.encoding, size, 1);
        let mut evaluator = Arc::clone(&networks[group]).evaluator();
        let mut answer = Evaluations::default();
        // The first batch gets memory. A thread whose device fails meets the others, too.
        let warm = evaluator.evaluate(&batch, &mut answer);
        barrier.wait();
        warm?;
        let (begun, mut done) = (Instant::now(), 0);
        while begun.elapsed() < TIMING {
            evaluator.evaluate(&batch, &mut answer)?;
            done += size;
        }
        Ok(done as f64 / begun.elapsed().as_secs_f64())
    };
    std::thread::scope(|scope| {
        let one_thread = &one_thread;
        let start = |(place, group): (usize, &Group<'_>)| {
            let threads = (0..group.threads).map(|_| scope.spawn(move || one_thread(place)));
            threads.collect::<Vec<_>>()
        };
        let started: Vec<_> = groups.iter().enumerate().map(start).collect();
        let ended = |thread: std::thread::ScopedJoinHandle<'_, Result<f64, BackendError>>| {
            let died = || BackendError::Failed("a thread of a measurement has ended".to_owned());
            thread.join().unwrap_or_else(|_| Err(died()))
        };
        let sum = |threads: Vec<_>| threads.into_iter().map(ended).sum::<Result<f64, _>>();
        started.into_iter().map(sum).collect()
    })
}

#[cfg(test)]
mod tests {
    use rookery_backend_cpu::CpuBackend;
    use rookery_common::network::NetworkSpec;
    use rookery_engine::Precision;

    use super::*;

    fn backend() -> Arc<dyn Backend> {
        Arc::new(CpuBackend::new(Precision::F32).unwrap())
    }

    /// What comes of a GPU that takes 20 ms for a batch, and three times as long while the processor computes if it is slowed.
    fn measured(processor_ms: f64, is_slowed: bool, gpu_share: f64) -> Option<Beside> {
        let (gpu, processor) = (backend(), backend());
        let rates = |groups: &[Group<'_>]| {
            let is_slow = is_slowed && groups.len() > 1;
            let gpu_ms = if is_slow { 60.0 } else { 20.0 };
            let rate = |group: &Group<'_>| {
                let is_gpu = group.batch == GPU_GAMES;
                let milliseconds = if is_gpu { gpu_ms } else { processor_ms };
                (group.threads * group.batch) as f64 / milliseconds * 1e3
            };
            Ok(groups.iter().map(rate).collect())
        };
        let cores = GPU_THREADS + 1;
        measure_by(rates, [&gpu, &processor], &gpu, gpu_share, cores).unwrap()
    }

    #[test]
    fn all_groups_are_timed() {
        let backend = backend();
        let group = |threads| Group {
            backend: &*backend,
            threads,
            batch: 1,
        };
        let weights = Weights::random(NetworkSpec::resnet(1, 8), 1).unwrap();
        let rates = rates(&[group(1), group(2)], &weights).unwrap();
        assert!(
            rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0),
            "{rates:?}"
        );
    }

    #[test]
    fn a_processor_plays_beside_a_gpu_where_both_gain() {
        // 64 positions in 5 ms beside 512 in 20 ms: half of the speed of a thread.
        let beside = measured(5.0, false, 1.0).unwrap();
        assert_eq!(beside.threads.get(), 1);
        let games = beside.games(NonZeroUsize::new(32).unwrap()).get();
        assert_eq!(games, 16, "{beside:?}");
    }

    #[test]
    fn one_plays_alone_where_the_other_adds_nothing_or_slows_it() {
        assert_eq!(measured(300.0, false, 1.0), None, "far slower");
        let slowed = measured(5.0, true, 1.0);
        assert_eq!(slowed, None, "what one gains the other loses");
    }

    #[test]
    fn a_slow_processor_plays_beside_a_gpu_that_idles() {
        // 213 a second beside a hundredth of at most 51,200.
        assert!(measured(300.0, false, 0.01).is_some());
    }

    #[test]
    fn gpu_threads_have_their_cores_first() {
        let gpu = backend();
        let found = measure_by(
            |_| panic!("nothing is left to measure"),
            [&gpu, &gpu],
            &gpu,
            1.0,
            GPU_THREADS,
        );
        assert_eq!(found.unwrap(), None);
    }

    #[test]
    fn a_gain_decides_and_speeds_share_the_games() {
        assert_eq!(Beside::decide(1000.0, [900.0, 100.0], [2, 2]), None);
        let beside = Beside::decide(1000.0, [900.0, 200.0], [2, 4]).unwrap();
        let games = |of_gpu| beside.games(NonZeroUsize::new(of_gpu).unwrap()).get();
        assert_eq!(beside.threads.get(), 4);
        // 450 and 50 a second.
        assert_eq!((games(90), games(9), games(4096)), (10, 4, CPU_GAMES));
    }
}
