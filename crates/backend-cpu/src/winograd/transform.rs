//! The transforms of Lavin and Gray.

use super::{ALL_SEEN, SEEN, SIDE};
use crate::simd::InstructionSet;

/// G of Lavin and Gray.
const KERNEL: [[f64; 3]; SEEN] = [
    [0.25, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// G g G' of Lavin and Gray.
pub(super) fn transform_kernel(kernel: &[f64; 9]) -> [f64; ALL_SEEN] {
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

/// B' of Lavin and Gray, applied to a row or column.
#[inline(always)]
pub(super) fn transform_seen<I: InstructionSet>(
    [a, b, c, d, e, f]: [I::Vector; SEEN],
) -> [I::Vector; SEEN] {
    let add_times = |factor: f32, x, y| I::multiply_add(I::splat(factor), x, y);
    let (even, odd) = (add_times(-4.0, c, e), add_times(-4.0, b, d));
    let (near, far) = (I::subtract(e, c), I::subtract(d, b));
    [
        add_times(4.0, a, add_times(-5.0, c, e)),
        I::add(even, odd),
        I::subtract(even, odd),
        add_times(2.0, far, near),
        add_times(-2.0, far, near),
        add_times(4.0, b, add_times(-5.0, d, f)),
    ]
}

/// A' of Lavin and Gray, applied to a row or column.
#[inline(always)]
pub(super) fn transform_back<I: InstructionSet>(
    [a, b, c, d, e, f]: [I::Vector; SEEN],
) -> [I::Vector; SIDE] {
    let add_times = |factor: f32, x, y| I::multiply_add(I::splat(factor), x, y);
    let (even, odd) = (I::add(b, c), I::subtract(b, c));
    let (far, far_odd) = (I::add(d, e), I::subtract(d, e));
    [
        I::add(I::add(a, even), far),
        add_times(2.0, far_odd, odd),
        add_times(4.0, far, even),
        I::add(add_times(8.0, far_odd, odd), f),
    ]
}
