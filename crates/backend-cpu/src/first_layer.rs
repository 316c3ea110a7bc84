//! The first convolution, straight from packed planes.
//!
//! Some forty of a position's 6,656 bits say something that the others do not: pieces stand where they stood a move
//! before. So, instead of multiplying 112 planes, mostly zeros, by their weights, sums of weights are added up, as
//! chess engines do it in their first layers (NNUE; Nasu 2018). A plane shows one kind of thing on one of the boards that
//! the input remembers, newest first, and the weights of a kind are summed over the boards in advance: a piece that was on a
//! square on boards 0 to 7 costs as much as one on board 0.
//!
//! ```text
//! boards      0 1 2 3 4 5 6 7
//! a piece     . . . 1 1 1 1 1     left the square three boards ago: + sum of all eight - sum of the first three
//! ```
//!
//! Sums are in 32 bits whatever the numbers of the layers behind.

use rookery_common::encoding::InputEncoding;
use rookery_common::network::Activation;
use rookery_engine::Batch;
use rookery_model::FoldedConvolution;

use crate::activation::{Activate, with_activation};
use crate::element::Element;
use crate::simd::{InstructionSet, Instructions, Kernel};

/// The input convolution with its normalisation and the activation behind it.
#[derive(Debug)]
pub struct FirstLayer {
    activation: Activation,
    channels: usize,
    /// Kinds of things that a board's planes show.
    kinds: usize,
    /// Boards that the input remembers.
    boards: usize,
    /// Kernels summed over the newest boards: `[kinds][1..=boards][3][3][channels]`. A kernel's squares are those that
    /// a plane's square contributes to.
    sums: Vec<f32>,
    /// What a plane of ones contributes, scalar planes divided by their scales: `[planes][9][channels]`, for the
    /// squares of each [`region`].
    full: Vec<f32>,
    bias: Vec<f32>,
}

/// Squares of a kernel, and kinds of squares: those in a corner or at an edge see fewer.
const NINE: usize = 9;

/// Which of the nine kinds a square is: row by row, in the corner below left, at the lower edge, and so on.
const fn region(square: usize) -> usize {
    const fn side(line: usize) -> usize {
        match line {
            0 => 0,
            7 => 2,
            _ => 1,
        }
    }
    3 * side(square / 8) + side(square % 8)
}

impl FirstLayer {
    /// The convolution of an encoding's planes.
    pub fn new(folded: &FoldedConvolution, input: InputEncoding, activation: Activation) -> Self {
        let FoldedConvolution {
            outputs: channels,
            inputs: planes,
            ..
        } = *folded;
        let mut kernels = vec![0.0; folded.weight.len()];
        for (index, weight) in folded.weight.iter().enumerate() {
            let (channel, plane, tap) =
                (index / (planes * NINE), index / NINE % planes, index % NINE);
            // As the squares that a square contributes to see it, so the other way round.
            kernels[(plane * NINE + NINE - 1 - tap) * channels + channel] = *weight as f32;
        }
        let kinds = planes_of_a_board(input);
        let boards = input.binary_planes() / kinds;
        Self {
            activation,
            channels,
            kinds,
            boards,
            sums: sums(&kernels, kinds, boards, channels),
            full: full(&kernels, input.scalar_scales(), channels),
            bias: folded.bias.iter().map(|bias| *bias as f32).collect(),
        }
    }

    /// Channels that the layer gives.
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// What the layer makes of a batch, into `wide` and, if it is given, rounded into `narrow`, both
    /// `[positions][64][channels]`.
    pub fn apply<N: Element>(&self, batch: &Batch, wide: &mut [f32], narrow: Option<&mut [N]>) {
        self.apply_by(Instructions::best(), batch, wide, narrow);
    }

    pub(crate) fn apply_by<N: Element>(
        &self,
        instructions: Instructions,
        batch: &Batch,
        wide: &mut [f32],
        narrow: Option<&mut [N]>,
    ) {
        let layer = self;
        instructions.run(AddUp {
            layer,
            batch,
            wide,
            narrow,
        });
    }

    /// What a plane of ones contributes to the regions.
    fn full(&self, plane: usize) -> &[f32] {
        let size = NINE * self.channels;
        &self.full[plane * size..][..size]
    }

    /// The kernel of a kind, summed over this number of boards.
    fn sum(&self, kind: usize, boards: usize) -> &[f32] {
        let size = NINE * self.channels;
        &self.sums[(kind * self.boards + boards - 1) * size..][..size]
    }
}

/// Binary planes of one board.
fn planes_of_a_board(input: InputEncoding) -> usize {
    match input {
        InputEncoding::Lc0112 => 13,
        InputEncoding::Az119 => 14,
        InputEncoding::Classic19 => input.binary_planes(),
    }
}

/// [`FirstLayer::sums`] of kernels `[planes][3][3][channels]`.
fn sums(kernels: &[f32], kinds: usize, boards: usize, channels: usize) -> Vec<f32> {
    let size = NINE * channels;
    let mut sums = Vec::with_capacity(kinds * boards * size);
    for kind in 0..kinds {
        let mut sum = vec![0.0; size];
        for board in 0..boards {
            let kernel = &kernels[(board * kinds + kind) * size..][..size];
            sum.iter_mut()
                .zip(kernel)
                .for_each(|(sum, tap)| *sum += tap);
            sums.extend_from_slice(&sum);
        }
    }
    sums
}

