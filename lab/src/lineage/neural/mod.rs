//! Small networks with one output: dense layers and convolutions on a board, mean squared error, Adam (Kingma and Ba,
//! arXiv 1412.6980). Everything is computed for batches, in memory that a [`Workspace`] keeps.

mod layer;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Context as _;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use layer::Layer;
use layer::{Pass, Scratch};

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

    /// Sets the last layer's parameters to 0, so that every output is 0 until something is learnt.
    pub fn zero_output(&mut self) {
        let last = self.layers.last().map_or(0, |layer| layer.parameters());
        let begin = self.parameters.len() - last;
        self.parameters[begin..].fill(0.0);
    }

    /// Polyak averaging, for target networks: `(1 - share) * self + share * other`, of networks with the same layers.
    pub fn move_towards(&mut self, other: &Self, share: f32) {
        for (own, other) in self.parameters.iter_mut().zip(&other.parameters) {
            *own += share * (other - *own);
        }
    }

    /// Whether layers and parameters fit, for networks that were read.
    fn check(&self, inputs: usize) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.layers.iter().all(|layer| layer.is_sized()),
            "a layer has no inputs or outputs, or too many"
        );
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
        anyhow::ensure!(
            count == self.parameters.len() && self.is_finite(),
            "its parameters are not those of its layers"
        );
        Ok(())
    }

    fn is_finite(&self) -> bool {
        self.parameters.iter().all(|number| number.is_finite())
    }

    /// Computes the outputs of all layers for `[examples][inputs]`.
    fn forward(&self, inputs: &[f32], work: &mut Workspace) {
        work.outputs.resize_with(self.layers.len(), Vec::new);
        if inputs.is_empty() {
            work.outputs.iter_mut().for_each(Vec::clear);
            return;
        }
        let mut place = 0;
        for (number, layer) in self.layers.iter().enumerate() {
            let (before, own) = work.outputs.split_at_mut(number);
            let pass = Pass {
                layer: *layer,
                parameters: &self.parameters[place..place + layer.parameters()],
                input: before.last().map_or(inputs, Vec::as_slice),
            };
            pass.forward(&mut own[0], &mut work.scratch.columns);
            place += layer.parameters();
        }
    }

    /// The outputs for `[examples][inputs]`.
    pub fn values<'a>(&self, inputs: &[f32], work: &'a mut Workspace) -> &'a [f32] {
        self.forward(inputs, work);
        work.outputs.last().map_or(&[], Vec::as_slice)
    }

    /// Adds to `gradient` that of the squared errors, and gives their sum.
    fn add_gradient(
        &self,
        inputs: &[f32],
        targets: &[f32],
        gradient: &mut [f32],
        work: &mut Workspace,
    ) -> f32 {
        self.forward(inputs, work);
        let Workspace {
            outputs,
            delta,
            scratch,
            ..
        } = work;
        let last = outputs.last().map_or(&[][..], Vec::as_slice);
        delta.clear();
        delta.extend(
            last.iter()
                .zip(targets)
                .map(|(value, target)| 2.0 * (value - target)),
        );
        let loss = delta.iter().map(|delta| delta * delta / 4.0).sum();
        let mut end = self.parameters.len();
        for (number, layer) in self.layers.iter().enumerate().rev() {
            let own = end - layer.parameters()..end;
            end = own.start;
            let pass = Pass {
                layer: *layer,
                parameters: &self.parameters[own.clone()],
                input: number
                    .checked_sub(1)
                    .map_or(inputs, |before| &outputs[before]),
            };
            let goes_on = number > 0;
            pass.backward(
                &outputs[number],
                delta,
                &mut gradient[own],
                scratch,
                goes_on,
            );
        }
        loss
    }

    /// The mean squared error over examples, 0 of none.
    pub fn loss(&self, examples: &[Example], work: &mut Workspace) -> f32 {
        let mut sum = 0.0;
        for part in examples.chunks(PART) {
            let (inputs, targets) = work.gather(part);
            let values = self.values(&inputs, work);
            sum += values
                .iter()
                .zip(&targets)
                .map(|(value, target)| (value - target).powi(2))
                .sum::<f32>();
            work.give_back(inputs, targets);
        }
        sum / examples.len().max(1) as f32
    }
}

/// Examples that are computed together where there are many.
const PART: usize = 64;

/// Memory of computations, for one thread.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    /// Of each layer.
    outputs: Vec<Vec<f32>>,
    delta: Vec<f32>,
    scratch: Scratch,
    inputs: Vec<f32>,
    targets: Vec<f32>,
}

impl Workspace {
    /// The inputs and targets of some examples, each side by side.
    fn gather<'a>(
        &mut self,
        examples: impl IntoIterator<Item = &'a Example>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (mut inputs, mut targets) = (
            std::mem::take(&mut self.inputs),
            std::mem::take(&mut self.targets),
        );
        inputs.clear();
        targets.clear();
        for one in examples {
            inputs.extend_from_slice(&one.input);
            targets.push(one.target);
        }
        (inputs, targets)
    }

    fn give_back(&mut self, inputs: Vec<f32>, targets: Vec<f32>) {
        (self.inputs, self.targets) = (inputs, targets);
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
    work: Workspace,
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
            work: Workspace::default(),
        }
    }

    /// Steps that were made.
    #[cfg(test)]
    pub(super) const fn steps(&self) -> i32 {
        self.steps
    }

    /// One step on a batch, and the mean squared error before it.
    pub fn step<'a>(
        &mut self,
        network: &mut Network,
        batch: impl IntoIterator<Item = &'a Example>,
    ) -> f32 {
        self.gradient.fill(0.0);
        let (inputs, targets) = self.work.gather(batch);
        let (gradient, work) = (&mut self.gradient, &mut self.work);
        let loss = network.add_gradient(&inputs, &targets, gradient, work);
        let count = targets.len().max(1) as f32;
        work.give_back(inputs, targets);
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
/// If its training has diverged, or the file cannot be written.
pub fn write<T: Trained>(agent: &T, path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        agent.network().0.is_finite(),
        "RK-0705: training diverged: weights are infinite or not numbers. {} is not written; lower --learning-rate",
        path.display()
    );
    let text = serde_json::to_vec(agent).context("the agent has no text")?;
    rookery_common::files::write_whole(path, &text)
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
