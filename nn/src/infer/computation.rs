//! A network's tensors in one kind of numbers, on a device.

use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_engine::Batch;
use tch::{Kind, no_grad};

use crate::device::ComputeDevice;
use crate::error::Result;
use crate::folded::{Convolutions, FoldedConvolution, Folding};
use crate::graph::Graph;
use crate::host::{FirstLayer, LegalLogits};
use crate::unpack::Unpacker;
use crate::weights::Weights;

/// Per cent of the time of more exact numbers that others may take to be preferred.
const WORTH_ROUNDING: u32 = 90;
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
    pub(super) legal: Option<LegalLogits>,
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
    /// In the fastest of these kinds, the most exact first: another has to be clearly faster. Of several, each is timed.
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
        let mut best: Option<(Duration, Self)> = None;
        for kind in kinds {
            let timed =
                build(kind).and_then(|made| Ok((made.time_a_batch(weights, device)?, made)));
            let limit = best.as_ref().map(|(time, _)| WORTH_ROUNDING * *time / 100);
            match (timed, limit) {
                (Ok((time, made)), limit) if limit.is_none_or(|limit| time < limit) => {
                    best = Some((time, made));
                }
                (Err(error), None) => return Err(error),
                // Slower, or nothing that this device computes.
                _ => {}
            }
        }
        best.map_or_else(|| build(&Kind::Float), |(_, computation)| Ok(computation))
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
            first = FirstLayer::new(weights)?;
            legal = Some(LegalLogits::new(weights)?);
        }
        Ok(Self {
            kind,
            graph: ReadOnly(graph),
            first,
            legal,
        })
    }

    /// The shortest of a few towers.
    fn time_a_batch(&self, weights: &Weights, device: ComputeDevice) -> Result<Duration> {
        let (graph, convolve) = (self.graph.graph(), FoldedConvolution::apply);
        let spec = weights.spec();
        let [cpu, gpu] = TIMED_POSITIONS;
        let positions = if device.is_cpu() { cpu } else { gpu };
        let mut batch = Batch::new(spec.input, spec.policy.encoding);
        (0..positions).for_each(|_| batch.push(&GameHistory::default(), &[]));
        let mut unpacker = Unpacker::new(spec.input, device.0, self.kind);
        let mut fastest = Duration::MAX;
        for _ in 0..4 {
            let start = Instant::now();
            let x = no_grad(|| match &self.first {
                Some(first) => graph.tower_on(first.apply(&batch, self.kind)?, &convolve),
                None => graph.tower(unpacker.unpack(&batch)?.tensor(), &convolve),
            })?;
            // A GPU is still at it until somebody wants a number of its.
            let _ = x.f_double_value(&[0, 0, 0, 0])?;
            fastest = fastest.min(start.elapsed());
        }
        Ok(fastest)
    }
}
