//! Passes over activations, as plain loops that the compiler turns into vector instructions for each
//! family of processors.

use rookery_common::network::{self, Activation};
use rookery_model::{ModelError, Weights};

use crate::activation::{Activate, sigmoid, with_activation};
use crate::dense::Dense;
use crate::element::Element;
use crate::simd::{InstructionSet, Instructions, Kernel};

/// The two dense layers of a squeeze-excitation.
#[derive(Debug)]
pub struct SqueezeExcitation {
    activation: Activation,
    squeeze: Dense,
    /// For gamma of each channel, then for beta.
    excite: Dense,
}

impl SqueezeExcitation {
    /// A network's squeeze-excitation, padded with zeros to `channels`.
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
        let rows = get(&layers.squeeze, "weight")?;
        let weight = |unit: usize, channel: usize| match channel < used {
            true => rows[unit * used + channel],
            false => 0.0,
        };
        let squeeze = Dense::new(channels, get(&layers.squeeze, "bias")?, weight);
        let (rows, used_bias) = (get(&layers.excite, "weight")?, get(&layers.excite, "bias")?);
        // Gamma of the used channels, then beta.
        let place = |output: usize| {
            (output % channels < used).then(|| output / channels * used + output % channels)
        };
        let bias = (0..2 * channels).map(|output| place(output).map_or(0.0, |at| used_bias[at]));
        let bias: Vec<f32> = bias.collect();
        let weight = |output: usize, unit: usize| match place(output) {
            Some(output) if unit < units => rows[output * units + unit],
            _ => 0.0,
        };
        Ok(Self {
            activation,
            excite: Dense::new(squeeze.outputs(), &bias, weight),
            squeeze,
        })
    }

    /// Channels, those that are zeros included.
    pub const fn channels(&self) -> usize {
        self.squeeze.inputs()
    }

    /// Multiplications of a position in products of matrices.
    pub(crate) fn products(&self) -> usize {
        self.squeeze.products() + self.excite.products()
    }

    /// `activation(x + sigmoid(gamma) * y + beta)` into `x` and `y`, with gamma and beta of each
    /// position and channel from the layers. Both are `[positions][64][channels]`.
    pub fn apply<N: Element>(&self, y: &mut [N], x: &mut [f32]) {
        self.apply_by(Instructions::best(), y, x);
    }

    pub(crate) fn apply_by<N: Element>(
        &self,
        instructions: Instructions,
        y: &mut [N],
        x: &mut [f32],
    ) {
        let channels = self.channels();
        let positions = x.len() / (64 * channels);
        let mut means = vec![0.0; positions * channels];
        let mut units = vec![0.0; positions * self.squeeze.outputs()];
        let mut gates = vec![0.0; positions * self.excite.outputs()];
        instructions.run(Mean {
            y,
            channels,
            means: &mut means,
        });
        let activation = Some(self.activation);
        self.squeeze
            .apply(instructions, activation, &means, &mut units);
        self.excite.apply(instructions, None, &units, &mut gates);
        instructions.run(Excite {
            activation: self.activation,
            gates: &mut gates,
            gates_of_a_board: self.excite.outputs(),
            channels,
            y,
            x,
        });
    }
}

/// The mean over the 64 squares of each position and channel.
struct Mean<'a, N> {
    y: &'a [N],
    channels: usize,
    means: &'a mut [f32],
}

impl<N: Element> Kernel for Mean<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        let boards = self.y.chunks_exact(64 * self.channels);
        for (board, means) in boards.zip(self.means.chunks_exact_mut(self.channels)) {
            for square in board.chunks_exact(self.channels) {
                for (mean, number) in means.iter_mut().zip(square) {
                    *mean += number.widen();
                }
            }
            means.iter_mut().for_each(|mean| *mean *= 1.0 / 64.0);
        }
    }
}

struct Excite<'a, N> {
    activation: Activation,
    /// `[positions][gates_of_a_board]`, gamma before the sigmoid and beta first.
    gates: &'a mut [f32],
    gates_of_a_board: usize,
    channels: usize,
    y: &'a mut [N],
    x: &'a mut [f32],
}

impl<N: Element> Kernel for Excite<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        with_activation!(self.activation, excite::<_, N>(self));
    }
}

/// `max(x, 0)` for every number.
pub fn relu<N: Element>(numbers: &mut [N]) {
    Instructions::best().run(Rectify(numbers));
}

struct Rectify<'a, N>(&'a mut [N]);

impl<N: Element> Kernel for Rectify<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        for number in self.0 {
            *number = number.relu();
        }
    }
}

/// `max(x + y, 0)` into both.
pub fn add_relu<N: Element>(y: &mut [N], x: &mut [f32]) {
    add_activate(Instructions::best(), Activation::Relu, y, x);
}

/// The activation of `x + y` into both.
pub(crate) fn add_activate<N: Element>(
    instructions: Instructions,
    activation: Activation,
    y: &mut [N],
    x: &mut [f32],
) {
    instructions.run(Add { activation, y, x });
}

struct Add<'a, N> {
    activation: Activation,
    y: &'a mut [N],
    x: &'a mut [f32],
}

impl<N: Element> Kernel for Add<'_, N> {
    #[inline(always)]
    fn run<I: InstructionSet>(self) {
        with_activation!(self.activation, add::<_, N>(self.y, self.x));
    }
}

#[inline(always)]
fn add<A: Activate, N: Element>(y: &mut [N], x: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *x = A::activate(*x + y.widen());
        *y = N::narrow(*x);
    }
}

#[inline(always)]
fn excite<A: Activate, N: Element>(parts: Excite<'_, N>) {
    let Excite {
        gates,
        gates_of_a_board,
        channels,
        y,
        x,
        ..
    } = parts;
    let boards = y.chunks_exact_mut(64 * channels);
    let boards = boards.zip(x.chunks_exact_mut(64 * channels));
    for ((y, x), gates) in boards.zip(gates.chunks_exact_mut(gates_of_a_board)) {
        let (gamma, beta) = gates[..2 * channels].split_at_mut(channels);
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
