//! A network on a device, ready to be evaluated by any number of threads.

use std::time::{Duration, Instant};

use rookery_common::chess::GameHistory;
use rookery_common::network::NetworkSpec;
use rookery_engine::Batch;
use tch::{Kind, no_grad};

use crate::device::ComputeDevice;
use crate::error::Result;
use crate::folded::{Convolutions, FoldedConvolution, Folding};
use crate::graph::Graph;
use crate::host::{FirstLayer, LegalLogits};
use crate::outputs::PolicyCells;
use crate::precision::Precision;
use crate::unpack::Unpacker;
use crate::weights::Weights;

/// Per cent of the time of more exact numbers that others may take to be preferred.
const WORTH_ROUNDING: u32 = 90;

/// What the evaluators of one network have in common, however many threads they are on: its tensors, which are
/// most of what it takes in memory.
#[derive(Debug)]
pub struct FoldedNetwork {
    pub(super) spec: NetworkSpec,
    pub(super) device: ComputeDevice,
    pub(super) kind: Kind,
    pub(super) graph: ReadOnly,
    pub(super) cells: PolicyCells,
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

impl FoldedNetwork {
    /// Folds a network and brings it to a device. Where the precision is to be found by
    /// measurement, that takes a few small batches.
    ///
    /// # Errors
    ///
    /// [`NnError::Precision`](crate::NnError::Precision) for numbers that the device cannot compute with,
    /// [`NnError::NotComputable`](crate::NnError::NotComputable) for weights that are too large, or libtorch's error.
    pub fn new(weights: &Weights, device: ComputeDevice, precision: Precision) -> Result<Self> {
        Self::with_convolutions(weights, device, precision, Convolutions::default())
    }

    /// The same with a choice of how convolutions are computed.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_convolutions(
        weights: &Weights,
        device: ComputeDevice,
        precision: Precision,
        convolutions: Convolutions,
    ) -> Result<Self> {
        let candidates = precision.candidates(device)?;
        let build = |kind: &Kind| Self::with_kind(weights, device, *kind, convolutions);
        if let [only] = candidates {
            return build(only);
        }
        let mut best: Option<(Duration, Self)> = None;
        for kind in candidates {
            let network = build(kind)?;
            let time = network.time_small_batch()?;
            let better = |(fastest, _): &(Duration, Self)| time < WORTH_ROUNDING * *fastest / 100;
            if best.as_ref().is_none_or(better) {
                best = Some((time, network));
            }
        }
        best.map_or_else(|| build(&Kind::Float), |(_, network)| Ok(network))
    }

    /// In what numbers it computes.
    pub fn precision(&self) -> Precision {
        Precision::of(self.kind)
    }

    fn with_kind(
        weights: &Weights,
        device: ComputeDevice,
        kind: Kind,
        convolutions: Convolutions,
    ) -> Result<Self> {
        let spec = weights.spec().clone();
        let graph = Graph::new(
            &spec,
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
            device,
            kind,
            graph: ReadOnly(graph),
            cells: PolicyCells::new(&spec.policy),
            first,
            legal,
            spec,
        })
    }

    /// The shortest of a few towers of 32 positions.
    fn time_small_batch(&self) -> Result<Duration> {
        let (graph, convolve) = (self.graph.graph(), FoldedConvolution::apply);
        let mut batch = Batch::new(self.spec.input, self.spec.policy.encoding);
        (0..32).for_each(|_| batch.push(&GameHistory::default(), &[]));
        let mut unpacker = Unpacker::new(self.spec.input, self.device.0, self.kind);
        let mut fastest = Duration::MAX;
        for _ in 0..4 {
            let start = Instant::now();
            let _ = no_grad(|| match &self.first {
                Some(first) => graph.tower_on(first.apply(&batch, self.kind)?, &convolve),
                None => graph.tower(unpacker.unpack(&batch)?.tensor(), &convolve),
            })?;
            fastest = fastest.min(start.elapsed());
        }
        Ok(fastest)
    }
}
