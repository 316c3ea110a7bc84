//! Layers over batches, forwards and backwards, as products of matrices.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// Squares of a plane.
const SQUARES: usize = 64;

/// A layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Layer {
    /// Every output from every input.
    Dense {
        /// Inputs.
        inputs: usize,
        /// Outputs.
        outputs: usize,
        /// Whether negative outputs are cut to 0.
        relu: bool,
    },
    /// 3 x 3 squares of every plane, with zeros around the board; negative outputs are cut to 0.
    Convolution {
        /// Planes that come in.
        inputs: usize,
        /// Planes that go out.
        outputs: usize,
    },
}

/// A layer's parameters and what it does with a batch.
pub(super) struct Pass<'a> {
    pub(super) layer: Layer,
    /// Weights, all of an output together, then biases.
    pub(super) parameters: &'a [f32],
    /// `[examples][inputs]`.
    pub(super) input: &'a [f32],
}

/// Most inputs and outputs of a layer, which may be planes.
const MOST: usize = 1 << 16;

impl Layer {
    /// Whether it has inputs and outputs, and not too many to reckon with their numbers.
    pub(super) fn is_sized(self) -> bool {
        let (Self::Dense {
            inputs, outputs, ..
        }
        | Self::Convolution { inputs, outputs }) = self;
        [inputs, outputs]
            .iter()
            .all(|size| (1..=MOST).contains(size))
    }

    pub(super) const fn inputs(self) -> usize {
        match self {
            Self::Dense { inputs, .. } => inputs,
            Self::Convolution { inputs, .. } => inputs * SQUARES,
        }
    }

    pub(super) const fn outputs(self) -> usize {
        match self {
            Self::Dense { outputs, .. } => outputs,
            Self::Convolution { outputs, .. } => outputs * SQUARES,
        }
    }

    /// Inputs of each output.
    pub(super) const fn fan_in(self) -> usize {
        match self {
            Self::Dense { inputs, .. } => inputs,
            Self::Convolution { inputs, .. } => inputs * 9,
        }
    }

    pub(super) const fn weights(self) -> usize {
        self.fan_in() * self.biases()
    }

    pub(super) const fn biases(self) -> usize {
        match self {
            Self::Dense { outputs, .. } | Self::Convolution { outputs, .. } => outputs,
        }
    }

    pub(super) const fn parameters(self) -> usize {
        self.weights() + self.biases()
    }

    const fn is_rectified(self) -> bool {
        matches!(
            self,
            Self::Dense { relu: true, .. } | Self::Convolution { .. }
        )
    }
}

impl Pass<'_> {
    fn weights(&self) -> &[f32] {
        &self.parameters[..self.layer.weights()]
    }

    fn biases(&self) -> &[f32] {
        &self.parameters[self.layer.weights()..]
    }

    /// Computes `output`, `[examples][outputs]`. `columns` is memory that calls share.
    pub(super) fn forward(&self, output: &mut Vec<f32>, columns: &mut Vec<f32>) {
        let layer = self.layer;
        let (wide, fan_in) = (layer.outputs(), layer.fan_in());
        output.clear();
        match layer {
            Layer::Dense { inputs, .. } => {
                let examples = self.input.len() / inputs;
                (0..examples).for_each(|_| output.extend_from_slice(self.biases()));
                let weights = matrix(self.weights(), wide, inputs);
                let input = matrix(self.input, examples, inputs);
                general_mat_mul(
                    1.0,
                    &input,
                    &weights.t(),
                    1.0,
                    &mut matrix_mut(output, examples, wide),
                );
            }
            Layer::Convolution { inputs, outputs } => {
                let weights = matrix(self.weights(), outputs, fan_in);
                for board in self.input.chunks_exact(inputs * SQUARES) {
                    let start = output.len();
                    for bias in self.biases() {
                        output.extend_from_slice(&[*bias; SQUARES]);
                    }
                    spread(board, columns);
                    let columns = matrix(columns, fan_in, SQUARES);
                    let mut planes = matrix_mut(&mut output[start..], outputs, SQUARES);
                    general_mat_mul(1.0, &weights, &columns, 1.0, &mut planes);
                }
            }
        }
        if layer.is_rectified() {
            output.iter_mut().for_each(|out| *out = out.max(0.0));
        }
    }

    /// Adds to `gradient` what the parameters do to the loss. `delta` is what the outputs do to it, and then what the inputs do,
    /// if `goes_on`.
    pub(super) fn backward(
        &self,
        output: &[f32],
        delta: &mut Vec<f32>,
        gradient: &mut [f32],
        scratch: &mut Scratch,
        goes_on: bool,
    ) {
        let layer = self.layer;
        if layer.is_rectified() {
            for (delta, out) in delta.iter_mut().zip(output) {
                if *out <= 0.0 {
                    *delta = 0.0;
                }
            }
        }
        let (weight_gradient, bias_gradient) = gradient.split_at_mut(layer.weights());
        let Scratch {
            columns,
            column_delta,
            before,
        } = scratch;
        before.clear();
        before.resize(if goes_on { self.input.len() } else { 0 }, 0.0);
        match layer {
            Layer::Dense {
                inputs, outputs, ..
            } => {
                let examples = self.input.len() / inputs;
                for row in delta.chunks_exact(outputs) {
                    bias_gradient
                        .iter_mut()
                        .zip(row)
                        .for_each(|(sum, one)| *sum += one);
                }
                let out = matrix(delta, examples, outputs);
                let input = matrix(self.input, examples, inputs);
                let mut sums = matrix_mut(weight_gradient, outputs, inputs);
                general_mat_mul(1.0, &out.t(), &input, 1.0, &mut sums);
                if goes_on {
                    let weights = matrix(self.weights(), outputs, inputs);
                    let mut before = matrix_mut(before, examples, inputs);
                    general_mat_mul(1.0, &out, &weights, 0.0, &mut before);
                }
            }
            Layer::Convolution { inputs, outputs } => {
                let fan_in = layer.fan_in();
                let weights = matrix(self.weights(), outputs, fan_in);
                let mut sums = matrix_mut(weight_gradient, outputs, fan_in);
                column_delta.resize(fan_in * SQUARES, 0.0);
                let boards = self.input.chunks_exact(inputs * SQUARES);
                for (number, (board, out)) in boards
                    .zip(delta.chunks_exact(outputs * SQUARES))
                    .enumerate()
                {
                    for (sum, plane) in bias_gradient.iter_mut().zip(out.chunks_exact(SQUARES)) {
                        *sum += plane.iter().sum::<f32>();
                    }
                    let out = matrix(out, outputs, SQUARES);
                    spread(board, columns);
                    let seen = matrix(columns, fan_in, SQUARES);
                    general_mat_mul(1.0, &out, &seen.t(), 1.0, &mut sums);
                    if goes_on {
                        let mut back = matrix_mut(column_delta, fan_in, SQUARES);
                        general_mat_mul(1.0, &weights.t(), &out, 0.0, &mut back);
                        let squares = inputs * SQUARES;
                        gather(
                            column_delta,
                            &mut before[number * squares..(number + 1) * squares],
                        );
                    }
                }
            }
        }
        std::mem::swap(delta, before);
    }
}

