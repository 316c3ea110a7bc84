//! A network's weights in the order in which kernels read them.

use rookery_common::network::{
    Activation, DenseHead, Layers, NetworkSpec, NormalizedConvolution, ResidualBlock, Tower,
    ValueHead,
};
use rookery_model::{FoldedConvolution, ModelError, Weights};

use crate::dense::Dense;
use crate::elementwise::SqueezeExcitation;
use crate::first_layer::FirstLayer;
use crate::legal_policy::LegalPolicy;
use crate::policy_cells::PolicyCells;
use crate::simd::LANES;
use crate::winograd::{Winograd, Workspace};

/// A network that any number of [evaluators](crate::CpuEvaluator) share.
#[derive(Debug)]
pub struct CpuNetwork {
    pub(crate) spec: NetworkSpec,
    pub(crate) activation: Activation,
    /// Channels of the tower, padded.
    pub(crate) channels: usize,
    pub(crate) first: FirstLayer,
    pub(crate) blocks: Vec<Block>,
    pub(crate) policy: Convolution,
    pub(crate) legal: LegalPolicy,
    pub(crate) cells: PolicyCells,
    pub(crate) value: Value,
}

/// A residual block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) conv1: Convolution,
    pub(crate) conv2: Convolution,
    pub(crate) excitation: Option<SqueezeExcitation>,
}

/// The value head.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) convolution: Convolution,
    pub(crate) hidden: Dense,
    pub(crate) output: Dense,
    pub(crate) kind: ValueHead,
}

/// A convolution of padded channels.
#[derive(Debug)]
pub(crate) enum Convolution {
    /// Of 3 x 3 squares.
    Winograd(Winograd),
    /// Of single squares.
    Pointwise(Dense),
}

impl CpuNetwork {
    /// Folds a network's normalisations and orders its weights for the kernels.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotComputable`] for weights that are not finite in 32 bits once they are folded.
    pub fn new(weights: &Weights) -> Result<Self, ModelError> {
        let spec = weights.spec();
        let layers = Layers::new(spec)?;
        let Tower::Residual(tower) = &layers.tower;
        check_finite(weights, &layers)?;
        let channels = padded(tower.input.outputs);
        let mut first = fold(weights, &tower.input)?;
        pad(&mut first, channels, tower.input.inputs as usize);
        let blocks = tower.blocks.iter();
        let blocks = blocks.map(|block| Block::new(weights, block, layers.activation));
        let policy = Convolution::new(weights, &layers.policy.convolution)?;
        Ok(Self {
            first: FirstLayer::new(&first, spec.input, layers.activation),
            blocks: blocks.collect::<Result<_, _>>()?,
            legal: LegalPolicy::new(weights, &layers.policy, policy.outputs())?,
            policy,
            cells: PolicyCells::new(&spec.policy),
            value: Value::new(weights, &layers.value, spec.value)?,
            activation: layers.activation,
            channels,
            spec: spec.clone(),
        })
    }

    /// Multiplications of a position in products of matrices, which are nearly all of its work.
    pub fn products(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| {
            let excitation = block.excitation.as_ref();
            block.conv1.products()
                + block.conv2.products()
                + excitation.map_or(0, SqueezeExcitation::products)
        });
        let value = &self.value;
        blocks.sum::<usize>()
            + self.policy.products()
            + value.convolution.products()
            + value.hidden.products()
            + value.output.products()
    }

    /// What the network is.
    pub const fn spec(&self) -> &NetworkSpec {
        &self.spec
    }
}

impl Block {
    fn new(
        weights: &Weights,
        layers: &ResidualBlock,
        activation: Activation,
    ) -> Result<Self, ModelError> {
        let channels = padded(layers.conv2.outputs);
        let excitation = layers.excitation.as_ref();
        let excitation =
            excitation.map(|layers| SqueezeExcitation::new(weights, layers, activation, channels));
        Ok(Self {
            conv1: Convolution::new(weights, &layers.conv1)?,
            conv2: Convolution::new(weights, &layers.conv2)?,
            excitation: excitation.transpose()?,
        })
    }
}

