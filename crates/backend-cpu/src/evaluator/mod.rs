//! A network behind the engine's [`Evaluator`].

use std::sync::Arc;

use rookery_common::encoding::{InputEncoding, PolicyEncoding};
use rookery_common::network::ValueHead;
use rookery_engine::{Batch, Evaluations, Evaluator, EvaluatorError, Precision, Wdl};

use crate::aligned::AlignedVec;
use crate::elementwise::add_activate;
use crate::network::{Block, CpuNetwork};
use crate::outputs::{check_finite, value_of};
use crate::simd::Instructions;
use crate::winograd::Workspace;

/// Largest batch that goes through a tower of this number of channels.
///
/// Of a narrow one as many as keep the activations between two layers, 512 KiB, in the second cache; its kernels, which each
/// part reads anew, are in the third. A wide one's may come from memory, so that it is better to read them seldom.
fn most_positions(channels: usize) -> usize {
    if channels <= 64 { 2048 / channels } else { 64 }
}

/// Evaluates a network on the thread that asks.
#[derive(Debug)]
pub struct CpuEvaluator {
    network: Arc<CpuNetwork>,
    buffers: Buffers,
    cells: Vec<i64>,
}

/// Activations, `[positions][64][channels]` each.
#[derive(Debug, Default)]
struct Buffers {
    stream: AlignedVec,
    between: AlignedVec,
    branch: AlignedVec,
    hidden: AlignedVec,
    output: AlignedVec,
    workspace: Workspace,
}

impl CpuEvaluator {
    /// An evaluator of a network that others may evaluate at the same time.
    pub fn new(network: Arc<CpuNetwork>) -> Self {
        Self::with_instructions(network, Instructions::best())
    }

    /// An evaluator that computes by these instructions, for tests and benchmarks.
    pub fn with_instructions(network: Arc<CpuNetwork>, instructions: Instructions) -> Self {
        let mut buffers = Buffers::default();
        buffers.workspace.instructions = instructions;
        Self {
            network,
            buffers,
            cells: Vec::new(),
        }
    }

    /// What it evaluates.
    pub fn network(&self) -> &CpuNetwork {
        &self.network
    }

    /// Adds a batch's evaluations to `answer`.
    fn evaluate_batch(
        &mut self,
        batch: &Batch,
        answer: &mut Evaluations,
    ) -> Result<(), EvaluatorError> {
        let network = &*self.network;
        network
            .cells
            .of_batch(batch, &mut self.cells)
            .map_err(|(position, index)| {
                EvaluatorError(format!(
                    "position {position} has a move of policy index {index}"
                ))
            })?;
        self.buffers.tower(network, batch);
        let logits = answer.logits.len();
        answer.logits.resize(logits + self.cells.len(), 0.0);
        let logits = &mut answer.logits[logits..];
        self.buffers
            .policy(network, batch.len(), &self.cells, logits);
        let values = answer.values.len();
        self.buffers.value(network, batch.len(), &mut answer.values);
        check_finite(logits, &answer.values[values..], Precision::F32)
    }
}

impl Buffers {
    /// Leaves in `stream` what the tower makes of a batch.
    fn tower(&mut self, network: &CpuNetwork, batch: &Batch) {
        let size = batch.len() * 64 * network.channels;
        for buffer in [&mut self.stream, &mut self.between, &mut self.branch] {
            buffer.resize(size);
        }
        let instructions = self.workspace.instructions;
        let first = &network.first;
        first.apply_by::<f32>(instructions, batch, &mut self.stream, None);
        for block in &network.blocks {
            self.block(block, network);
        }
    }

    /// The second convolution's outputs are added to the stream while they are in the second cache.
    fn block(&mut self, block: &Block, network: &CpuNetwork) {
        let (activation, board) = (network.activation, 64 * network.channels);
        let (between, workspace) = (&mut self.between, &mut self.workspace);
        let first = Some(activation);
        block.conv1.apply(first, &self.stream, workspace, between);
        let positions = between.len() / board;
        let size = board * block.conv2.positions_at_a_time(positions).max(1);
        for (x, stream) in between.chunks(size).zip(self.stream.chunks_mut(size)) {
            let y = &mut self.branch[..x.len()];
            block.conv2.apply(None, x, workspace, y);
            let instructions = workspace.instructions;
            match &block.excitation {
                Some(excitation) => excitation.apply_by(instructions, y, stream),
                None => add_activate(instructions, activation, y, stream),
            }
        }
    }

    /// Writes the logits of the legal moves, whose cells these are.
    fn policy(
        &mut self,
        network: &CpuNetwork,
        positions: usize,
        cells: &[i64],
        logits: &mut [f32],
    ) {
        let (layer, features) = (&network.policy, &mut self.between);
        features.resize(positions * 64 * layer.outputs());
        let activation = Some(network.activation);
        layer.apply(activation, &self.stream, &mut self.workspace, features);
        let instructions = self.workspace.instructions;
        let legal = &network.legal;
        legal.write_by::<f32>(instructions, features, cells, logits);
    }

    /// Adds the value of each position.
    fn value(&mut self, network: &CpuNetwork, positions: usize, values: &mut Vec<Wdl>) {
        let (head, features) = (&network.value, &mut self.between);
        let (activation, instructions) = (Some(network.activation), self.workspace.instructions);
        features.resize(positions * 64 * head.convolution.outputs());
        let convolution = &head.convolution;
        convolution.apply(activation, &self.stream, &mut self.workspace, features);
        self.hidden.resize(positions * head.hidden.outputs());
        let hidden = &mut self.hidden;
        head.hidden
            .apply(instructions, activation, features, hidden);
        self.output.resize(positions * head.output.outputs());
        head.output
            .apply(instructions, None, hidden, &mut self.output);
        let rows = self.output.chunks_exact(head.output.outputs());
        // Behind them are zeros.
        let outputs = match head.kind {
            ValueHead::Wdl { .. } => 3,
            ValueHead::Scalar { .. } => 1,
        };
        values.extend(rows.map(|row| value_of(&row[..outputs])));
    }
}

impl Evaluator for CpuEvaluator {
    fn input(&self) -> InputEncoding {
        self.network.spec.input
    }

    fn policy(&self) -> PolicyEncoding {
        self.network.spec.policy.encoding
    }

    fn evaluate(&mut self, batch: &Batch, answer: &mut Evaluations) -> Result<(), EvaluatorError> {
        answer.clear();
        batch.check_encodings(self.input(), self.policy())?;
        let most = most_positions(self.network.channels);
        if batch.len() <= most {
            return self.evaluate_batch(batch, answer);
        }
        let mut part = Batch::new(self.input(), self.policy());
        for start in (0..batch.len()).step_by(most) {
            part.clear();
            let end = batch.len().min(start + most);
            (start..end).for_each(|index| part.push_from(batch, index));
            self.evaluate_batch(&part, answer)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
