//! Convolutions of 3 x 3 squares in 32 bits by Winograd's algorithm F(4 x 4, 3 x 3) (Lavin and Gray, "Fast Algorithms for
//! Convolutional Neural Networks", CVPR 2016), with a quarter of the products.
//!
//! A board's four quarters are computed each from the 6 x 6 squares that it sees, borders of zeros included:
//!
//! ```text
//! [positions][64][inputs]
//!     spread_out  B' d B of each quarter's squares        [36][quarters][inputs]
//!     multiply    36 products of matrices, by the         [36][quarters][LANES]   for LANES outputs
//!                 kernels G g G'                                                  at a time
//!     gather      A' m A, and the bias
//! [positions][64][outputs]
//! ```
//!
//! Some positions go through all of it at a time, as many as keep what lies between in the second cache. Rounding
//! errors are some ten times those of a plain sum.

use multiversion::multiversion;
use rookery_model::FoldedConvolution;

use crate::aligned::AlignedVec;
use crate::simd::{LANES, Lanes, has_fma, multiply_rows};

/// Squares that a quarter of a board sees in a row or column.
const SEEN: usize = 6;
/// All of them.
const ALL_SEEN: usize = SEEN * SEEN;
/// Squares of a quarter in a row or column.
const SIDE: usize = 4;
/// Quarters of a board.
const QUARTERS: usize = 4;

