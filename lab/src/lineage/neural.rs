//! Small networks with one output: dense layers and convolutions on a board, mean squared error, Adam (Kingma and Ba,
//! arXiv 1412.6980).

use std::path::Path;

use anyhow::Context as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
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

impl Layer {
    const fn inputs(self) -> usize {
        match self {
            Self::Dense { inputs, .. } => inputs,
            Self::Convolution { inputs, .. } => inputs * SQUARES,
        }
    }

    const fn outputs(self) -> usize {
        match self {
            Self::Dense { outputs, .. } => outputs,
            Self::Convolution { outputs, .. } => outputs * SQUARES,
        }
    }

    /// Inputs of each output.
    const fn fan_in(self) -> usize {
        match self {
            Self::Dense { inputs, .. } => inputs,
            Self::Convolution { inputs, .. } => inputs * 9,
        }
    }

    /// Weights, all of an output together, before the biases.
    const fn weights(self) -> usize {
        match self {
            Self::Dense {
                inputs, outputs, ..
            } => inputs * outputs,
            Self::Convolution { inputs, outputs } => 9 * inputs * outputs,
        }
    }

    const fn biases(self) -> usize {
        match self {
            Self::Dense { outputs, .. } | Self::Convolution { outputs, .. } => outputs,
        }
    }

    const fn parameters(self) -> usize {
        self.weights() + self.biases()
    }

    const fn is_rectified(self) -> bool {
        matches!(
            self,
            Self::Dense { relu: true, .. } | Self::Convolution { .. }
        )
    }

    fn forward(self, parameters: &[f32], input: &[f32]) -> Vec<f32> {
        let (weights, biases) = parameters.split_at(self.weights());
        let mut output = vec![0.0; self.outputs()];
        match self {
            Self::Dense { inputs, .. } => {
                for ((out, row), bias) in output
                    .iter_mut()
                    .zip(weights.chunks_exact(inputs))
                    .zip(biases)
                {
                    *out = bias + row.iter().zip(input).map(|(w, x)| w * x).sum::<f32>();
                }
            }
            Self::Convolution { inputs, .. } => {
                for ((plane, kernels), bias) in output
                    .chunks_exact_mut(SQUARES)
                    .zip(weights.chunks_exact(9 * inputs))
                    .zip(biases)
                {
                    plane.fill(*bias);
                    for (seen, kernel) in input.chunks_exact(SQUARES).zip(kernels.chunks_exact(9)) {
                        for (tap, weight) in kernel.iter().enumerate() {
                            each_row(tap, |to, from| {
                                for (out, x) in plane[to].iter_mut().zip(&seen[from]) {
                                    *out += weight * x;
                                }
                            });
                        }
                    }
                }
            }
        }
        if self.is_rectified() {
            output.iter_mut().for_each(|out| *out = out.max(0.0));
        }
        output
    }

    /// Adds to `gradient` what the layer's parameters do to the loss, and gives what its input does.
    fn backward(
        self,
        parameters: &[f32],
        (input, output): (&[f32], &[f32]),
        mut delta: Vec<f32>,
        gradient: &mut [f32],
    ) -> Vec<f32> {
        if self.is_rectified() {
            for (delta, out) in delta.iter_mut().zip(output) {
                if *out <= 0.0 {
                    *delta = 0.0;
                }
            }
        }
        let (weights, _) = parameters.split_at(self.weights());
        let (weight_gradient, bias_gradient) = gradient.split_at_mut(self.weights());
        let mut before = vec![0.0; self.inputs()];
        match self {
            Self::Dense { inputs, .. } => {
                for (out, delta) in delta.iter().enumerate() {
                    bias_gradient[out] += delta;
                    let row = out * inputs..(out + 1) * inputs;
                    for (gradient, x) in weight_gradient[row.clone()].iter_mut().zip(input) {
                        *gradient += delta * x;
                    }
                    for (before, weight) in before.iter_mut().zip(&weights[row]) {
                        *before += delta * weight;
                    }
                }
            }
            Self::Convolution { inputs, .. } => {
                for (out, delta) in delta.chunks_exact(SQUARES).enumerate() {
                    bias_gradient[out] += delta.iter().sum::<f32>();
                    for plane in 0..inputs {
                        let squares = plane * SQUARES..(plane + 1) * SQUARES;
                        for tap in 0..9 {
                            let place = (out * inputs + plane) * 9 + tap;
                            each_row(tap, |to, from| {
                                let seen = &input[squares.clone()][from.clone()];
                                let sum: f32 =
                                    delta[to.clone()].iter().zip(seen).map(|(d, x)| d * x).sum();
                                weight_gradient[place] += sum;
                                let back = &mut before[squares.clone()][from];
                                for (before, delta) in back.iter_mut().zip(&delta[to]) {
                                    *before += delta * weights[place];
                                }
                            });
                        }
                    }
                }
            }
        }
        before
    }
}

