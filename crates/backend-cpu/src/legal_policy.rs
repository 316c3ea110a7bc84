//! The last layer of a policy, for the legal moves only: some thirty of the 1,858 and more cells, in
//! 32 bits whatever the numbers before it.

use rookery_common::network::{PolicyLayers, PolicyOutput};
use rookery_model::{ModelError, Weights};

use crate::element::Element;
use crate::simd::{InstructionSet, Instructions, Kernel, LANES};

/// The weights of a policy's last layer, in the order in which activations lie in memory.
#[derive(Debug)]
pub struct LegalPolicy {
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

impl LegalPolicy {
    /// The last layer of a policy, padded with zeros to `channels`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`] if the network has no such layer.
    pub fn new(
        weights: &Weights,
        policy: &PolicyLayers,
        channels: usize,
    ) -> Result<Self, ModelError> {
        let used = policy.convolution.outputs as usize;
        // `[outputs][used][places]` as `[outputs][places][channels]`.
        let by_place = |name: &str, places: usize| -> Result<Vec<f32>, ModelError> {
            let weight = weights.get(&format!("{name}.weight"))?.values();
            let outputs = weight.len() / (used * places);
            let mut ordered = vec![0.0; outputs * places * channels];
            for (index, number) in weight.iter().enumerate() {
                let (output, channel, place) = (
                    index / (used * places),
                    index / places % used,
                    index % places,
                );
                ordered[(output * places + place) * channels + channel] = *number;
            }
            Ok(ordered)
        };
        let (layer, name) = match &policy.output {
            PolicyOutput::Planes(planes) => {
                (Layer::Convolution(by_place(&planes.name, 9)?), &planes.name)
            }
            PolicyOutput::Dense(dense) => (Layer::Dense(by_place(&dense.name, 64)?), &dense.name),
        };
        Ok(Self {
            layer,
            channels,
            bias: weights.get(&format!("{name}.bias"))?.values().to_vec(),
        })
    }

    /// Channels that the layer takes, those that are zeros included.
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// Writes the logits of these cells, counted through the whole batch's output as
    /// [`PolicyCells`](crate::PolicyCells) does, into `logits`, which is as long. `features` are
    /// `[positions][64][channels]`.
    pub fn write<N: Element>(&self, features: &[N], cells: &[i64], logits: &mut [f32]) {
        self.write_by(Instructions::best(), features, cells, logits);
    }

    pub(crate) fn write_by<N: Element>(
        &self,
        instructions: Instructions,
        features: &[N],
        cells: &[i64],
        logits: &mut [f32],
    ) {
        let legal = self;
        instructions.run(Logits {
            legal,
            features,
            cells,
            logits,
        });
    }

    /// Cells of one position.
    fn cells(&self) -> usize {
        match self.layer {
            Layer::Convolution(_) => 64 * self.bias.len(),
            Layer::Dense(_) => self.bias.len(),
        }
    }
}

struct Logits<'a, N> {
    legal: &'a LegalPolicy,
    features: &'a [N],
    cells: &'a [i64],
    logits: &'a mut [f32],
}

impl<N: Element> Kernel for Logits<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let Self {
            legal,
            features,
            cells,
            logits,
        } = self;
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
                Layer::Dense(weight) => {
                    legal.bias[cell] + dot(board, &weight[cell * size..][..size])
                }
            };
        }
    }
}

/// A kernel `[3][3][channels]` laid on the squares around one, those beyond the edge being 0.
#[inline(always)]
fn around<N: Element>(board: &[N], square: usize, kernel: &[f32], channels: usize) -> f32 {
    let (row, column) = (square / 8, square % 8);
    let (left, right) = (column.saturating_sub(1), (column + 1).min(7));
    let width = (right - left + 1) * channels;
    let skipped = (left + 1 - column) * channels;
    let mut sum = 0.0;
    for other in row.saturating_sub(1)..=(row + 1).min(7) {
        let taps = &kernel[(other + 1 - row) * 3 * channels + skipped..][..width];
        sum += dot(&board[(8 * other + left) * channels..][..width], taps);
    }
    sum
}

#[inline(always)]
fn dot<N: Element>(numbers: &[N], weights: &[f32]) -> f32 {
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
