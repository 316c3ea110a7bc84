//! The computation of a network, written once for evaluation and training.
//!
//! Generic over `C`, a convolution with its normalisation: `folded` multiplies both together,
//! `normed` keeps them apart so that they can be trained. [`Layers`] says what follows what.

use rookery_common::network::{
    self, Activation, AuxiliaryHead, AuxiliaryLayers, Layers, NetworkSpec, NormalizedConvolution,
    PolicyLayers, PolicyOutput, ResidualBlock, SquareHead, SqueezeExcitation,
};
use rookery_model::Weights;
use tch::{Kind, Tensor};

use crate::convolution::{Products, convolve};
use crate::error::{Result, TorchResult};
use crate::host;

/// Where a graph's parts come from.
pub trait Parts<C> {
    /// A convolution with its normalisation.
    fn convolution(&self, layer: &NormalizedConvolution) -> Result<C>;
    /// The tensor of this name.
    fn tensor(&self, name: &str) -> Result<Tensor>;
    /// The tensor of this name in 32 bits, for a layer so small that it is always computed in them.
    fn exact(&self, name: &str) -> Result<Tensor>;
    /// The network's weights if it runs on the processor without gradients, so that what is
    /// between convolutions may be computed in place by [`host`].
    fn on_host(&self) -> Option<&Weights> {
        None
    }
    /// Whether heads that only training uses are wanted.
    fn trains(&self) -> bool {
        false
    }
}

/// A network ready to compute.
#[derive(Debug)]
pub struct Graph<C> {
    activation: Activation,
    on_host: bool,
    tower: Tower<C>,
    policy: PolicyHead<C>,
    value: DenseHead<C>,
    auxiliary: Vec<(AuxiliaryHead, Auxiliary<C>)>,
}

/// The body between input and heads.
#[derive(Debug)]
enum Tower<C> {
    /// A convolution of the planes, and residual blocks.
    Residual { input: C, blocks: Vec<Block<C>> },
}

/// What a network says, before anything is made of it.
#[derive(Debug)]
pub struct RawOutputs {
    /// `[positions, cells]`; which cell is which move, [`PolicyCells`](rookery_backend_cpu::PolicyCells) knows.
    pub policy: Tensor,
    /// `[positions, 3]` logits of win, draw and loss, or `[positions, 1]` before tanh.
    pub value: Tensor,
    /// Of the heads that only training uses: `[positions, outputs]` of one like the value's, `[positions, cells]` of one
    /// like the policy's, `[positions, classes, 8, 8]` of one of squares.
    pub auxiliary: Vec<(AuxiliaryHead, Tensor)>,
}

/// A policy: a convolution, and one or a dense layer that makes cells of it.
#[derive(Debug)]
struct PolicyHead<C> {
    conv: C,
    output: Policy,
}

/// Whether a policy's planes are seen by the other player, who has the board's ranks the other way round;
/// what was computed of a square stays with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turned {
    No,
    Yes,
}

/// A head that only training uses.
#[derive(Debug)]
enum Auxiliary<C> {
    /// Like the value.
    Dense(DenseHead<C>),
    /// A policy, of the opponent's moves as the opponent sees them.
    Reply(PolicyHead<C>),
    /// A convolution, and another to the classes of each square.
    Squares { conv: C, output: Affine },
    /// Another last layer of the policy.
    SoftPolicy(Policy),
}

/// A head of one convolution and two dense layers.
#[derive(Debug)]
struct DenseHead<C> {
    conv: C,
    hidden: Affine,
    output: Affine,
}

/// What flows from block to block, each adding to it.
#[derive(Debug)]
struct Stream {
    /// In the numbers in which convolutions take it.
    x: Tensor,
    /// The same in 32 bits, where blocks end in one pass on the processor: each block adds little to much, and 16 bits would round
    /// all that the blocks before have added, again and again.
    wide: Option<Tensor>,
}

#[derive(Debug)]
struct Block<C> {
    conv1: C,
    conv2: C,
    excitation: Option<Excitation>,
}

/// Squeeze-excitation as Lc0 does it: besides a factor for each channel also a summand.
#[derive(Debug)]
struct Excitation {
    squeeze: Affine,
    excite: Affine,
    fused: Option<host::SqueezeExcitation>,
}

#[derive(Debug)]
enum Policy {
    Planes(Affine, Products),
    Dense(Affine),
}