/// The rows of squares that a tap of a kernel, 0 to 8, adds to, and those that it reads.
fn each_row(tap: usize, mut row: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
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

/// A network whose last layer has one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    layers: Vec<Layer>,
    parameters: Vec<f32>,
}

impl Network {
    /// A network of random weights (He initialisation), which follow from the seed.
    pub fn new(layers: Vec<Layer>, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut parameters = Vec::new();
        for layer in &layers {
            let bound = (6.0 / layer.fan_in() as f32).sqrt();
            parameters.extend((0..layer.weights()).map(|_| rng.random_range(-bound..bound)));
            parameters.extend(std::iter::repeat_n(0.0, layer.biases()));
        }
        Self { layers, parameters }
    }

    /// Whether layers and parameters fit, for networks that were read.
    fn check(&self, inputs: usize) -> anyhow::Result<()> {
        let joined = self
            .layers
            .windows(2)
            .all(|pair| pair[0].outputs() == pair[1].inputs());
        let ends = [
            self.layers.first().map(|l| l.inputs()),
            self.layers.last().map(|l| l.outputs()),
        ];
        anyhow::ensure!(
            joined && ends == [Some(inputs), Some(1)],
            "its layers do not fit together"
        );
        let count: usize = self.layers.iter().map(|layer| layer.parameters()).sum();
        let finite = self.parameters.iter().all(|number| number.is_finite());
        anyhow::ensure!(
            count == self.parameters.len() && finite,
            "its parameters are not those of its layers"
        );
        Ok(())
    }

    /// The input, then each layer's output.
    fn activations(&self, input: &[f32]) -> Vec<Vec<f32>> {
        let mut activations = vec![input.to_vec()];
        let mut place = 0;
        for layer in &self.layers {
            let parameters = &self.parameters[place..place + layer.parameters()];
            let output = layer.forward(parameters, &activations[activations.len() - 1]);
            activations.push(output);
            place += layer.parameters();
        }
        activations
    }

    /// The output for an input.
    pub fn value(&self, input: &[f32]) -> f32 {
        self.activations(input)
            .last()
            .map_or(0.0, |output| output[0])
    }

    /// Adds to `gradient` the squared error's, and gives that error.
    fn add_gradient(&self, input: &[f32], target: f32, gradient: &mut [f32]) -> f32 {
        let activations = self.activations(input);
        let error = activations[self.layers.len()][0] - target;
        let mut delta = vec![2.0 * error];
        let mut end = self.parameters.len();
        for (layer, ends) in self.layers.iter().zip(activations.windows(2)).rev() {
            let own = end - layer.parameters()..end;
            end = own.start;
            delta = layer.backward(
                &self.parameters[own.clone()],
                (&ends[0], &ends[1]),
                delta,
                &mut gradient[own],
            );
        }
        error * error
    }

    /// The mean squared error over examples, 0 of none.
    pub fn loss(&self, examples: &[Example]) -> f32 {
        let squares = examples
            .iter()
            .map(|one| (self.value(&one.input) - one.target).powi(2));
        squares.sum::<f32>() / examples.len().max(1) as f32
    }
}

/// An input and what the output should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The input.
    pub input: Vec<f32>,
    /// The output.
    pub target: f32,
}

/// Adam's state for one network.
#[derive(Debug, Clone)]
pub struct Adam {
    rate: f32,
    steps: i32,
    gradient: Vec<f32>,
    means: Vec<f32>,
    squares: Vec<f32>,
}

impl Adam {
    /// A fresh state, with this learning rate.
    pub fn new(network: &Network, rate: f32) -> Self {
        let zeros = vec![0.0; network.parameters.len()];
        Self {
            rate,
            steps: 0,
            gradient: zeros.clone(),
            means: zeros.clone(),
            squares: zeros,
        }
    }

    /// One step on a batch, and the mean squared error before it.
    pub fn step<'a>(
        &mut self,
        network: &mut Network,
        batch: impl IntoIterator<Item = &'a Example>,
    ) -> f32 {
        self.gradient.fill(0.0);
        let (mut loss, mut count) = (0.0, 0.0_f32);
        for one in batch {
            loss += network.add_gradient(&one.input, one.target, &mut self.gradient);
            count += 1.0;
        }
        let count = count.max(1.0);
        self.steps += 1;
        let correct = [0.9_f32, 0.999].map(|beta| 1.0 - beta.powi(self.steps));
        let moments = self.means.iter_mut().zip(&mut self.squares);
        for ((parameter, gradient), (mean, square)) in network
            .parameters
            .iter_mut()
            .zip(&self.gradient)
            .zip(moments)
        {
            let gradient = gradient / count;
            *mean += 0.1 * (gradient - *mean);
            *square += 0.001 * (gradient * gradient - *square);
            *parameter -= self.rate * (*mean / correct[0]) / ((*square / correct[1]).sqrt() + 1e-8);
        }
        loss / count
    }
}

