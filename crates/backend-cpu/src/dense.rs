//! Dense layers, and convolutions of 1 x 1 squares, which are dense layers of each square.

use std::marker::PhantomData;

use rookery_common::network::Activation;

use crate::activation::{Activate, Identity, with_activation};
use crate::aligned::AlignedVec;
use crate::matrix::{GROUPS, Product};
use crate::simd::{InstructionSet, Instructions, Kernel, LANES};

/// A matrix and a bias: `y = x * weight + bias` for each row of `x`.
#[derive(Debug)]
pub struct Dense {
    inputs: usize,
    /// `[outputs / (GROUPS * LANES)][inputs][GROUPS][LANES]`, the last of them with one group where their number is odd.
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
            let first = group - group % GROUPS;
            let groups = GROUPS.min(outputs / LANES - first);
            for input in 0..inputs {
                let row = first * inputs + input * groups + group % GROUPS;
                weights[row * LANES + lane] = weight(output, input);
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

    /// Multiplications of a row.
    pub(crate) fn products(&self) -> usize {
        self.inputs * self.outputs()
    }

    /// Computes the activation of `x`, `[rows][inputs]`, times the weights, into `y`, `[rows][outputs]`.
    pub(crate) fn apply(
        &self,
        instructions: Instructions,
        activation: Option<Activation>,
        x: &[f32],
        y: &mut [f32],
    ) {
        instructions.run(Compute {
            layer: self,
            activation,
            x,
            y,
        });
    }
}

struct Compute<'a> {
    layer: &'a Dense,
    activation: Option<Activation>,
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Compute<'_> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        match self.activation {
            Some(activation) => with_activation!(activation, compute::<_, I>(self)),
            None => compute::<Identity, I>(self),
        }
    }
}

/// Some groups of outputs after the other, so that their weights stay in the nearest cache for all rows.
#[inline(always)]
fn compute<A: Activate, I: InstructionSet>(Compute { layer, x, y, .. }: Compute<'_>) {
    let (inputs, outputs) = (layer.inputs, layer.outputs());
    let weights = layer.weight.as_chunks::<LANES>().0;
    let (pairs, last) = layer.bias.as_chunks::<LANES>().0.as_chunks::<GROUPS>();
    if x.is_empty() {
        return;
    }
    for (pair, bias) in pairs.iter().enumerate() {
        let weights = &weights.as_chunks::<GROUPS>().0[pair * inputs..][..inputs];
        let y = &mut y[pair * GROUPS * LANES..];
        I::run(Product {
            x,
            weights,
            bias,
            y,
            stride: outputs,
            activation: PhantomData::<A>,
        });
    }
    for bias in last {
        let weights = weights[weights.len() - inputs..].as_chunks::<1>().0;
        I::run(Product {
            x,
            weights,
            bias: &[*bias],
            y: &mut y[outputs - LANES..],
            stride: outputs,
            activation: PhantomData::<A>,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::random;
    use crate::simd::tests::every_set;

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

    #[test]
    fn every_number_of_rows_inputs_and_outputs_is_computed() {
        for (inputs, outputs) in [(1, 1), (7, 16), (64, 33), (130, 3)] {
            let (weight, bias) = (random(inputs * outputs, 1), random(outputs, 2));
            let layer = Dense::new(inputs, &bias, |output, input| {
                weight[output * inputs + input]
            });
            for rows in [0, 1, 3, 4, 9, 12, 33] {
                let x = random(rows * inputs, 3);
                for instructions in every_set() {
                    let mut y = vec![f32::NAN; rows * layer.outputs()];
                    layer.apply(instructions, None, &x, &mut y);
                    assert_rows(&x, &y, &weight, &bias);
                }
            }
        }
    }
}