/// G of Lavin and Gray.
const KERNEL: [[f64; 3]; SEEN] = [
    [0.25, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// A convolution of 3 x 3 squares whose kernels are transformed.
#[derive(Debug)]
pub struct Winograd {
    inputs: usize,
    /// `[outputs / LANES][36][inputs][LANES]`.
    kernels: AlignedVec,
    /// `[outputs]`.
    bias: Vec<f32>,
}

/// What lies between the steps of convolutions, used again by each.
#[derive(Debug, Default)]
pub struct Workspace {
    spread: AlignedVec,
    products: AlignedVec,
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
            for (tap, number) in transform_kernel(kernel).into_iter().enumerate() {
                kernels[((group * ALL_SEEN + tap) * inputs + input) * LANES + lane] = number as f32;
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

    /// The convolution of `x`, `[positions][64][inputs]`, into `y`, `[positions][64][outputs]`.
    pub fn apply(&self, x: &[f32], workspace: &mut Workspace, y: &mut [f32]) {
        let quarters = self.positions_at_a_time() * QUARTERS * ALL_SEEN;
        let Workspace { spread, products } = workspace;
        spread.resize(quarters * self.inputs);
        products.resize(quarters * LANES);
        convolve(self, x, spread, products, y);
    }

    /// For so many positions what is spread takes about 200 KB, and where there are more channels as much as the kernels
    /// that all of it is multiplied by.
    fn positions_at_a_time(&self) -> usize {
        (self.inputs / LANES).max(6)
    }
}

/// G g G' of Lavin and Gray.
fn transform_kernel(kernel: &[f64; 9]) -> [f64; ALL_SEEN] {
    let rows: [[f64; 3]; SEEN] = KERNEL
        .map(|g| [0, 1, 2].map(|column| (0..3).map(|tap| g[tap] * kernel[3 * tap + column]).sum()));
    let mut transformed = [0.0; ALL_SEEN];
    for (row, taps) in rows.iter().enumerate() {
        for (column, g) in KERNEL.iter().enumerate() {
            transformed[SEEN * row + column] = taps.iter().zip(g).map(|(tap, g)| tap * g).sum();
        }
    }
    transformed
}

/// The convolution of `x`, `[positions][64][inputs]`, into `y`, `[positions][64][outputs]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn convolve(layer: &Winograd, x: &[f32], spread: &mut [f32], products: &mut [f32], y: &mut [f32]) {
    let (inputs, outputs) = (layer.inputs, layer.outputs());
    let positions = layer.positions_at_a_time();
    let parts = x.chunks(positions * 64 * inputs);
    for (x, y) in parts.zip(y.chunks_mut(positions * 64 * outputs)) {
        let boards = x.len() / (64 * inputs);
        let spread = &mut spread[..boards * QUARTERS * ALL_SEEN * inputs];
        let products = &mut products[..boards * QUARTERS * ALL_SEEN * LANES];
        spread_out(x, inputs, spread);
        let groups = layer.kernels.chunks_exact(ALL_SEEN * inputs * LANES);
        for ((group, kernels), bias) in groups.enumerate().zip(layer.bias.as_chunks().0) {
            let kernels = kernels.chunks_exact(inputs * LANES);
            let spread = spread.chunks_exact(boards * QUARTERS * inputs);
            let products_of = products.chunks_exact_mut(boards * QUARTERS * LANES);
            for ((spread, kernel), products) in spread.zip(kernels).zip(products_of) {
                if has_fma!() {
                    multiply::<true>(spread, inputs, kernel, products);
                } else {
                    multiply::<false>(spread, inputs, kernel, products);
                }
            }
            gather(products, bias, group * LANES, outputs, y);
        }
    }
}

/// What each quarter of the boards `x` sees, transformed: `[36][quarters][inputs]`.
#[inline(always)]
fn spread_out(x: &[f32], inputs: usize, spread: &mut [f32]) {
    let quarters = spread.len() / (ALL_SEEN * inputs);
    for quarter in 0..quarters {
        let board = &x[quarter / QUARTERS * 64 * inputs..][..64 * inputs];
        let (top, left) = corner(quarter);
        for channel in (0..inputs).step_by(LANES) {
            let rows = [
                seen_of_row(board, inputs, channel, top, left),
                seen_of_row(board, inputs, channel, top + 1, left),
                seen_of_row(board, inputs, channel, top + 2, left),
                seen_of_row(board, inputs, channel, top + 3, left),
                seen_of_row(board, inputs, channel, top + 4, left),
                seen_of_row(board, inputs, channel, top + 5, left),
            ];
            for column in 0..SEEN {
                let transformed = transform_seen(column_of(&rows, column));
                for (row, numbers) in transformed.iter().enumerate() {
                    let place = ((SEEN * row + column) * quarters + quarter) * inputs + channel;
                    spread[place..][..LANES].copy_from_slice(numbers);
                }
            }
        }
    }
}

/// What a quarter sees of a row, transformed. The board's own rows and columns begin at 1, after the border.
#[inline(always)]
fn seen_of_row(
    board: &[f32],
    inputs: usize,
    channel: usize,
    row: usize,
    left: usize,
) -> [Lanes; SEEN] {
    const BORDER: Lanes = [0.0; LANES];
    let mut seen = [&BORDER; SEEN];
    if let 1..=8 = row {
        for (column, numbers) in (left..).zip(&mut seen) {
            if let 1..=8 = column {
                let square = 8 * (row - 1) + column - 1;
                *numbers = &board[square * inputs + channel..].as_chunks().0[0];
            }
        }
    }
    transform_seen(seen)
}

/// One of the 36 products: `[quarters][inputs]` by `[inputs][LANES]`, a board's four quarters at a time, so that
/// their sums stay in registers.
#[inline(always)]
fn multiply<const FUSED: bool>(
    spread: &[f32],
    inputs: usize,
    kernel: &[f32],
    products: &mut [f32],
) {
    let kernel = &kernel.as_chunks().0[..inputs];
    let (products, _) = products.as_chunks_mut::<LANES>();
    let boards = spread.chunks_exact(QUARTERS * inputs);
    for (board, products) in boards.zip(products.as_chunks_mut::<QUARTERS>().0) {
        let mut quarters = [board; QUARTERS];
        for (quarter, numbers) in quarters.iter_mut().enumerate() {
            *numbers = &board[quarter * inputs..][..inputs];
        }
        let mut sums = [[0.0; LANES]; QUARTERS];
        multiply_rows::<QUARTERS, FUSED>(quarters, kernel, &mut sums);
        *products = sums;
    }
}

/// The outputs from `channel` on of all quarters, transformed back.
#[inline(always)]
fn gather(products: &[f32], bias: &Lanes, channel: usize, outputs: usize, y: &mut [f32]) {
    let products = products.as_chunks::<LANES>().0;
    let quarters = products.len() / ALL_SEEN;
    for quarter in 0..quarters {
        let board = &mut y[quarter / QUARTERS * 64 * outputs..][..64 * outputs];
        let (top, left) = corner(quarter);
        let rows = [
            row_back(products, quarters, quarter, 0),
            row_back(products, quarters, quarter, 1),
            row_back(products, quarters, quarter, 2),
            row_back(products, quarters, quarter, 3),
            row_back(products, quarters, quarter, 4),
            row_back(products, quarters, quarter, 5),
        ];
        for column in 0..SIDE {
            let numbers = transform_back(column_of(&rows, column));
            for (row, numbers) in numbers.iter().enumerate() {
                let square = 8 * (top + row) + left + column;
                let output = &mut board[square * outputs + channel..][..LANES];
                for ((output, number), bias) in output.iter_mut().zip(numbers).zip(bias) {
                    *output = number + bias;
                }
            }
        }
    }
}

/// A row of a quarter's products, transformed back.
#[inline(always)]
fn row_back(products: &[Lanes], quarters: usize, quarter: usize, row: usize) -> [Lanes; SIDE] {
    let mut numbers = [&products[0]; SEEN];
    for (column, numbers) in numbers.iter_mut().enumerate() {
        *numbers = &products[(SEEN * row + column) * quarters + quarter];
    }
    transform_back(numbers)
}

/// The first row and column of a quarter.
const fn corner(quarter: usize) -> (usize, usize) {
    (SIDE * (quarter % QUARTERS / 2), SIDE * (quarter % 2))
}

#[inline(always)]
const fn column_of<const COLUMNS: usize>(
    rows: &[[Lanes; COLUMNS]; SEEN],
    column: usize,
) -> [&Lanes; SEEN] {
    let [a, b, c, d, e, f] = rows;
    [
        &a[column], &b[column], &c[column], &d[column], &e[column], &f[column],
    ]
}

/// B' of Lavin and Gray, applied to a row or column.
#[inline(always)]
fn transform_seen(seen: [&Lanes; SEEN]) -> [Lanes; SEEN] {
    let mut transformed = [[0.0; LANES]; SEEN];
    for lane in 0..LANES {
        let (a, b, c) = (seen[0][lane], seen[1][lane], seen[2][lane]);
        let (d, e, f) = (seen[3][lane], seen[4][lane], seen[5][lane]);
        let (even, odd) = (e - 4.0 * c, d - 4.0 * b);
        let (near, far) = (e - c, 2.0 * (d - b));
        transformed[0][lane] = 4.0 * a - 5.0 * c + e;
        transformed[1][lane] = even + odd;
        transformed[2][lane] = even - odd;
        transformed[3][lane] = near + far;
        transformed[4][lane] = near - far;
        transformed[5][lane] = 4.0 * b - 5.0 * d + f;
    }
    transformed
}

/// A' of Lavin and Gray, applied to a row or column.
#[inline(always)]
fn transform_back(products: [&Lanes; SEEN]) -> [Lanes; SIDE] {
    let mut squares = [[0.0; LANES]; SIDE];
    for lane in 0..LANES {
        let (a, b, c) = (products[0][lane], products[1][lane], products[2][lane]);
        let (d, e, f) = (products[3][lane], products[4][lane], products[5][lane]);
        let (even, odd) = (b + c, b - c);
        let (far, far_odd) = (d + e, d - e);
        squares[0][lane] = a + even + far;
        squares[1][lane] = odd + 2.0 * far_odd;
        squares[2][lane] = even + 4.0 * far;
        squares[3][lane] = odd + 8.0 * far_odd + f;
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{convolve as slowly, random};

    fn folded(inputs: usize, outputs: usize, kernel: usize) -> FoldedConvolution {
        let wide = |numbers: Vec<f32>| numbers.into_iter().map(f64::from).collect();
        FoldedConvolution {
            outputs,
            inputs,
            kernel,
            weight: wide(random(outputs * inputs * kernel * kernel, 1)),
            bias: wide(random(outputs, 2)),
        }
    }

    #[test]
    fn boards_are_as_the_definition_computes_them() {
        for (inputs, outputs) in [(16, 16), (32, 48), (64, 32), (128, 16)] {
            let folded = folded(inputs, outputs, 3);
            let (layer, mut workspace) = (Winograd::new(&folded).unwrap(), Workspace::default());
            for positions in [1, 5, 6, 17] {
                let x = random(positions * 64 * inputs, 3);
                let mut y = vec![f32::NAN; positions * 64 * outputs];
                layer.apply(&x, &mut workspace, &mut y);
                // The first and the last board tell.
                for position in [0, positions - 1] {
                    let x = &x[position * 64 * inputs..][..64 * inputs];
                    let by_channel =
                        (0..64 * inputs).map(|i| f64::from(x[i % 64 * inputs + i / 64]));
                    let by_channel: Vec<f64> = by_channel.collect();
                    let expected = slowly(&by_channel, &folded.weight, outputs, 3);
                    for (index, expected) in expected.iter().enumerate() {
                        let (output, square) = (index / 64, index % 64);
                        let found = y[(64 * position + square) * outputs + output];
                        let apart = f64::from(found) - expected - folded.bias[output];
                        assert!(apart.abs() < 3e-4, "{inputs} {positions} {apart}");
                    }
                }
            }
        }
    }

    #[test]
    fn other_kernels_and_channels_are_refused() {
        for (inputs, outputs, kernel) in [(16, 16, 1), (8, 16, 3), (16, 24, 3)] {
            assert!(Winograd::new(&folded(inputs, outputs, kernel)).is_none());
        }
    }
}