/// A trained agent that has one network.
pub trait Trained: Serialize + DeserializeOwned {
    /// What messages call its kind.
    const KIND: &'static str;

    /// Its network, and the inputs that this must have.
    fn network(&self) -> (&Network, usize);
}

/// Writes an agent to a file, as JSON.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write<T: Trained>(agent: &T, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_vec(agent).context("the agent has no text")?;
    rookery_model::files::write_whole(path, &text)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Reads an agent from a file.
///
/// # Errors
///
/// If it cannot be read, or is of another kind.
pub fn read<T: Trained>(path: &Path) -> anyhow::Result<T> {
    let cannot = || format!("cannot read the {} agent {}", T::KIND, path.display());
    let bytes = std::fs::read(path).with_context(cannot)?;
    let hint = || {
        format!(
            "it is no file that `rookery-lab train {}` has written",
            T::KIND
        )
    };
    let agent: T = serde_json::from_slice(&bytes)
        .with_context(hint)
        .with_context(cannot)?;
    let (network, inputs) = agent.network();
    network.check(inputs).with_context(cannot)?;
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(inputs: usize, outputs: usize, relu: bool) -> Layer {
        Layer::Dense {
            inputs,
            outputs,
            relu,
        }
    }

    #[test]
    fn a_dense_network_computes_what_its_layers_say() {
        let network = Network {
            layers: vec![dense(2, 2, true), dense(2, 1, false)],
            parameters: vec![1.0, 2.0, -1.0, 1.0, 0.5, -4.0, 3.0, 7.0, -1.0],
        };
        // 1 + 4 + 0.5 = 5.5; -1 + 2 - 4 = -3, cut to 0; 3 * 5.5 + 7 * 0 - 1 = 15.5.
        assert_eq!(network.value(&[1.0, 2.0]), 15.5);
        let mut gradient = vec![0.0; 9];
        let loss = network.add_gradient(&[1.0, 2.0], 15.0, &mut gradient);
        assert_eq!(loss, 0.25);
        // The error 0.5 doubled is 1: times 3 into the first unit, nothing into the second.
        assert_eq!(gradient, [3.0, 6.0, 0.0, 0.0, 3.0, 0.0, 5.5, 0.0, 1.0]);
    }

    #[test]
    fn a_convolution_sees_the_squares_around_and_zeros_beyond_the_board() {
        let layer = Layer::Convolution {
            inputs: 1,
            outputs: 1,
        };
        let mut board = vec![0.0; 64];
        (board[0], board[9]) = (1.0, 10.0);
        let kernel = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0];
        let output = layer.forward(&kernel, &board);
        // a1 has itself in the middle (5) and b2 after it (9); b2 has a1 before it (1).
        assert_eq!((output[0], output[9]), (5.0 + 90.0, 1.0 + 50.0));
        // h1 sees neither: no square goes around the board.
        assert_eq!(output[7], 0.0);
    }

    #[test]
    fn gradients_are_those_of_small_changes() {
        let layers = vec![
            Layer::Convolution {
                inputs: 2,
                outputs: 3,
            },
            Layer::Convolution {
                inputs: 3,
                outputs: 2,
            },
            dense(128, 4, true),
            dense(4, 1, false),
        ];
        let mut network = Network::new(layers, 3);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let input: Vec<f32> = (0..128).map(|_| rng.random_range(-1.0..1.0)).collect();
        let mut gradient = vec![0.0; network.parameters.len()];
        network.add_gradient(&input, 0.3, &mut gradient);
        for place in (0..gradient.len()).step_by(17) {
            let (kept, step) = (network.parameters[place], 1e-3);
            let mut error = |parameter: f32| {
                network.parameters[place] = parameter;
                f64::from((network.value(&input) - 0.3).powi(2))
            };
            let slope = (error(kept + step) - error(kept - step)) / f64::from(2.0 * step);
            network.parameters[place] = kept;
            let found = f64::from(gradient[place]);
            assert!(
                (slope - found).abs() < 0.02 * (1.0 + slope.abs()),
                "{place}: {slope} {found}"
            );
        }
    }

    #[test]
    fn adam_begins_with_steps_of_its_rate_and_learns() {
        let mut network = Network {
            layers: vec![dense(1, 1, false)],
            parameters: vec![0.0, 0.0],
        };
        let mut adam = Adam::new(&network, 0.1);
        let example = Example {
            input: vec![2.0],
            target: 1.0,
        };
        assert_eq!(adam.step(&mut network, [&example]), 1.0);
        for parameter in &network.parameters {
            assert!((parameter - 0.1).abs() < 1e-4, "{network:?}");
        }
        for _ in 0..300 {
            adam.step(&mut network, [&example]);
        }
        assert!(network.loss(&[example]) < 1e-3);
    }
}