/// Memory that passes share.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    pub(super) columns: Vec<f32>,
    column_delta: Vec<f32>,
    before: Vec<f32>,
}

fn matrix(numbers: &[f32], rows: usize, columns: usize) -> ArrayView2<'_, f32> {
    let shaped = ArrayView2::from_shape((rows, columns), &numbers[..rows * columns]);
    shaped.expect("rows times columns")
}

fn matrix_mut(numbers: &mut [f32], rows: usize, columns: usize) -> ArrayViewMut2<'_, f32> {
    let shaped = ArrayViewMut2::from_shape((rows, columns), &mut numbers[..rows * columns]);
    shaped.expect("rows times columns")
}

/// From planes to what each tap of a kernel sees of them: `[planes][9][64]`.
fn spread(board: &[f32], columns: &mut Vec<f32>) {
    columns.clear();
    columns.resize(9 * board.len(), 0.0);
    let taps = columns.chunks_exact_mut(9 * SQUARES);
    for (plane, taps) in board.chunks_exact(SQUARES).zip(taps) {
        for (tap, seen) in taps.chunks_exact_mut(SQUARES).enumerate() {
            each_row(tap, |to, from| seen[to].copy_from_slice(&plane[from]));
        }
    }
}

/// The other way: adds to each square what the taps that see it have.
fn gather(columns: &[f32], board: &mut [f32]) {
    let taps = columns.chunks_exact(9 * SQUARES);
    for (plane, taps) in board.chunks_exact_mut(SQUARES).zip(taps) {
        for (tap, seen) in taps.chunks_exact(SQUARES).enumerate() {
            each_row(tap, |to, from| {
                for (sum, one) in plane[from].iter_mut().zip(&seen[to]) {
                    *sum += one;
                }
            });
        }
    }
}

/// The rows of squares that a tap of a kernel, 0 to 8, adds to, and those that it reads.
#[inline]
fn each_row(tap: usize, mut row: impl FnMut(Range<usize>, Range<usize>)) {
    let (down, right) = (tap / 3, tap % 3);
    // A tap of 0 reads one before, 1 the same, 2 one after.
    let (first, last) = (usize::from(right == 0), 8 - usize::from(right == 2));
    for rank in 0..8 {
        let Some(read) = (rank + down).checked_sub(1).filter(|read| *read < 8) else {
            continue;
        };
        let from = 8 * read + first + right - 1;
        row(8 * rank + first..8 * rank + last, from..from + last - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_sees_the_squares_around_and_zeros_beyond_the_board() {
        let layer = Layer::Convolution {
            inputs: 1,
            outputs: 1,
        };
        let mut boards = vec![0.0; 128];
        (boards[0], boards[9], boards[64]) = (1.0, 10.0, 2.0);
        let kernel = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0];
        let pass = Pass {
            layer,
            parameters: &kernel,
            input: &boards,
        };
        let mut output = Vec::new();
        pass.forward(&mut output, &mut Vec::new());
        // a1 has itself in the middle (5) and b2 after it (9); b2 has a1 before it (1).
        assert_eq!((output[0], output[9]), (5.0 + 90.0, 1.0 + 50.0));
        // h1 sees neither: no square goes around the board. The second board is its own.
        assert_eq!((output[7], output[63], output[64]), (0.0, 0.0, 10.0));
    }
}