/// A weight and a bias, of a dense layer or a plain convolution.
#[derive(Debug)]
struct Affine {
    weight: Tensor,
    bias: Tensor,
}

impl<C> Graph<C> {
    /// Builds the network of a specification.
    pub fn new(spec: &NetworkSpec, parts: &impl Parts<C>) -> Result<Self> {
        let layers = Layers::new(spec)?;
        let wanted = layers.auxiliary.iter().filter(|_| parts.trains());
        let auxiliary = wanted.map(|(head, layers)| Ok((*head, Auxiliary::new(parts, layers)?)));
        Ok(Self {
            activation: layers.activation,
            on_host: parts.on_host().is_some(),
            tower: Tower::new(parts, &layers)?,
            policy: PolicyHead::new(parts, &layers.policy)?,
            value: DenseHead::new(parts, &layers.value)?,
            auxiliary: auxiliary.collect::<Result<_>>()?,
        })
    }

    /// Computes `planes`, shaped `[positions, planes, 8, 8]`; `convolve` applies a convolution
    /// with its normalisation. `dropout` is the share of the value head's hidden units that are
    /// left out at random; the others grow so that their sum stays the same on average.
    pub fn forward(
        &self,
        planes: &Tensor,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
        dropout: f64,
    ) -> TorchResult<RawOutputs> {
        let x = self.tower(planes, convolve)?;
        let features = self.policy_features(&x, convolve)?;
        let auxiliary = self.auxiliary.iter().map(|(kind, layers)| {
            let output = match layers {
                Auxiliary::Dense(layers) => self.dense_head(layers, &x, convolve, 0.0)?,
                Auxiliary::Reply(layers) => layers
                    .output
                    .compute(&self.activate(convolve(&layers.conv, &x)?)?, Turned::Yes)?,
                Auxiliary::Squares { conv, output } => {
                    output.convolution(&self.activate(convolve(conv, &x)?)?, Products::Fast)?
                }
                Auxiliary::SoftPolicy(output) => output.compute(&features, Turned::No)?,
            };
            Ok((*kind, output))
        });
        Ok(RawOutputs {
            policy: self.policy(&features)?,
            value: self.value(&x, convolve, dropout)?,
            auxiliary: auxiliary.collect::<TorchResult<_>>()?,
        })
    }

    /// What the residual tower makes of `planes`: `[positions, filters, 8, 8]`, from which all heads begin.
    pub fn tower(
        &self,
        planes: &Tensor,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
    ) -> TorchResult<Tensor> {
        let Tower::Residual { input, .. } = &self.tower;
        let x = self.activate(convolve(input, planes)?)?;
        let in_one_pass = self.on_host && self.activation == Activation::Relu;
        let wide = in_one_pass.then(|| x.f_to_kind(Kind::Float)).transpose()?;
        self.blocks(Stream { x, wide }, convolve)
    }

    /// The same of what [`apply_first`](host::apply_first) made of the planes, in the tower's numbers and in 32 bits.
    pub(crate) fn tower_on(
        &self,
        [x, wide]: [Tensor; 2],
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
    ) -> TorchResult<Tensor> {
        let wide = Some(wide);
        self.blocks(Stream { x, wide }, convolve)
    }

    fn blocks(
        &self,
        mut stream: Stream,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
    ) -> TorchResult<Tensor> {
        let Tower::Residual { blocks, .. } = &self.tower;
        for block in blocks {
            let y = self.activate(convolve(&block.conv1, &stream.x)?)?;
            let y = convolve(&block.conv2, &y)?;
            self.end(block, y, &mut stream)?;
        }
        Ok(stream.x)
    }

    /// What the policy's last layer gets: `[positions, channels, 8, 8]`.
    pub(crate) fn policy_features(
        &self,
        x: &Tensor,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
    ) -> TorchResult<Tensor> {
        self.activate(convolve(&self.policy.conv, x)?)
    }

    /// The policy of [`policy_features`](Self::policy_features), as [`RawOutputs::policy`].
    pub fn policy(&self, features: &Tensor) -> TorchResult<Tensor> {
        self.policy.output.compute(features, Turned::No)
    }

    /// The value of what the tower made, as [`RawOutputs::value`].
    pub fn value(
        &self,
        x: &Tensor,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
        dropout: f64,
    ) -> TorchResult<Tensor> {
        self.dense_head(&self.value, x, convolve, dropout)
    }

