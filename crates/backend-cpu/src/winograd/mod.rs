//! Convolutions of 3 x 3 squares in f32 by Winograd's algorithm F(4 x 4, 3 x 3), with a quarter of the products.
//!
//! Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
//!
//! A board's four quarters are computed each from the 6 x 6 squares that it sees, borders of zeros included:
//!
//! ```text
//! [positions][64][inputs]
//!     spread_out  B' d B of each quarter's squares        [36][quarters][inputs]
//!     multiply    36 products of matrices, by the         [36][quarters][GROUPS * LANES]   for GROUPS * LANES
//!                 kernels G g G'                                                           outputs at a time
//!     gather      A' m A, the bias and the activation
//! [positions][64][outputs]
//! ```
//!
//! Some positions go through all of it at a time, as many as keep what lies between in the second cache. Rounding
//! errors are some ten times those of a plain sum.
//!
//! # Limit
//!
//! 144 products for each input, output and position, at the speed of [`matrix`](crate::matrix): for 64 channels 37,000 cycles
//! of 16 products, for 128 147,000. Products grow with the square of the channels and transforms, which are bound by the
//! second cache, with the channels alone, so the more of them the nearer comes the whole to this limit.

mod transform;

use std::marker::PhantomData;

use rookery_common::network::Activation;
use rookery_model::FoldedConvolution;

use crate::activation::{Activate, Identity, with_activation};
use crate::aligned::AlignedVec;
use crate::matrix::{GROUPS, Product};
use crate::simd::{InstructionSet, Instructions, Kernel, LANES, Lanes};
use transform::{transform_back, transform_kernel, transform_seen};

/// Squares that a quarter of a board sees in a row or column.
const SEEN: usize = 6;
/// All of them.
const ALL_SEEN: usize = SEEN * SEEN;
/// Squares of a quarter in a row or column.
const SIDE: usize = 4;
/// Quarters of a board.
const QUARTERS: usize = 4;

/// A convolution of 3 x 3 squares whose kernels are transformed.
#[derive(Debug)]
pub struct Winograd {
    inputs: usize,
    /// `[outputs / (GROUPS * LANES)][36][inputs][GROUPS][LANES]`, the last of them with one group where their number is odd.
    kernels: AlignedVec,
    /// `[outputs]`.
    bias: Vec<f32>,
}

/// What lies between the steps of convolutions, used again by each.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) instructions: Instructions,
    spread: AlignedVec,
    products: AlignedVec,
}

/// Numbers from one of 36 matrices to the next. A line of the cache lies between them, so that their beginnings do not
/// all compete for the same lines of the first cache.
const fn stride(numbers: usize) -> usize {
    numbers + LANES
}

impl Winograd {
    /// The convolution of 3 x 3 squares; none for other kernels, and where inputs or outputs are no multiple of
    /// [`LANES`].
    pub fn new(folded: &FoldedConvolution) -> Option<Self> {
        let FoldedConvolution {
            outputs, inputs, ..
        } = *folded;
        let fits = |channels: usize| channels > 0 && channels.is_multiple_of(LANES);
        if folded.kernel != 3 || !fits(inputs) || !fits(outputs) {
            return None;
        }
        let mut kernels = AlignedVec::zeros(outputs * ALL_SEEN * inputs);
        for (index, kernel) in folded.weight.as_chunks().0.iter().enumerate() {
            let (output, input) = (index / inputs, index % inputs);
            let (group, lane) = (output / LANES, output % LANES);
            let first = group - group % GROUPS;
            let groups = GROUPS.min(outputs / LANES - first);
            for (tap, number) in transform_kernel(kernel).into_iter().enumerate() {
                let row = first * ALL_SEEN * inputs + (tap * inputs + input) * groups;
                kernels[(row + group % GROUPS) * LANES + lane] = number as f32;
            }
        }
        Some(Self {
            inputs,
            kernels,
            bias: folded.bias.iter().map(|bias| *bias as f32).collect(),
        })
    }

    /// Input channels.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Output channels.
    pub const fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Multiplications of a position in products of matrices.
    pub(crate) fn products(&self) -> usize {
        ALL_SEEN * QUARTERS * self.inputs * self.outputs()
    }

    /// The convolution of `x`, `[positions][64][inputs]`, into `y`, `[positions][64][outputs]`.
    pub fn apply(&self, x: &[f32], workspace: &mut Workspace, y: &mut [f32]) {
        self.apply_then(None, x, workspace, y);
    }

