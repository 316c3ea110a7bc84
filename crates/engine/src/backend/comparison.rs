//! The fastest of several backends, measured by what each takes for the same batch.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_model::Weights;

use super::{Backend, BackendError, BackendInfo};
use crate::evaluator::{Batch, Evaluations};

/// Per cent of the time of a more exact precision that another may take to be preferred.
const WORTH_ROUNDING: u32 = 90;
/// Rounds of timing: in each, every candidate computes one batch. At least the first number, at most the second, and no
/// new one after [`TIMING`].
const ROUNDS: [usize; 2] = [4, 16];
/// When no new round of timing begins.
const TIMING: Duration = Duration::from_millis(500);
/// Positions of the batch by whose time backends are chosen: of each of a processor's threads. A GPU computes those of all
/// threads in one batch.
const TIMED_POSITIONS: usize = 32;

/// The fastest of some candidates, the most exact first, by what `compute` takes for each: another has to be clearly
/// faster. They take turns, so that whatever else keeps the machine busy slows all of them. The caller has computed
/// once with each before, which chooses kernels and gets memory. One that fails is left out, unless it is the first.
///
/// # Errors
///
/// That of `compute` for the first candidate.
pub fn fastest_of<T, E>(
    candidates: Vec<T>,
    mut compute: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<Option<T>, E> {
    let mut candidates: Vec<(T, Vec<Duration>)> = candidates
        .into_iter()
        .map(|one| (one, Vec::new()))
        .collect();
    let (begun, [fewest, most]) = (Instant::now(), ROUNDS);
    for round in 0..most {
        if candidates.len() < 2 || round >= fewest && begun.elapsed() > TIMING {
            break;
        }
        let mut going_on = Vec::new();
        for (mut candidate, mut times) in candidates {
            let start = Instant::now();
            match compute(&mut candidate) {
                Ok(()) => {
                    times.push(start.elapsed());
                    going_on.push((candidate, times));
                }
                Err(error) if going_on.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        candidates = going_on;
    }
    let best = candidates.into_iter().reduce(|best, other| {
        if is_clearly_faster(&other.1, &best.1) {
            other
        } else {
            best
        }
    });
    Ok(best.map(|(candidate, _)| candidate))
}

/// The fastest of some backends for a network, as [`compare`] finds it.
///
/// # Errors
///
/// [`BackendError`] if there is none, or the first does not compute the network.
pub fn fastest(
    backends: Vec<Arc<dyn Backend>>,
    weights: &Weights,
) -> Result<Arc<dyn Backend>, BackendError> {
    compare(backends, weights, 1.0).map(|compared| compared.fastest)
}

/// What came of a comparison of backends.
#[derive(Debug)]
pub struct Comparison {
    /// The fastest of those that computed the network.
    pub fastest: Arc<dyn Backend>,
    /// Those that failed, and why.
    pub failures: Vec<(BackendInfo, BackendError)>,
}

/// Times some backends for a network, the most exact first. A processor computes by one thread here, so a GPU gets as
/// many times its positions as the processor has threads, and more where it may compute for a share of the time only
/// (`gpu_share`, above 0 and at most 1). One that does not compute the network is left out, unless it is the first. A
/// single one is not tried.
///
/// # Errors
///
/// [`BackendError`] if there is none, or the first does not compute the network.
pub fn compare(
    backends: Vec<Arc<dyn Backend>>,
    weights: &Weights,
    gpu_share: f64,
) -> Result<Comparison, BackendError> {
    let mut failures = Vec::new();
    if let [only] = backends.as_slice() {
        let fastest = Arc::clone(only);
        return Ok(Comparison { fastest, failures });
    }
    let spec = weights.spec();
    let batch_of = |positions: usize| {
        let mut batch = Batch::new(spec.input, spec.policy.encoding);
        (0..positions).for_each(|_| batch.push(&GameHistory::default(), &[]));
        batch
    };
    let threads = available_parallelism().map_or(1, NonZero::get);
    let mut answer = Evaluations::default();
    let mut candidates = Vec::new();
    for backend in backends {
        let batch = batch_of(timed_positions(backend.info(), threads, gpu_share));
        let ready = backend.load(weights).and_then(|network| {
            let mut evaluator = network.evaluator();
            evaluator.evaluate(&batch, &mut answer)?;
            Ok(evaluator)
        });
        match ready {
            Ok(evaluator) => candidates.push((backend, evaluator, batch)),
            Err(error) if candidates.is_empty() => return Err(error),
            Err(error) => failures.push((backend.info().clone(), error)),
        }
    }
    let best = fastest_of(candidates, |(backend, evaluator, batch)| {
        let done = evaluator.evaluate(batch, &mut answer);
        done.inspect_err(|error| {
            failures.push((
                backend.info().clone(),
                BackendError::Failed(error.to_string()),
            ));
        })
    })?;
    let none = || BackendError::Failed("there is no backend to choose from".to_owned());
    let (fastest, ..) = best.ok_or_else(none)?;
    Ok(Comparison { fastest, failures })
}

/// Positions by whose time a backend is compared where the processor has this many threads.
fn timed_positions(info: &BackendInfo, threads: usize, gpu_share: f64) -> usize {
    if info.is_cpu() {
        return TIMED_POSITIONS;
    }
    ((TIMED_POSITIONS * threads) as f64 / gpu_share).round() as usize
}

/// Whether others than the more exact precision are faster by enough, by their times in the same rounds: the shortest
/// tells how fast a machine is that does nothing else, and three rounds of four tell that this was no accident.
fn is_clearly_faster(other: &[Duration], exact: &[Duration]) -> bool {
    let shortest = |times: &[Duration]| times.iter().min().copied().unwrap_or(Duration::MAX);
    let limit = |exact: Duration| exact.saturating_mul(WORTH_ROUNDING) / 100;
    let won = other
        .iter()
        .zip(exact)
        .filter(|(other, exact)| other < exact);
    shortest(other) < limit(shortest(exact)) && 4 * won.count() >= 3 * exact.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Precision;

    #[test]
    fn a_gpu_that_idles_has_to_be_faster_than_one_that_does_not() {
        let positions = |device: &str, gpu_share| {
            let info = BackendInfo::new(device, Precision::F32).unwrap();
            timed_positions(&info, 8, gpu_share)
        };
        let full = TIMED_POSITIONS * 8;
        assert_eq!(positions("gpu:0", 1.0), full);
        assert_eq!(positions("gpu:0", 0.25), 4 * full);
        assert_eq!(positions("cpu", 0.25), TIMED_POSITIONS);
    }

    fn times<const N: usize>(milliseconds: [u64; N]) -> [Duration; N] {
        milliseconds.map(Duration::from_millis)
    }

    #[test]
    fn another_precision_is_worth_it_only_if_it_is_clearly_faster() {
        let exact = times([100, 110, 100, 130]);
        assert!(is_clearly_faster(&times([80, 85, 80, 90]), &exact));
        assert!(
            !is_clearly_faster(&times([95, 95, 95, 95]), &exact),
            "too little"
        );
        assert!(
            !is_clearly_faster(&times([80, 120, 130, 140]), &exact),
            "one quiet moment"
        );
        // Another program slowed one round of both, and one of the faster.
        assert!(is_clearly_faster(
            &times([80, 300, 81, 82]),
            &times([100, 110, 400, 101])
        ));
    }

    #[test]
    fn a_candidate_that_fails_while_it_is_timed_is_left_out_unless_it_is_the_first() {
        let fastest = |failing: &str| {
            let mut computed = Vec::new();
            let found = fastest_of(vec!["exact", "other"], |name| {
                computed.push(*name);
                // Not in its first round.
                let has_failed = *name == failing && computed.len() > 2;
                if has_failed { Err("lost") } else { Ok(()) }
            });
            (
                found,
                computed.iter().filter(|name| **name == "other").count(),
            )
        };
        assert_eq!(fastest("other"), (Ok(Some("exact")), 2));
        assert_eq!(fastest("exact"), (Err("lost"), 1));
    }
}