    /// The last layer is computed in 32 bits: it is small, and 16 would round what the network says.
    fn dense_head(
        &self,
        head: &DenseHead<C>,
        x: &Tensor,
        convolve: &impl Fn(&C, &Tensor) -> TorchResult<Tensor>,
        dropout: f64,
    ) -> TorchResult<Tensor> {
        let flat = self.activate(convolve(&head.conv, x)?)?.f_flatten(1, -1)?;
        let mut hidden = self.activate(head.hidden.dense(&flat)?)?;
        if dropout > 0.0 {
            hidden = hidden.f_dropout(dropout, true)?;
        }
        head.output.dense(&hidden.f_to_kind(Kind::Float)?)
    }

    /// The end of a block: the stream goes on with what its convolutions made of it, `y`.
    fn end(&self, block: &Block<C>, mut y: Tensor, stream: &mut Stream) -> TorchResult<()> {
        if let Some(wide) = &mut stream.wide
            && block.end_on_host(&mut y, wide)
        {
            stream.x = y;
            return Ok(());
        }
        let x = &stream.x;
        let sum = match &block.excitation {
            Some(excitation) => self.excite(excitation, &y, x)?,
            None => y.f_add(x)?,
        };
        stream.x = self.activate(sum)?;
        stream.wide = None;
        Ok(())
    }

    fn activate(&self, mut x: Tensor) -> TorchResult<Tensor> {
        match self.activation {
            Activation::Relu if self.on_host && host::relu(&mut x) => Ok(x),
            Activation::Relu => x.f_relu_(),
            Activation::Mish => x.f_mish(),
        }
    }

    /// `sigmoid(gamma) * y + beta + x`, where gamma and beta come from the channels' means of `y`.
    fn excite(&self, layers: &Excitation, y: &Tensor, x: &Tensor) -> TorchResult<Tensor> {
        let means = y.f_mean_dim([2_i64, 3].as_slice(), false, None)?;
        let units = self.activate(layers.squeeze.dense(&means)?)?;
        let both = layers.excite.dense(&units)?;
        let channels = both.size()[1] / 2;
        let gamma = both.f_narrow(1, 0, channels)?.f_sigmoid()?;
        let beta = both.f_narrow(1, channels, channels)?;
        let cell = [-1, channels, 1, 1];
        let mut sum = x.f_addcmul(y, &gamma.f_reshape(cell)?)?;
        sum.f_add_(&beta.f_reshape(cell)?)
    }
}

impl<C> Tower<C> {
    fn new(parts: &impl Parts<C>, layers: &Layers) -> Result<Self> {
        let network::Tower::Residual(tower) = &layers.tower;
        let blocks = tower.blocks.iter();
        Ok(Self::Residual {
            input: parts.convolution(&tower.input)?,
            blocks: blocks
                .map(|block| Block::new(parts, block, layers.activation))
                .collect::<Result<_>>()?,
        })
    }
}

impl<C> Auxiliary<C> {
    fn new(parts: &impl Parts<C>, layers: &AuxiliaryLayers) -> Result<Self> {
        Ok(match layers {
            AuxiliaryLayers::Dense(head) => Self::Dense(DenseHead::new(parts, head)?),
            AuxiliaryLayers::Reply(policy) => Self::Reply(PolicyHead::new(parts, policy)?),
            AuxiliaryLayers::Squares(SquareHead {
                convolution,
                output,
            }) => Self::Squares {
                conv: parts.convolution(convolution)?,
                output: Affine::new(parts, &output.name)?,
            },
            AuxiliaryLayers::SoftPolicy(output) => Self::SoftPolicy(Policy::new(parts, output)?),
        })
    }
}

impl<C> PolicyHead<C> {
    fn new(parts: &impl Parts<C>, layers: &PolicyLayers) -> Result<Self> {
        Ok(Self {
            conv: parts.convolution(&layers.convolution)?,
            output: Policy::new(parts, &layers.output)?,
        })
    }
}

impl<C> DenseHead<C> {
    fn new(parts: &impl Parts<C>, layers: &network::DenseHead) -> Result<Self> {
        Ok(Self {
            conv: parts.convolution(&layers.convolution)?,
            hidden: Affine::new(parts, &layers.hidden.name)?,
            output: Affine::exact(parts, &layers.output.name)?,
        })
    }
}

