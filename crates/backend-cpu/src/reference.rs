//! What tests compare with: networks computed by the definition of their layers, in 64 bits, one number after the other.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::network::layout::NORM_EPSILON;
use rookery_common::network::{
    Activation, Convolution, Dense, Layers, NormalizedConvolution, PolicyOutput, Tower, ValueHead,
};
use rookery_engine::{Batch, Evaluations, Wdl};
use rookery_model::Weights;

use crate::policy_cells::PolicyCells;

/// Numbers from -1 to 1.
pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// A convolution of `[inputs][64]` that keeps the board, `weight` being `[outputs][inputs][kernel][kernel]`.
pub(crate) fn convolve(x: &[f64], weight: &[f64], outputs: usize, kernel: usize) -> Vec<f64> {
    let inputs = x.len() / 64;
    let half = kernel as i32 / 2;
    let at = |input: usize, row: i32, column: i32| {
        let inside = (0..8).contains(&row) && (0..8).contains(&column);
        if inside {
            x[64 * input + (8 * row + column) as usize]
        } else {
            0.0
        }
    };
    let mut y = vec![0.0; 64 * outputs];
    for (index, sum) in y.iter_mut().enumerate() {
        let (output, row, column) = (index / 64, index as i32 % 64 / 8, index as i32 % 8);
        for input in 0..inputs {
            for tap in 0..kernel * kernel {
                let (down, right) = ((tap / kernel) as i32 - half, (tap % kernel) as i32 - half);
                let place = (output * inputs + input) * kernel * kernel + tap;
                *sum += weight[place] * at(input, row + down, column + right);
            }
        }
    }
    y
}

/// A network that computes slowly.
pub(crate) struct Reference<'a> {
    weights: &'a Weights,
    layers: Layers,
}

impl<'a> Reference<'a> {
    pub(crate) fn new(weights: &'a Weights) -> Self {
        let layers = Layers::new(weights.spec()).unwrap();
        Self { weights, layers }
    }

    pub(crate) fn evaluate(&self, batch: &Batch) -> Evaluations {
        let mut answer = Evaluations::default();
        for position in 0..batch.len() {
            self.position(batch, position, &mut answer);
        }
        answer
    }

    fn position(&self, batch: &Batch, position: usize, answer: &mut Evaluations) {
        let spec = self.weights.spec();
        let bit = |word: &u64, square: u32| f64::from((word >> square & 1) as u8);
        let mut x: Vec<f64> = batch
            .binary_of(position)
            .iter()
            .flat_map(|word| (0..64).map(move |square| bit(word, square)))
            .collect();
        for (count, scale) in batch
            .scalars_of(position)
            .iter()
            .zip(spec.input.scalar_scales())
        {
            x.extend([f64::from(*count) / f64::from(*scale); 64]);
        }
        let Tower::Residual(tower) = &self.layers.tower;
        let mut x = self.activate(self.normalized(&tower.input, &x));
        for block in &tower.blocks {
            let y = self.activate(self.normalized(&block.conv1, &x));
            let mut y = self.normalized(&block.conv2, &y);
            if let Some(layers) = &block.excitation {
                let means: Vec<f64> = y
                    .chunks(64)
                    .map(|plane| plane.iter().sum::<f64>() / 64.0)
                    .collect();
                let both = self.dense(
                    &layers.excite,
                    &self.activate(self.dense(&layers.squeeze, &means)),
                );
                let channels = both.len() / 2;
                for (index, number) in y.iter_mut().enumerate() {
                    let (gamma, beta) = (both[index / 64], both[channels + index / 64]);
                    *number = *number / (1.0 + (-gamma).exp()) + beta;
                }
            }
            x = self.activate(x.iter().zip(y).map(|(x, y)| x + y).collect());
        }
        let features = self.activate(self.normalized(&self.layers.policy.convolution, &x));
        let cells = PolicyCells::new(&spec.policy);
        let cell = |index: &u16| cells.of(*index).unwrap() as usize;
        let moves = batch.moves_of(position).iter();
        match &self.layers.policy.output {
            PolicyOutput::Planes(planes) => {
                let (count, logits) = (planes.outputs as usize, self.biased(planes, &features));
                let logit = |cell: usize| logits[64 * (cell % count) + cell / count] as f32;
                answer.logits.extend(moves.map(|index| logit(cell(index))));
            }
            PolicyOutput::Dense(dense) => {
                let logits = self.dense(dense, &features);
                answer
                    .logits
                    .extend(moves.map(|index| logits[cell(index)] as f32));
            }
        }
        let head = &self.layers.value;
        let features = self.activate(self.normalized(&head.convolution, &x));
        let output = self.dense(
            &head.output,
            &self.activate(self.dense(&head.hidden, &features)),
        );
        answer.values.push(match spec.value {
            ValueHead::Wdl { .. } => {
                let sum: f64 = output.iter().map(|x| x.exp()).sum();
                let share = |index: usize| (output[index].exp() / sum) as f32;
                Wdl {
                    win: share(0),
                    draw: share(1),
                    loss: share(2),
                }
            }
            ValueHead::Scalar { .. } => Wdl::from_q(output[0].tanh() as f32),
        });
    }

    fn get(&self, name: &str, part: &str) -> Vec<f64> {
        let values = self
            .weights
            .get(&format!("{name}.{part}"))
            .unwrap()
            .values();
        values.iter().copied().map(f64::from).collect()
    }

    fn normalized(&self, layer: &NormalizedConvolution, x: &[f64]) -> Vec<f64> {
        let part = |part: &str| self.get(&layer.name, part);
        let mut y = convolve(
            x,
            &part("weight"),
            layer.outputs as usize,
            layer.kernel as usize,
        );
        let (gamma, beta) = (part("norm.weight"), part("norm.bias"));
        let (mean, variance) = (part("norm.mean"), part("norm.variance"));
        for (channel, plane) in y.chunks_mut(64).enumerate() {
            let deviation = (variance[channel] + NORM_EPSILON).sqrt();
            for number in plane {
                *number = (*number - mean[channel]) / deviation * gamma[channel] + beta[channel];
            }
        }
        y
    }

    fn biased(&self, layer: &Convolution, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (
            self.get(&layer.name, "weight"),
            self.get(&layer.name, "bias"),
        );
        let mut y = convolve(x, &weight, layer.outputs as usize, layer.kernel as usize);
        for (plane, bias) in y.chunks_mut(64).zip(bias) {
            plane.iter_mut().for_each(|number| *number += bias);
        }
        y
    }

    fn dense(&self, layer: &Dense, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (
            self.get(&layer.name, "weight"),
            self.get(&layer.name, "bias"),
        );
        let rows = weight.chunks(x.len()).zip(bias);
        rows.map(|(row, bias)| bias + row.iter().zip(x).map(|(weight, x)| weight * x).sum::<f64>())
            .collect()
    }

    fn activate(&self, x: Vec<f64>) -> Vec<f64> {
        let activation = |x: f64| match self.layers.activation {
            Activation::Relu => x.max(0.0),
            Activation::Mish => x * x.exp().ln_1p().tanh(),
        };
        x.into_iter().map(activation).collect()
    }
}
