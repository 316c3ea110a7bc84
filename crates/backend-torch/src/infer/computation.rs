//! A network's tensors in one kind of numbers, on a device.

use rookery_common::chess::GameHistory;
use rookery_engine::Batch;
use rookery_engine::backend::fastest_of;
use rookery_model::Weights;
use tch::{Kind, no_grad};

use crate::device::ComputeDevice;
use crate::error::Result;
use crate::folded::{Convolutions, FoldedConvolution, Folding};
use crate::graph::Graph;
use crate::host::{self, FirstLayer, LegalPolicy};
use crate::unpack::Unpacker;

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
        let fastest = fastest_of(candidates, |candidate| candidate.compute(&batch))?;
        fastest.map_or_else(|| build(&Kind::Float), |best| Ok(best.computation))
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
}

impl Candidate {
    /// Computes a batch once, which also chooses kernels and gets memory.
    fn new(computation: Computation, device: ComputeDevice, batch: &Batch) -> Result<Self> {
        let unpacker = Unpacker::new(batch.input(), device.0, computation.kind);
        let mut made = Self {
            computation,
            unpacker,
        };
        made.compute(batch)?;
        Ok(made)
    }

    /// Computes the tower once.
    fn compute(&mut self, batch: &Batch) -> Result<()> {
        let Computation {
            kind, graph, first, ..
        } = &self.computation;
        let (graph, convolve) = (graph.graph(), FoldedConvolution::apply);
        let x = no_grad(|| match first {
            Some(first) => graph.tower_on(host::apply_first(first, batch, *kind)?, &convolve),
            None => graph.tower(self.unpacker.unpack(batch)?.tensor(), &convolve),
        })?;
        // A GPU is still at it until somebody wants a number of its.
        let _ = x.f_double_value(&[0, 0, 0, 0])?;
        Ok(())
    }
}
