//! Products of matrices whose sums stay in registers.
//!
//! The limit is what the processor multiplies: two fused multiplications of a register a cycle, of 8 numbers each with AVX2
//! and of 16 with AVX-512 (AMD's family 25 makes one of 16, so gains nothing by it). For that, eight or more sums must
//! be under way, as each takes four cycles, and no more than two numbers or registers be read a cycle:
//!
//! | registers | rows by groups | sums | read for them |
//! |---|---|---|---|
//! | 32 of 16 numbers | 12 by 2 | 24 | 12 + 2 |
//! | 16 of 8 numbers, two for a group | 2 by 2 | 8 | 2 + 4 |
//! | other | 4 by 1 | | |

use std::marker::PhantomData;

use crate::activation::Activate;
use crate::simd::{InstructionSet, Kernel, LANES, Lanes};

/// Groups of [`LANES`] outputs whose weights lie together, but for the last where their number is odd.
pub(crate) const GROUPS: usize = 2;

/// Computes the activation of `x`, `[rows][inputs]`, times `weights` plus the bias, into rows of `y`, one of which begins
/// every `stride` numbers.
pub(crate) struct Product<'a, A, const GROUPS: usize> {
    pub(crate) x: &'a [f32],
    pub(crate) weights: &'a [[Lanes; GROUPS]],
    pub(crate) bias: &'a [Lanes; GROUPS],
    pub(crate) y: &'a mut [f32],
    pub(crate) stride: usize,
    pub(crate) activation: PhantomData<A>,
}

impl<A: Activate, const GROUPS: usize> Kernel for Product<'_, A, GROUPS> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let Self {
            x,
            weights,
            bias,
            y,
            stride,
            ..
        } = self;
        let inputs = weights.len();
        let rows = x.len() / inputs;
        let mut row = 0;
        macro_rules! multiply_rows {
            ($rows:literal by $groups:ident) => {
                while rows - row >= $rows {
                    let (x, y) = (&x[row * inputs..], &mut y[row * stride..]);
                    multiply_rows::<A, I, $rows, $groups, GROUPS>(x, weights, bias, y, stride);
                    row += $rows;
                }
            };
        }
        if I::VECTORS >= 32 {
            multiply_rows!(12 by GROUPS);
            multiply_rows!(8 by GROUPS);
            multiply_rows!(4 by GROUPS);
        } else if I::VECTORS >= 8 && GROUPS == 2 {
            multiply_rows!(2 by GROUPS);
        } else {
            multiply_rows!(4 by ONE);
        }
        multiply_rows!(1 by GROUPS);
    }
}

const ONE: usize = 1;

/// The first `ROWS` rows of a [`Product`], `TOGETHER` groups at a time.
#[inline(always)]
fn multiply_rows<
    A: Activate,
    I: InstructionSet,
    const ROWS: usize,
    const TOGETHER: usize,
    const GROUPS: usize,
>(
    x: &[f32],
    weights: &[[Lanes; GROUPS]],
    bias: &[Lanes; GROUPS],
    y: &mut [f32],
    stride: usize,
) {
    let inputs = weights.len();
    let mut rows = [x; ROWS];
    for (index, row) in rows.iter_mut().enumerate() {
        *row = &x[index * inputs..][..inputs];
    }
    for part in 0..GROUPS / TOGETHER {
        let mut sums = [load::<I, TOGETHER>(&bias[part * TOGETHER..]); ROWS];
        for (input, weights) in weights.iter().enumerate() {
            let weights = load::<I, TOGETHER>(&weights[part * TOGETHER..]);
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let number = I::splat(row[input]);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = I::multiply_add(number, weights, *sum);
                }
            }
        }
        let y = y[part * TOGETHER * LANES..].chunks_mut(stride);
        for (sums, y) in sums.into_iter().zip(y) {
            for (sum, y) in sums.into_iter().zip(y.as_chunks_mut::<LANES>().0) {
                I::store(sum, y);
                y.iter_mut().for_each(|y| *y = A::activate(*y));
            }
        }
    }
}

#[inline(always)]
fn load<I: InstructionSet, const COUNT: usize>(numbers: &[Lanes]) -> [I::Vector; COUNT] {
    let mut vectors = [I::splat(0.0); COUNT];
    for (vector, numbers) in vectors.iter_mut().zip(numbers) {
        *vector = I::load(numbers);
    }
    vectors
}
