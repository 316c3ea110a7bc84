//! Passes over activations, as plain loops that the compiler turns into vector instructions for each
//! family of processors.

use multiversion::multiversion;
use rookery_common::network::{self, Activation};
use rookery_model::{ModelError, Weights};

use crate::activation::{Activate, sigmoid, with_activation};
use crate::element::Element;

/// The two dense layers of a squeeze-excitation, weights transposed: a row for each input.
#[derive(Debug)]
pub struct SqueezeExcitation {
    activation: Activation,
    /// `[channels][units]`.
    squeeze: Vec<f32>,
    /// `[units]`.
    squeeze_bias: Vec<f32>,
    /// `[units][2 * channels]`.
    excite: Vec<f32>,
    /// `[2 * channels]`: for gamma, then for beta.
    excite_bias: Vec<f32>,
}

impl SqueezeExcitation {
    /// A network's squeeze-excitation, on `channels` of which those beyond the layer's are zeros.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`] if the network has no such layer.
    pub fn new(
        weights: &Weights,
        layers: &network::SqueezeExcitation,
        activation: Activation,
        channels: usize,
    ) -> Result<Self, ModelError> {
        let get = |layer: &network::Dense, part: &str| -> Result<&[f32], ModelError> {
            Ok(weights.get(&format!("{}.{part}", layer.name))?.values())
        };
        let (used, units) = (
            layers.squeeze.inputs as usize,
            layers.squeeze.outputs as usize,
        );
        let mut squeeze = vec![0.0; channels * units];
        for (unit, row) in get(&layers.squeeze, "weight")?
            .chunks_exact(used)
            .enumerate()
        {
            for (channel, weight) in row.iter().enumerate() {
                squeeze[channel * units + unit] = *weight;
            }
        }
        let mut excite = vec![0.0; units * 2 * channels];
        let mut excite_bias = vec![0.0; 2 * channels];
        let rows = get(&layers.excite, "weight")?.chunks_exact(units);
        for (output, (row, bias)) in rows.zip(get(&layers.excite, "bias")?).enumerate() {
            // Gamma of the used channels, then beta.
            let place = output / used * channels + output % used;
            excite_bias[place] = *bias;
            for (unit, weight) in row.iter().enumerate() {
                excite[unit * 2 * channels + place] = *weight;
            }
        }
        Ok(Self {
            activation,
            squeeze,
            squeeze_bias: get(&layers.squeeze, "bias")?.to_vec(),
            excite,
            excite_bias,
        })
    }

    /// Channels, those that are zeros included.
    pub const fn channels(&self) -> usize {
        self.excite_bias.len() / 2
    }

    /// `activation(x + sigmoid(gamma) * y + beta)` into `x` and `y`, with gamma and beta of each
    /// position and channel from the layers. Both are `[positions][64][channels]`.
    pub fn apply<N: Element>(&self, y: &mut [N], x: &mut [f32]) {
        with_activation!(self.activation, excite::<_, N>(self, y, x));
    }
}

/// `max(x, 0)` for every number.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
pub fn relu<N: Element>(numbers: &mut [N]) {
    for number in numbers {
        *number = number.relu();
    }
}

/// `max(x + y, 0)` into both.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
pub fn add_relu<N: Element>(y: &mut [N], x: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *x = (*x + y.widen()).relu();
        *y = N::narrow(*x);
    }
}

/// The activation of every number.
pub(crate) fn activate(activation: Activation, numbers: &mut [f32]) {
    with_activation!(activation, activate_all::<_>(numbers));
}

/// The activation of `x + y` into `x`.
pub(crate) fn add_activate(activation: Activation, x: &mut [f32], y: &[f32]) {
    with_activation!(activation, add_all::<_>(x, y));
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn activate_all<A: Activate>(numbers: &mut [f32]) {
    for number in numbers {
        *number = A::activate(*number);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn add_all<A: Activate>(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x = A::activate(*x + y);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2+fma"))]
fn excite<A: Activate, N: Element>(layers: &SqueezeExcitation, y: &mut [N], x: &mut [f32]) {
    let channels = layers.channels();
    let mut means = vec![0.0; channels];
    let mut units = vec![0.0; layers.squeeze_bias.len()];
    let mut both = vec![0.0; 2 * channels];
    let boards = y.chunks_exact_mut(64 * channels);
    for (y, x) in boards.zip(x.chunks_exact_mut(64 * channels)) {
        mean(y, &mut means);
        dense(&means, &layers.squeeze, &layers.squeeze_bias, &mut units);
        units.iter_mut().for_each(|unit| *unit = A::activate(*unit));
        dense(&units, &layers.excite, &layers.excite_bias, &mut both);
        let (gamma, beta) = both.split_at_mut(channels);
        gamma.iter_mut().for_each(|gamma| *gamma = sigmoid(*gamma));
        let squares = y.chunks_exact_mut(channels);
        for (y, x) in squares.zip(x.chunks_exact_mut(channels)) {
            for (((y, x), gamma), beta) in y.iter_mut().zip(x).zip(&*gamma).zip(&*beta) {
                *x = A::activate(*x + gamma * y.widen() + beta);
                *y = N::narrow(*x);
            }
        }
    }
}

/// The mean over the 64 squares of each channel.
#[inline(always)]
fn mean<N: Element>(board: &[N], means: &mut [f32]) {
    means.fill(0.0);
    for square in board.chunks_exact(means.len()) {
        for (mean, number) in means.iter_mut().zip(square) {
            *mean += number.widen();
        }
    }
    means.iter_mut().for_each(|mean| *mean *= 1.0 / 64.0);
}

/// `bias + input * weight`, the weight being `[input][output]`.
#[inline(always)]
fn dense(input: &[f32], weight: &[f32], bias: &[f32], output: &mut [f32]) {
    output.copy_from_slice(bias);
    for (input, row) in input.iter().zip(weight.chunks_exact(bias.len())) {
        for (output, weight) in output.iter_mut().zip(row) {
            *output += input * weight;
        }
    }
}
