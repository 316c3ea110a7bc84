//! A network's tensors in one kind of numbers, on a device.

use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_engine::Batch;
use rookery_model::Weights;
use tch::{Kind, no_grad};

use crate::device::ComputeDevice;
use crate::error::Result;
use crate::folded::{Convolutions, FoldedConvolution, Folding};
use crate::graph::Graph;
use crate::host::{self, FirstLayer, LegalPolicy};
use crate::unpack::Unpacker;

/// Per cent of the time of more exact numbers that others may take to be preferred.
const WORTH_ROUNDING: u32 = 90;
/// Rounds of timing: in each, every candidate computes one batch. At least the first number, at most the second, and no
/// new one after [`TIMING`].
const ROUNDS: [usize; 2] = [4, 16];
/// When no new round of timing begins.
const TIMING: Duration = Duration::from_millis(500);
/// Positions of a batch by whose time numbers are chosen, on a processor and on a GPU, which a small one leaves idle.
const TIMED_POSITIONS: [usize; 2] = [32, 256];

/// What is computed with.
#[derive(Debug)]
pub(super) struct Computation {
    pub(super) kind: Kind,
    pub(super) graph: ReadOnly,
    /// On the processor.
    pub(super) first: Option<FirstLayer>,
    /// On the processor.
    pub(super) legal: Option<LegalPolicy>,
}

/// A graph whose tensors nothing changes any more.
#[derive(Debug)]
pub(super) struct ReadOnly(Graph<FoldedConvolution>);

// SAFETY: the graph is only lent for reading. Evaluation computes new tensors from its tensors, without gradients,
// and changes none of them in place. libtorch lets any number of threads read a tensor at the same time, and
// counts references to it atomically.
#[expect(
    unsafe_code,
    reason = "tch does not know which tensors are only read, and so shares none"
)]
unsafe impl Sync for ReadOnly {}

impl ReadOnly {
    pub(super) const fn graph(&self) -> &Graph<FoldedConvolution> {
        &self.0
    }
}

impl Computation {
    /// In the fastest of these kinds, the most exact first: another has to be clearly faster. Of several, each is timed,
    /// in turns, so that whatever else keeps the machine busy slows all of them.
    pub(super) fn fastest(
        weights: &Weights,
        device: ComputeDevice,
        convolutions: Convolutions,
        kinds: &[Kind],
    ) -> Result<Self> {
        let build = |kind: &Kind| Self::new(weights, device, convolutions, *kind);
        if let [only] = kinds {
            return build(only);
        }
        let batch = timed_batch(weights, device);
        let mut candidates: Vec<Candidate> = Vec::new();
        for kind in kinds {
            let candidate = build(kind).and_then(|made| Candidate::new(made, device, &batch));
            match candidate {
                Ok(candidate) => candidates.push(candidate),
                Err(error) if candidates.is_empty() => return Err(error),
                // Nothing that this device computes.
                Err(_) => {}
            }
        }
        let (begun, [fewest, most]) = (Instant::now(), ROUNDS);
        for round in 0..most {
            if round >= fewest && begun.elapsed() > TIMING {
                break;
            }
            for candidate in &mut candidates {
                candidate.time(&batch)?;
            }
        }
        let first_best = candidates.into_iter().reduce(|best, other| {
            if is_clearly_faster(&other.times, &best.times) {
                other
            } else {
                best
            }
        });
        first_best.map_or_else(|| build(&Kind::Float), |best| Ok(best.computation))
    }

    pub(super) fn new(
        weights: &Weights,
        device: ComputeDevice,
        convolutions: Convolutions,
        kind: Kind,
    ) -> Result<Self> {
        let graph = Graph::new(
            weights.spec(),
            &Folding {
                weights,
                device: device.0,
                kind,
                convolutions,
            },
        )?;
        let (mut first, mut legal) = (None, None);
        if device.is_cpu() {
            first = host::first_layer(weights)?;
            legal = Some(host::legal_policy(weights)?);
        }
        Ok(Self {
            kind,
            graph: ReadOnly(graph),
            first,
            legal,
        })
    }
}

/// The batch by whose time numbers are chosen.
fn timed_batch(weights: &Weights, device: ComputeDevice) -> Batch {
    let spec = weights.spec();
    let [cpu, gpu] = TIMED_POSITIONS;
    let positions = if device.is_cpu() { cpu } else { gpu };
    let mut batch = Batch::new(spec.input, spec.policy.encoding);
    (0..positions).for_each(|_| batch.push(&GameHistory::default(), &[]));
    batch
}

/// A computation that is timed.
struct Candidate {
    computation: Computation,
    unpacker: Unpacker,
    times: Vec<Duration>,
}

impl Candidate {
    /// Computes a batch once, which also chooses kernels and gets memory.
    fn new(computation: Computation, device: ComputeDevice, batch: &Batch) -> Result<Self> {
        let unpacker = Unpacker::new(batch.input(), device.0, computation.kind);
        let mut made = Self {
            computation,
            unpacker,
            times: Vec::new(),
        };
        made.time(batch)?;
        made.times.clear();
        Ok(made)
    }

    /// Times the tower once.
    fn time(&mut self, batch: &Batch) -> Result<()> {
        let Computation {
            kind, graph, first, ..
        } = &self.computation;
        let (graph, convolve) = (graph.graph(), FoldedConvolution::apply);
        let start = Instant::now();
        let x = no_grad(|| match first {
            Some(first) => graph.tower_on(host::apply_first(first, batch, *kind)?, &convolve),
            None => graph.tower(self.unpacker.unpack(batch)?.tensor(), &convolve),
        })?;
        // A GPU is still at it until somebody wants a number of its.
        let _ = x.f_double_value(&[0, 0, 0, 0])?;
        self.times.push(start.elapsed());
        Ok(())
    }
}

/// Whether others than the more exact numbers are faster by enough, by their times in the same rounds: the shortest
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

    fn times<const N: usize>(milliseconds: [u64; N]) -> [Duration; N] {
        milliseconds.map(Duration::from_millis)
    }

    #[test]
    fn other_numbers_are_worth_it_only_if_they_are_clearly_faster() {
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
}