    /// [`apply`](Self::apply), and then the activation.
    pub(crate) fn apply_then(
        &self,
        activation: Option<Activation>,
        x: &[f32],
        workspace: &mut Workspace,
        y: &mut [f32],
    ) {
        let Workspace {
            instructions,
            spread,
            products,
        } = workspace;
        let positions = self.positions_at_a_time(x.len() / (64 * self.inputs));
        let parts = x.chunks(positions * 64 * self.inputs);
        for (x, y) in parts.zip(y.chunks_mut(positions * 64 * self.outputs())) {
            let quarters = x.len() / (64 * self.inputs) * QUARTERS;
            spread.resize(ALL_SEEN * stride(quarters * self.inputs));
            products.resize(ALL_SEEN * stride(quarters * GROUPS * LANES));
            instructions.run(Convolve {
                layer: self,
                activation,
                x,
                spread,
                products,
                y,
            });
        }
    }

    /// At this batch size the transformed input takes about 200 KB, and where there are more channels as much as the kernels
    /// that all of it is multiplied by.
    pub(crate) fn positions_at_a_time(&self, positions: usize) -> usize {
        let most = (self.inputs / LANES).max(6);
        positions.div_ceil(positions.div_ceil(most).max(1)).max(1)
    }
}

/// The convolution of some positions.
struct Convolve<'a> {
    layer: &'a Winograd,
    activation: Option<Activation>,
    x: &'a [f32],
    spread: &'a mut [f32],
    products: &'a mut [f32],
    y: &'a mut [f32],
}

impl Kernel for Convolve<'_> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        match self.activation {
            Some(activation) => with_activation!(activation, convolve::<_, I>(self)),
            None => convolve::<Identity, I>(self),
        }
    }
}

#[inline(always)]
fn convolve<A: Activate, I: InstructionSet>(parts: Convolve<'_>) {
    let Convolve {
        layer,
        x,
        spread,
        products,
        y,
        ..
    } = parts;
    let (inputs, outputs) = (layer.inputs, layer.outputs());
    let quarters = x.len() / (64 * inputs) * QUARTERS;
    let spread = &mut spread[..ALL_SEEN * stride(quarters * inputs)];
    I::run(SpreadOut { x, inputs, spread });
    let size = GROUPS * LANES;
    let kernels = layer.kernels.chunks(size * ALL_SEEN * inputs);
    for ((pair, kernels), bias) in kernels.enumerate().zip(layer.bias.chunks(size)) {
        let channel = pair * size;
        if bias.len() == size {
            multiply_all::<I, GROUPS>(spread, inputs, kernels, products, quarters);
            I::run(Gather::<A, GROUPS> {
                products,
                quarters,
                bias,
                y: &mut y[channel..],
                outputs,
                activation: PhantomData,
            });
        } else {
            multiply_all::<I, 1>(spread, inputs, kernels, products, quarters);
            I::run(Gather::<A, 1> {
                products,
                quarters,
                bias,
                y: &mut y[channel..],
                outputs,
                activation: PhantomData,
            });
        }
    }
}

/// What each quarter of the boards `x` sees, transformed: `[36][quarters][inputs]`.
struct SpreadOut<'a> {
    x: &'a [f32],
    inputs: usize,
    spread: &'a mut [f32],
}

impl Kernel for SpreadOut<'_> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let Self { x, inputs, spread } = self;
        let stride = spread.len() / ALL_SEEN;
        for (position, board) in x.chunks_exact(64 * inputs).enumerate() {
            for channel in (0..inputs).step_by(LANES) {
                let board = &board[channel..];
                let place = position * QUARTERS * inputs + channel;
                spread_quarter::<I, 0>(board, inputs, spread, stride, place);
                spread_quarter::<I, 1>(board, inputs, spread, stride, place + inputs);
                spread_quarter::<I, 2>(board, inputs, spread, stride, place + 2 * inputs);
                spread_quarter::<I, 3>(board, inputs, spread, stride, place + 3 * inputs);
            }
        }
    }
}

/// [`LANES`] channels of a quarter, whose place is known when this is compiled.
#[inline(always)]
fn spread_quarter<I: InstructionSet, const QUARTER: usize>(
    board: &[f32],
    inputs: usize,
    spread: &mut [f32],
    stride: usize,
    place: usize,
) {
    let columns = [
        seen_of_column::<I, QUARTER>(board, inputs, 0),
        seen_of_column::<I, QUARTER>(board, inputs, 1),
        seen_of_column::<I, QUARTER>(board, inputs, 2),
        seen_of_column::<I, QUARTER>(board, inputs, 3),
        seen_of_column::<I, QUARTER>(board, inputs, 4),
        seen_of_column::<I, QUARTER>(board, inputs, 5),
    ];
    for (row, matrices) in spread.chunks_exact_mut(SEEN * stride).enumerate() {
        let transformed = transform_seen::<I>(line_of(&columns, row));
        for (numbers, matrix) in transformed
            .into_iter()
            .zip(matrices.chunks_exact_mut(stride))
        {
            I::store(numbers, &mut matrix[place..].as_chunks_mut().0[0]);
        }
    }
}

