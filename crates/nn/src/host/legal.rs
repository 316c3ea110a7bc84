//! The last layer of a policy, for the legal moves only: some thirty of the 1,858 and more cells, in
//! 32 bits whatever the numbers before it.

use multiversion::multiversion;
use rookery_common::network::{Layers, PolicyOutput};
use rookery_model::Weights;
use tch::{Kind, Tensor};

use super::number::{Brain, Number};
use super::{is_boards, numbers};
use crate::error::Result;
use crate::tensors::{tensor_of, to_f32};

/// The weights of a policy's last layer, in the order in which activations lie in memory.
#[derive(Debug)]
pub(crate) struct LegalLogits {
    layer: Layer,
    /// Channels that the layer takes.
    channels: usize,
    /// Of each plane or cell.
    bias: Vec<f32>,
}

#[derive(Debug)]
enum Layer {
    /// A convolution of 3 x 3 squares: `[planes][3][3][channels]`.
    Convolution(Vec<f32>),
    /// `[cells][64][channels]`.
    Dense(Vec<f32>),
}

impl LegalLogits {
    /// The last layer of the network's policy.
    pub(crate) fn new(weights: &Weights) -> Result<Self> {
        let policy = Layers::new(weights.spec())?.policy;
        let weight = |name: &str| tensor_of(weights, &format!("{name}.weight"));
        let (layer, name) = match &policy.output {
            PolicyOutput::Planes(planes) => {
                let by_square = weight(&planes.name)?.f_permute([0, 2, 3, 1])?;
                let layer = Layer::Convolution(to_f32(&by_square.f_contiguous()?)?);
                (layer, &planes.name)
            }
            PolicyOutput::Dense(dense) => {
                let by_plane =
                    weight(&dense.name)?.f_reshape([i64::from(dense.outputs), -1, 64])?;
                let by_square = by_plane.f_transpose(1, 2)?.f_contiguous()?;
                (Layer::Dense(to_f32(&by_square)?), &dense.name)
            }
        };
        let bias = weights.get(&format!("{name}.bias"))?;
        Ok(Self {
            layer,
            channels: policy.convolution.outputs as usize,
            bias: bias.values().to_vec(),
        })
    }

    /// Writes the logits of these cells, counted through the whole batch's output as `outputs` does, into
    /// `logits`, which is as long; false if that is left to libtorch. `features` is what the layer gets.
    pub(crate) fn write(&self, features: &Tensor, cells: &[i64], logits: &mut [f32]) -> bool {
        if !is_boards(features, self.channels) {
            return false;
        }
        match features.f_kind() {
            Ok(Kind::Float) => self.write_as::<f32>(features, cells, logits),
            Ok(Kind::BFloat16) => self.write_as::<Brain>(features, cells, logits),
            _ => false,
        }
    }

    fn write_as<N: Number>(&self, features: &Tensor, cells: &[i64], logits: &mut [f32]) -> bool {
        numbers::<N>(features)
            .map(|features| logits_of(self, features, cells, logits))
            .is_some()
    }

    /// Cells of one position.
    fn cells(&self) -> usize {
        match self.layer {
            Layer::Convolution(_) => 64 * self.bias.len(),
            Layer::Dense(_) => self.bias.len(),
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn logits_of<N: Number>(legal: &LegalLogits, features: &[N], cells: &[i64], logits: &mut [f32]) {
    let (count, size) = (legal.cells(), 64 * legal.channels);
    for (logit, cell) in logits.iter_mut().zip(cells) {
        let (position, cell) = (*cell as usize / count, *cell as usize % count);
        let board = &features[position * size..][..size];
        *logit = match &legal.layer {
            Layer::Convolution(weight) => {
                let (square, plane) = (cell / legal.bias.len(), cell % legal.bias.len());
                let kernel = &weight[plane * 9 * legal.channels..][..9 * legal.channels];
                legal.bias[plane] + around(board, square, kernel, legal.channels)
            }
            Layer::Dense(weight) => legal.bias[cell] + dot(board, &weight[cell * size..][..size]),
        };
    }
}

/// A kernel `[3][3][channels]` laid on the squares around one, those beyond the edge being 0.
#[inline(always)]
fn around<N: Number>(board: &[N], square: usize, kernel: &[f32], channels: usize) -> f32 {
    let (row, column) = (square / 8, square % 8);
    let (left, right) = (column.saturating_sub(1), (column + 1).min(7));
    let width = (right - left + 1) * channels;
    let skipped = (left + 1 - column) * channels;
    let rows = row.saturating_sub(1)..=(row + 1).min(7);
    rows.map(|other| {
        let taps = &kernel[(other + 1 - row) * 3 * channels + skipped..][..width];
        dot(&board[(8 * other + left) * channels..][..width], taps)
    })
    .sum()
}

/// Numbers that are multiplied side by side.
const LANES: usize = 16;

#[inline(always)]
fn dot<N: Number>(numbers: &[N], weights: &[f32]) -> f32 {
    let (numbers, last) = numbers.as_chunks::<LANES>();
    let (weights, last_weights) = weights.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (numbers, weights) in numbers.iter().zip(weights) {
        for ((sum, number), weight) in sums.iter_mut().zip(numbers).zip(weights) {
            *sum += number.widen() * weight;
        }
    }
    let rest = last.iter().zip(last_weights);
    sums.iter().sum::<f32>() + rest.map(|(n, weight)| n.widen() * weight).sum::<f32>()
}