impl<C> Block<C> {
    fn new(parts: &impl Parts<C>, layers: &ResidualBlock, activation: Activation) -> Result<Self> {
        let excitation = layers.excitation.as_ref();
        let excitation = excitation.map(|layers| Excitation::new(parts, layers, activation));
        Ok(Self {
            conv1: parts.convolution(&layers.conv1)?,
            conv2: parts.convolution(&layers.conv2)?,
            excitation: excitation.transpose()?,
        })
    }

    /// The block's end in one pass, into both: `y` is what its convolutions made of the stream `wide`. False if
    /// that is left to libtorch.
    fn end_on_host(&self, y: &mut Tensor, wide: &mut Tensor) -> bool {
        match &self.excitation {
            Some(Excitation { fused, .. }) => fused
                .as_ref()
                .is_some_and(|layers| host::excite(layers, y, wide)),
            None => host::add_relu(y, wide),
        }
    }
}

impl Excitation {
    fn new<C>(
        parts: &impl Parts<C>,
        layers: &SqueezeExcitation,
        activation: Activation,
    ) -> Result<Self> {
        let channels = layers.squeeze.inputs as usize;
        let fused = match parts.on_host() {
            Some(weights) if activation == Activation::Relu => Some(host::SqueezeExcitation::new(
                weights, layers, activation, channels,
            )?),
            _ => None,
        };
        Ok(Self {
            squeeze: Affine::new(parts, &layers.squeeze.name)?,
            excite: Affine::new(parts, &layers.excite.name)?,
            fused,
        })
    }
}

impl Policy {
    fn new<C>(parts: &impl Parts<C>, layer: &PolicyOutput) -> Result<Self> {
        Ok(match layer {
            PolicyOutput::Planes(planes) => {
                let products = if parts.trains() {
                    Products::Fast
                } else {
                    Products::Exact
                };
                Self::Planes(Affine::new(parts, &planes.name)?, products)
            }
            PolicyOutput::Dense(dense) => Self::Dense(Affine::new(parts, &dense.name)?),
        })
    }

    /// Cells of `[positions, cells]`. Planes are laid out square by square, as they lie in memory
    /// after a channels-last convolution.
    fn compute(&self, x: &Tensor, turned: Turned) -> TorchResult<Tensor> {
        match self {
            Self::Planes(conv, products) => {
                let mut planes = conv.convolution(x, *products)?;
                if turned == Turned::Yes {
                    planes = planes.f_flip([2])?;
                }
                planes.f_permute([0, 2, 3, 1])?.f_flatten(1, -1)
            }
            Self::Dense(layer) => layer.dense(&x.f_flatten(1, -1)?),
        }
    }
}

impl Affine {
    fn new<C>(parts: &impl Parts<C>, name: &str) -> Result<Self> {
        let weight = parts.tensor(&format!("{name}.weight"))?;
        Ok(Self {
            weight,
            bias: parts.tensor(&format!("{name}.bias"))?,
        })
    }

    /// In 32 bits.
    fn exact<C>(parts: &impl Parts<C>, name: &str) -> Result<Self> {
        let weight = parts.exact(&format!("{name}.weight"))?;
        Ok(Self {
            weight,
            bias: parts.exact(&format!("{name}.bias"))?,
        })
    }

    fn convolution(&self, x: &Tensor, products: Products) -> TorchResult<Tensor> {
        convolve(x, &self.weight, Some(&self.bias), products)
    }

    fn dense(&self, x: &Tensor) -> TorchResult<Tensor> {
        let kind = x.f_kind()?;
        x.f_linear(
            &self.weight.f_to_kind(kind)?,
            Some(&self.bias.f_to_kind(kind)?),
        )
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    /// The other player sees the same planes with the ranks the other way round, square by square.
    #[test]
    fn a_turned_policy_has_its_squares_from_the_other_side() {
        let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu));
        let (squares, planes) = (8 * 8, 3);
        let layer = Affine {
            weight: random(&[planes, 5, 3, 3]),
            bias: random(&[planes]),
        };
        let output = Policy::Planes(layer, Products::Exact);
        let x = random(&[2, 5, 8, 8]);
        let [own, other] = [Turned::No, Turned::Yes].map(|turned| {
            let cells = output.compute(&x, turned).unwrap();
            cells.reshape([2, squares, planes])
        });
        for square in 0..squares {
            let mirrored = square ^ 56;
            assert_eq!(own.select(1, square), other.select(1, mirrored));
        }
    }
}