/// [`FirstLayer::full`] of kernels `[planes][3][3][channels]`; those of the scalar planes come last.
fn full(kernels: &[f32], scales: &[f32], channels: usize) -> Vec<f32> {
    let planes = kernels.len() / (NINE * channels);
    let binary = planes - scales.len();
    let mut full = vec![0.0; kernels.len()];
    let sized = full.chunks_exact_mut(NINE * channels);
    for (plane, (full, kernel)) in sized.zip(kernels.chunks_exact(NINE * channels)).enumerate() {
        let scale = if plane < binary {
            1.0
        } else {
            scales[plane - binary]
        };
        for (region, full) in full.chunks_exact_mut(channels).enumerate() {
            for (tap, weights) in kernel.chunks_exact(channels).enumerate() {
                if reaches(tap, region) {
                    full.iter_mut()
                        .zip(weights)
                        .for_each(|(full, weight)| *full += weight / scale);
                }
            }
        }
    }
    full
}

/// Whether a square of this region lies beside one of the board that contributes to it by this tap.
const fn reaches(tap: usize, region: usize) -> bool {
    const fn along(tap: usize, side: usize) -> bool {
        // The first tap reaches the line before, which the last line has no neighbour behind for.
        !matches!((tap, side), (0, 2) | (2, 0))
    }
    along(tap / 3, region / 3) && along(tap % 3, region % 3)
}

struct AddUp<'a, N> {
    layer: &'a FirstLayer,
    batch: &'a Batch,
    wide: &'a mut [f32],
    narrow: Option<&'a mut [N]>,
}

impl<N: Element> Kernel for AddUp<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let Self {
            layer,
            batch,
            wide,
            narrow,
        } = self;
        with_activation!(
            layer.activation,
            first_layer::<_, N>(layer, batch, wide, narrow)
        );
    }
}

/// Computes the layer into `wide`, and into `narrow` if it is given, both `[positions][64][channels]`.
#[inline(always)]
fn first_layer<A: Activate, N: Element>(
    layer: &FirstLayer,
    batch: &Batch,
    wide: &mut [f32],
    mut narrow: Option<&mut [N]>,
) {
    let size = 64 * layer.channels;
    let mut regions = vec![0.0; NINE * layer.channels];
    for (index, board) in wide.chunks_exact_mut(size).enumerate() {
        let binary = batch.binary_of(index);
        everywhere(layer, binary, batch.scalars_of(index), &mut regions);
        for (square, numbers) in board.chunks_exact_mut(layer.channels).enumerate() {
            numbers.copy_from_slice(&regions[region(square) * layer.channels..][..layer.channels]);
        }
        for kind in 0..layer.kinds {
            somewhere(layer, kind, binary, board);
        }
        board
            .iter_mut()
            .for_each(|number| *number = A::activate(*number));
        if let Some(narrow) = narrow.as_deref_mut() {
            let narrow = narrow[index * size..][..size].iter_mut();
            narrow
                .zip(board)
                .for_each(|(narrow, wide)| *narrow = N::narrow(*wide));
        }
    }
}

/// What the bias and planes that are the same on all squares contribute, to each region.
#[inline(always)]
fn everywhere(layer: &FirstLayer, binary: &[u64], scalars: &[f32], regions: &mut [f32]) {
    for region in regions.chunks_exact_mut(layer.channels) {
        region.copy_from_slice(&layer.bias);
    }
    let mut add = |plane: usize, number: f32| {
        for (sum, weight) in regions.iter_mut().zip(layer.full(plane)) {
            *sum += number * weight;
        }
    };
    let filled = binary.iter().enumerate().filter(|(_, word)| **word == !0);
    filled.for_each(|(plane, _)| add(plane, 1.0));
    let counted = scalars
        .iter()
        .enumerate()
        .filter(|(_, count)| **count != 0.0);
    counted.for_each(|(plane, count)| add(binary.len() + plane, *count));
}

/// What things of a kind contribute, wherever they stand or stood.
#[inline(always)]
fn somewhere(layer: &FirstLayer, kind: usize, binary: &[u64], board: &mut [f32]) {
    // Full planes are everywhere, and beyond the oldest board there is nothing.
    let squares = |back: usize| match binary.get(back * layer.kinds + kind) {
        Some(word) if *word != !0 && back < layer.boards => *word,
        _ => 0,
    };
    let mut newer = squares(0);
    for back in 1..=layer.boards {
        let older = squares(back);
        let kernel = layer.sum(kind, back);
        lay(kernel, 1.0, newer & !older, board);
        lay(kernel, -1.0, older & !newer, board);
        newer = older;
    }
}

/// Adds `sign` times a kernel `[3][3][channels]` around each of these squares, as far as it lies on the board.
#[inline(always)]
fn lay(kernel: &[f32], sign: f32, mut squares: u64, board: &mut [f32]) {
    let channels = kernel.len() / NINE;
    while squares != 0 {
        let square = squares.trailing_zeros() as usize;
        squares &= squares - 1;
        let (row, column) = (square / 8, square % 8);
        let (left, right) = (column.saturating_sub(1), (column + 1).min(7));
        let width = (right - left + 1) * channels;
        let skipped = (left + 1 - column) * channels;
        for other in row.saturating_sub(1)..=(row + 1).min(7) {
            let taps = &kernel[(other + 1 - row) * 3 * channels + skipped..][..width];
            let reached = &mut board[(8 * other + left) * channels..][..width];
            for (sum, tap) in reached.iter_mut().zip(taps) {
                *sum += sign * tap;
            }
        }
    }
}