/// What a quarter sees of a column, transformed. The board's own rows and columns begin at 1, after the border.
#[inline(always)]
fn seen_of_column<I: InstructionSet, const QUARTER: usize>(
    board: &[f32],
    inputs: usize,
    column: usize,
) -> [I::Vector; SEEN] {
    let (top, left) = corner(QUARTER);
    let mut seen = [I::splat(0.0); SEEN];
    if let 1..=8 = left + column {
        for (row, numbers) in (top..).zip(&mut seen) {
            if let 1..=8 = row {
                let square = 8 * (row - 1) + left + column - 1;
                *numbers = I::load(&board[square * inputs..].as_chunks().0[0]);
            }
        }
    }
    transform_seen::<I>(seen)
}

/// The 36 products, `[quarters][inputs]` by `[inputs][GROUPS][LANES]` into `[quarters][GROUPS][LANES]` each.
#[inline(always)]
fn multiply_all<I: InstructionSet, const GROUPS: usize>(
    spread: &[f32],
    inputs: usize,
    kernels: &[f32],
    products: &mut [f32],
    quarters: usize,
) {
    let spread = spread.chunks_exact(stride(quarters * inputs));
    let products = products.chunks_exact_mut(stride(quarters * GROUPS * LANES));
    let kernels = kernels.as_chunks::<LANES>().0.as_chunks().0;
    let zeros = [[0.0; LANES]; GROUPS];
    for ((spread, kernel), products) in spread.zip(kernels.chunks_exact(inputs)).zip(products) {
        let spread = &spread[..quarters * inputs];
        I::run(Product {
            x: spread,
            weights: kernel,
            bias: &zeros,
            y: products,
            stride: GROUPS * LANES,
            activation: PhantomData::<Identity>,
        });
    }
}

/// The outputs of some channels of all quarters, transformed back, plus the bias, and their activation.
struct Gather<'a, A, const GROUPS: usize> {
    products: &'a [f32],
    quarters: usize,
    bias: &'a [f32],
    /// From the first of the channels on, `[positions][64][outputs]`.
    y: &'a mut [f32],
    outputs: usize,
    activation: PhantomData<A>,
}

impl<A: Activate, const GROUPS: usize> Kernel for Gather<'_, A, GROUPS> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let outputs = self.outputs;
        let products = self.products.as_chunks::<LANES>().0;
        let stride = stride(self.quarters * GROUPS * LANES) / LANES;
        for quarter in 0..self.quarters {
            let board = &mut self.y[quarter / QUARTERS * 64 * outputs..];
            let (top, left) = corner(quarter);
            for (group, bias) in self.bias.as_chunks::<LANES>().0.iter().enumerate() {
                let place = quarter * GROUPS + group;
                let bias = I::load(bias);
                let rows = [
                    row_back::<I>(products, stride, 0, place),
                    row_back::<I>(products, stride, 1, place),
                    row_back::<I>(products, stride, 2, place),
                    row_back::<I>(products, stride, 3, place),
                    row_back::<I>(products, stride, 4, place),
                    row_back::<I>(products, stride, 5, place),
                ];
                for column in 0..SIDE {
                    let numbers = transform_back::<I>(line_of(&rows, column));
                    for (row, numbers) in numbers.into_iter().enumerate() {
                        let square = 8 * (top + row) + left + column;
                        let output = &mut board[square * outputs + group * LANES..];
                        let output = &mut output.as_chunks_mut().0[0];
                        I::store(I::add(numbers, bias), output);
                        output.iter_mut().for_each(|y| *y = A::activate(*y));
                    }
                }
            }
        }
    }
}

/// A row of a quarter's products, transformed back.
#[inline(always)]
fn row_back<I: InstructionSet>(
    products: &[Lanes],
    stride: usize,
    row: usize,
    place: usize,
) -> [I::Vector; SIDE] {
    let mut numbers = [I::splat(0.0); SEEN];
    let matrices = products[SEEN * row * stride..].chunks_exact(stride);
    for (numbers, matrix) in numbers.iter_mut().zip(matrices) {
        *numbers = I::load(&matrix[place]);
    }
    transform_back::<I>(numbers)
}

/// The first row and column of a quarter.
const fn corner(quarter: usize) -> (usize, usize) {
    (SIDE * (quarter % QUARTERS / 2), SIDE * (quarter % 2))
}

/// A row of what was transformed by columns, or a column of what was transformed by rows.
#[inline(always)]
fn line_of<V: Copy, const COUNT: usize>(lines: &[[V; COUNT]; SEEN], index: usize) -> [V; SEEN] {
    let [a, b, c, d, e, f] = lines;
    [a[index], b[index], c[index], d[index], e[index], f[index]]
}

#[cfg(test)]
mod tests;