impl Value {
    fn new(weights: &Weights, layers: &DenseHead, kind: ValueHead) -> Result<Self, ModelError> {
        let convolution = Convolution::new(weights, &layers.convolution)?;
        let (channels, padded) = (layers.convolution.outputs as usize, convolution.outputs());
        let tensor = |name: &str, part: &str| -> Result<&[f32], ModelError> {
            Ok(weights.get(&format!("{name}.{part}"))?.values())
        };
        let weight = tensor(&layers.hidden.name, "weight")?;
        // The file has planes one after the other, activations lie square by square.
        let hidden = |output: usize, input: usize| {
            let (square, channel) = (input / padded, input % padded);
            if channel < channels {
                weight[(output * channels + channel) * 64 + square]
            } else {
                0.0
            }
        };
        let hidden = Dense::new(64 * padded, tensor(&layers.hidden.name, "bias")?, hidden);
        let (weight, used) = (
            tensor(&layers.output.name, "weight")?,
            layers.output.inputs as usize,
        );
        let output = |output: usize, input: usize| match input < used {
            true => weight[output * used + input],
            false => 0.0,
        };
        let output = Dense::new(
            hidden.outputs(),
            tensor(&layers.output.name, "bias")?,
            output,
        );
        Ok(Self {
            convolution,
            hidden,
            output,
            kind,
        })
    }
}

impl Convolution {
    fn new(weights: &Weights, layer: &NormalizedConvolution) -> Result<Self, ModelError> {
        let mut folded = fold(weights, layer)?;
        pad(&mut folded, padded(layer.outputs), padded(layer.inputs));
        Ok(match Winograd::new(&folded) {
            Some(winograd) => Self::Winograd(winograd),
            None => {
                let inputs = folded.inputs;
                let bias: Vec<f32> = folded.bias.iter().map(|bias| *bias as f32).collect();
                let weight =
                    |output: usize, input: usize| folded.weight[output * inputs + input] as f32;
                Self::Pointwise(Dense::new(inputs, &bias, weight))
            }
        })
    }

    /// Multiplications of a position.
    fn products(&self) -> usize {
        match self {
            Self::Winograd(winograd) => winograd.products(),
            Self::Pointwise(dense) => 64 * dense.products(),
        }
    }

    /// Output channels, padded.
    pub(crate) fn outputs(&self) -> usize {
        match self {
            Self::Winograd(winograd) => winograd.outputs(),
            Self::Pointwise(dense) => dense.outputs(),
        }
    }

    /// The activation of the convolution of `x`, `[positions][64][inputs]`, into `y`, `[positions][64][outputs]`.
    pub(crate) fn apply(
        &self,
        activation: Option<Activation>,
        x: &[f32],
        workspace: &mut Workspace,
        y: &mut [f32],
    ) {
        match self {
            Self::Winograd(winograd) => {
                winograd.apply_then(activation, x, workspace, y);
            }
            Self::Pointwise(dense) => dense.apply(workspace.instructions, activation, x, y),
        }
    }

    /// The batch size that is computed fastest, for this number of positions.
    pub(crate) fn positions_at_a_time(&self, positions: usize) -> usize {
        match self {
            Self::Winograd(winograd) => winograd.positions_at_a_time(positions),
            Self::Pointwise(_) => positions,
        }
    }
}

const fn padded(channels: u32) -> usize {
    (channels as usize).next_multiple_of(LANES)
}

/// A convolution with its normalisation, finite in 32 bits.
fn fold(weights: &Weights, layer: &NormalizedConvolution) -> Result<FoldedConvolution, ModelError> {
    let folded = FoldedConvolution::new(weights, layer)?;
    for (part, numbers) in [("weight", &folded.weight), ("norm.bias", &folded.bias)] {
        if !numbers.iter().all(|number| (*number as f32).is_finite()) {
            let name = format!("{}.{part}", layer.name);
            return Err(ModelError::NotComputable(name));
        }
    }
    Ok(folded)
}

/// Adds channels of zeros.
fn pad(folded: &mut FoldedConvolution, outputs: usize, inputs: usize) {
    let taps = folded.kernel * folded.kernel;
    let mut weight = vec![0.0; outputs * inputs * taps];
    let rows = folded.weight.chunks_exact(folded.inputs * taps);
    for (padded, row) in weight.chunks_exact_mut(inputs * taps).zip(rows) {
        padded[..row.len()].copy_from_slice(row);
    }
    folded.bias.resize(outputs, 0.0);
    folded.weight = weight;
    (folded.outputs, folded.inputs) = (outputs, inputs);
}

fn check_finite(weights: &Weights, layers: &Layers) -> Result<(), ModelError> {
    for layout in layers.tensors() {
        let values = weights.get(&layout.name)?.values();
        if !values.iter().all(|number| number.is_finite()) {
            return Err(ModelError::NotComputable(layout.name));
        }
    }
    Ok(())
}
