//! Dense layers, and convolutions of 1 x 1 squares, which are dense layers of each square.

use multiversion::multiversion;

use crate::aligned::AlignedVec;
use crate::simd::{LANES, Lanes, has_fma, multiply_rows};

/// Rows that are computed side by side.
const ROWS: usize = 4;

/// A matrix and a bias: `y = x * weight + bias` for each row of `x`.
#[derive(Debug)]
pub struct Dense {
    inputs: usize,
    /// `[outputs / LANES][inputs][LANES]`.
    weight: AlignedVec,
    /// `[outputs]`.
    bias: AlignedVec,
}

impl Dense {
    /// The layer of this bias whose weight from `input` to `output` is `weight(output, input)`. Outputs beyond the bias
    /// are zeros, up to a multiple of [`LANES`].
    pub fn new(inputs: usize, bias: &[f32], weight: impl Fn(usize, usize) -> f32) -> Self {
        let outputs = bias.len().next_multiple_of(LANES);
        let mut padded = AlignedVec::zeros(outputs);
        padded[..bias.len()].copy_from_slice(bias);
        let mut weights = AlignedVec::zeros(outputs * inputs);
        for output in 0..bias.len() {
            let (group, lane) = (output / LANES, output % LANES);
            for input in 0..inputs {
                weights[(group * inputs + input) * LANES + lane] = weight(output, input);
            }
        }
        Self {
            inputs,
            weight: weights,
            bias: padded,
        }
    }

    /// Inputs of each row.
    pub const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Outputs of each row, a multiple of [`LANES`].
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Computes `x`, `[rows][inputs]`, into `y`, `[rows][outputs]`.
    pub fn apply(&self, x: &[f32], y: &mut [f32]) {
        dense(self, x, y);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn dense(layer: &Dense, x: &[f32], y: &mut [f32]) {
    if has_fma!() {
        multiply::<true>(layer, x, y);
    } else {
        multiply::<false>(layer, x, y);
    }
}

/// Group after group of outputs, so that their weights stay in the nearest cache for all rows.
#[inline(always)]
fn multiply<const FUSED: bool>(layer: &Dense, x: &[f32], y: &mut [f32]) {
    let (inputs, outputs) = (layer.inputs, layer.outputs());
    let weights = layer.weight.as_chunks::<LANES>().0.chunks_exact(inputs);
    let groups = weights.zip(layer.bias.as_chunks::<LANES>().0);
    for (group, (weights, bias)) in groups.enumerate() {
        let x = x.chunks(ROWS * inputs);
        for (x, y) in x.zip(y.chunks_mut(ROWS * outputs)) {
            let y = y
                .chunks_exact_mut(outputs)
                .map(|row| &mut row[group * LANES..]);
            if x.len() == ROWS * inputs {
                let mut rows = [x; ROWS];
                for (index, row) in rows.iter_mut().enumerate() {
                    *row = &x[index * inputs..][..inputs];
                }
                let mut sums = [*bias; ROWS];
                multiply_rows::<ROWS, FUSED>(rows, weights, &mut sums);
                y.zip(sums).for_each(|(y, sums)| store(y, &sums));
            } else {
                for (y, row) in y.zip(x.chunks_exact(inputs)) {
                    let mut sums = [*bias];
                    multiply_rows::<1, FUSED>([row], weights, &mut sums);
                    store(y, &sums[0]);
                }
            }
        }
    }
}

#[inline(always)]
fn store(y: &mut [f32], sums: &Lanes) {
    y[..LANES].copy_from_slice(sums);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::random;

    type Compute = fn(&Dense, &[f32], &mut [f32]);

    /// Checks `y`, whose outputs beyond the bias must be zeros.
    fn assert_rows(x: &[f32], y: &[f32], weight: &[f32], bias: &[f32]) {
        let (inputs, outputs) = (
            weight.len() / bias.len(),
            bias.len().next_multiple_of(LANES),
        );
        for (x, y) in x.chunks(inputs).zip(y.chunks(outputs)) {
            for (output, y) in y.iter().enumerate() {
                let expected = bias.get(output).map_or(0.0, |bias| {
                    let row = &weight[output * inputs..][..inputs];
                    let products = row.iter().zip(x);
                    let products = products.map(|(weight, x)| f64::from(*weight) * f64::from(*x));
                    f64::from(*bias) + products.sum::<f64>()
                });
                assert!((f64::from(*y) - expected).abs() < 1e-4, "{y} {expected}");
            }
        }
    }

    /// On whatever processor: with its best instructions, and without any of them, fused and not.
    #[test]
    fn every_number_of_rows_inputs_and_outputs_is_computed() {
        for (inputs, outputs) in [(1, 1), (7, 16), (64, 33), (130, 3)] {
            let (weight, bias) = (random(inputs * outputs, 1), random(outputs, 2));
            let layer = Dense::new(inputs, &bias, |output, input| {
                weight[output * inputs + input]
            });
            for rows in [0, 1, 3, 4, 9] {
                let x = random(rows * inputs, 3);
                let ways: [Compute; 3] = [Dense::apply, multiply::<true>, multiply::<false>];
                for compute in ways {
                    let mut y = vec![f32::NAN; rows * layer.outputs()];
                    compute(&layer, &x, &mut y);
                    assert_rows(&x, &y, &weight, &bias);
                }
            }
        }
    }
}
