//! The layers of a network, in the order of computation.
//!
//! ```text
//! planes -> tower -+-> policy conv -> planes or dense        (logits)
//!                  +-> value conv  -> dense1 -> dense2       (win, draw, loss, or one number)
//!                  +-> auxiliary heads                       (in training only)
//! residual tower:  input -> block ... block
//! block:           x -> conv1 -> conv2 -> [squeeze-excitation] -> + x
//! ```
//!
//! The activation of the specification follows every normalisation but that of a block's `conv2`, which it follows
//! behind the sum, the squeeze of a squeeze-excitation, and `dense1`.

use super::auxiliary::AuxiliaryHead;
use super::error::SpecError;
use super::layout::{Role, TensorLayout};
use super::spec::{Activation, Architecture, NetworkSpec, PolicyHead, Resnet, ValueHead};
use crate::encoding::PIECE_CLASSES;

/// The layers of a network.
///
/// # Examples
///
/// ```
/// use rookery_common::network::{Layers, NetworkSpec, Tower};
///
/// let layers = Layers::new(&NetworkSpec::resnet(6, 64)).unwrap();
/// let Tower::Residual(tower) = &layers.tower;
/// assert_eq!(tower.blocks.len(), 6);
/// assert_eq!(tower.blocks[2].conv1.name, "blocks.2.conv1");
/// assert_eq!(layers.value.output.outputs, 3);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Layers {
    /// The activation of tower and heads.
    pub activation: Activation,
    /// From the input's planes to `[filters][8][8]`.
    pub tower: Tower,
    /// The policy head.
    pub policy: PolicyLayers,
    /// The value head.
    pub value: DenseHead,
    /// Heads that only training uses.
    pub auxiliary: Vec<(AuxiliaryHead, AuxiliaryLayers)>,
}

/// The body between input and heads. Another kind of body is another variant.
#[derive(Debug, Clone, PartialEq)]
pub enum Tower {
    /// Residual blocks.
    Residual(ResidualTower),
}

/// A residual tower (He et al. 2016).
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualTower {
    /// The convolution of the planes.
    pub input: NormalizedConvolution,
    /// The blocks behind it.
    pub blocks: Vec<ResidualBlock>,
}

/// A residual block.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualBlock {
    /// The first convolution.
    pub conv1: NormalizedConvolution,
    /// The second one.
    pub conv2: NormalizedConvolution,
    /// Squeeze-excitation of what the second one gives.
    pub excitation: Option<SqueezeExcitation>,
}

/// Squeeze-excitation as Lc0 does it: `sigmoid(gamma) * y + beta`, gamma and beta from the channels' means.
#[derive(Debug, Clone, PartialEq)]
pub struct SqueezeExcitation {
    /// From the channels' means to the units.
    pub squeeze: Dense,
    /// From the units to gamma of each channel, then beta.
    pub excite: Dense,
}

/// A policy head.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyLayers {
    /// The first convolution.
    pub convolution: NormalizedConvolution,
    /// The layer that gives the logits.
    pub output: PolicyOutput,
}

/// The last layer of a policy.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyOutput {
    /// A plane of logits for each kind of move.
    Planes(Convolution),
    /// A logit for each policy index.
    Dense(Dense),
}

/// A head of one convolution and two dense layers.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseHead {
    /// The convolution.
    pub convolution: NormalizedConvolution,
    /// From its planes, one after the other, to the hidden units.
    pub hidden: Dense,
    /// From the hidden units to what the head says.
    pub output: Dense,
}

/// A head that only training uses.
#[derive(Debug, Clone, PartialEq)]
pub enum AuxiliaryLayers {
    /// Like the value.
    Dense(DenseHead),
    /// Like the policy, of the opponent's reply.
    Reply(PolicyLayers),
    /// What stands on each square.
    Squares(SquareHead),
    /// Another last layer of the policy, behind the policy's own first convolution.
    SoftPolicy(PolicyOutput),
}

/// A head of two 1x1 convolutions, the second of which gives the logits of each square's classes.
#[derive(Debug, Clone, PartialEq)]
pub struct SquareHead {
    /// The first convolution.
    pub convolution: NormalizedConvolution,
    /// From its planes to a plane for each class of [`piece_classes`](crate::encoding::piece_classes).
    pub output: Convolution,
}

/// A convolution without bias and its normalisation.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalizedConvolution {
    /// What its tensors' names begin with, for example `blocks.0.conv1`.
    pub name: String,
    /// Input channels.
    pub inputs: u32,
    /// Output channels.
    pub outputs: u32,
    /// Squares of the kernel in a row, 1 or 3.
    pub kernel: u32,
    scale: Role,
}

/// A convolution with bias.
#[derive(Debug, Clone, PartialEq)]
pub struct Convolution {
    /// What its tensors' names begin with.
    pub name: String,
    /// Input channels.
    pub inputs: u32,
    /// Output channels.
    pub outputs: u32,
    /// Squares of the kernel in a row, 1 or 3.
    pub kernel: u32,
    weight: Role,
}

/// A dense layer with bias.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// What its tensors' names begin with, for example `value.dense1`.
    pub name: String,
    /// Inputs.
    pub inputs: u32,
    /// Outputs.
    pub outputs: u32,
    weight: Role,
}

impl Layers {
    /// The layers of a network of this specification.
    ///
    /// # Errors
    ///
    /// [`SpecError::Program`] if it is that of a program.
    pub fn new(spec: &NetworkSpec) -> Result<Self, SpecError> {
        let body = match &spec.architecture {
            Architecture::Resnet(body) => body,
            Architecture::Program(program) => return Err(SpecError::Program(*program)),
        };
        let filters = body.filters;
        let (channels, hidden, outputs) = match spec.value {
            ValueHead::Wdl { channels, hidden } => (channels, hidden, 3),
            ValueHead::Scalar { channels, hidden } => (channels, hidden, 1),
        };
        let auxiliary = spec.auxiliary.iter();
        Ok(Self {
            activation: body.activation,
            tower: Tower::Residual(ResidualTower::new(spec.input.planes() as u32, body)),
            policy: PolicyLayers::new("policy", spec, filters, (filters, 3), Last::Plays),
            value: DenseHead::new("value", [filters, channels, hidden, outputs], Last::Plays),
            auxiliary: auxiliary
                .map(|head| (*head, AuxiliaryLayers::new(*head, spec, filters)))
                .collect(),
        })
    }

    /// Every convolution with a normalisation, in the order of computation.
    pub fn normalized_convolutions(&self) -> Vec<&NormalizedConvolution> {
        let Tower::Residual(tower) = &self.tower;
        let mut list = vec![&tower.input];
        for block in &tower.blocks {
            list.extend([&block.conv1, &block.conv2]);
        }
        list.extend([&self.policy.convolution, &self.value.convolution]);
        list.extend(
            self.auxiliary
                .iter()
                .filter_map(|(_, layers)| match layers {
                    AuxiliaryLayers::Dense(head) => Some(&head.convolution),
                    AuxiliaryLayers::Reply(policy) => Some(&policy.convolution),
                    AuxiliaryLayers::Squares(head) => Some(&head.convolution),
                    AuxiliaryLayers::SoftPolicy(_) => None,
                }),
        );
        list
    }

    /// Every tensor, in the order of computation.
    pub fn tensors(&self) -> Vec<TensorLayout> {
        let mut list = Vec::new();
        let Tower::Residual(tower) = &self.tower;
        tower.input.push_tensors(&mut list);
        for block in &tower.blocks {
            block.conv1.push_tensors(&mut list);
            block.conv2.push_tensors(&mut list);
            if let Some(excitation) = &block.excitation {
                excitation.squeeze.push_tensors(&mut list);
                excitation.excite.push_tensors(&mut list);
            }
        }
        self.policy.push_tensors(&mut list);
        self.value.push_tensors(&mut list);
        for (_, layers) in &self.auxiliary {
            match layers {
                AuxiliaryLayers::Dense(head) => head.push_tensors(&mut list),
                AuxiliaryLayers::Reply(policy) => policy.push_tensors(&mut list),
                AuxiliaryLayers::Squares(head) => {
                    head.convolution.push_tensors(&mut list);
                    head.output.push_tensors(&mut list);
                }
                AuxiliaryLayers::SoftPolicy(output) => output.push_tensors(&mut list),
            }
        }
        list
    }
}

/// What the last layer of a head is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Policy or value of a position.
    Plays,
    /// Training only.
    Trains,
}

impl ResidualTower {
    fn new(planes: u32, body: &Resnet) -> Self {
        let filters = body.filters;
        let convolution = |name: String| NormalizedConvolution::new(name, filters, filters, 3);
        let block = |index: u32| {
            let name = format!("blocks.{index}");
            let excitation = |ratio: u32| {
                let units = filters / ratio.max(1);
                let (squeeze, excite) = (format!("{name}.se.squeeze"), format!("{name}.se.excite"));
                SqueezeExcitation {
                    squeeze: Dense::new(squeeze, filters, units),
                    excite: Dense::new(excite, units, 2 * filters),
                }
            };
            ResidualBlock {
                conv1: convolution(format!("{name}.conv1")),
                conv2: NormalizedConvolution {
                    scale: Role::ResidualScale,
                    ..convolution(format!("{name}.conv2"))
                },
                excitation: body.se_ratio.map(excitation),
            }
        };
        Self {
            input: NormalizedConvolution::new("input".to_owned(), planes, filters, 3),
            blocks: (0..body.blocks).map(block).collect(),
        }
    }
}

impl PolicyLayers {
    /// A policy as the specification has it; one of planes with a first convolution of these channels and this kernel.
    fn new(
        name: &str,
        spec: &NetworkSpec,
        filters: u32,
        (channels, kernel): (u32, u32),
        last: Last,
    ) -> Self {
        let convolution = |outputs, kernel| {
            NormalizedConvolution::new(format!("{name}.conv"), filters, outputs, kernel)
        };
        let convolution = match spec.policy.head {
            PolicyHead::Convolution => convolution(channels, kernel),
            PolicyHead::Dense { channels } => convolution(channels, 1),
        };
        Self {
            convolution,
            output: PolicyOutput::new(name, spec, channels, last),
        }
    }

    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        self.convolution.push_tensors(list);
        self.output.push_tensors(list);
    }
}

impl PolicyOutput {
    /// The last layer of a policy as the specification has it; planes are made of these channels.
    fn new(name: &str, spec: &NetworkSpec, channels: u32, last: Last) -> Self {
        match spec.policy.head {
            PolicyHead::Convolution => Self::Planes(Convolution {
                name: format!("{name}.planes"),
                inputs: channels,
                outputs: spec.policy.convolution_planes(),
                kernel: 3,
                weight: last.role(Role::ConvolutionWeight),
            }),
            PolicyHead::Dense { channels } => Self::Dense(Dense {
                weight: last.role(Role::DenseWeight),
                ..Dense::new(
                    format!("{name}.dense"),
                    channels * 64,
                    spec.policy.encoding.size() as u32,
                )
            }),
        }
    }

    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        match self {
            Self::Planes(planes) => planes.push_tensors(list),
            Self::Dense(dense) => dense.push_tensors(list),
        }
    }
}

impl DenseHead {
    /// A 1x1 convolution to `channels` planes, a dense layer of `hidden` units and another.
    fn new(name: &str, [filters, channels, hidden, outputs]: [u32; 4], last: Last) -> Self {
        Self {
            convolution: NormalizedConvolution::new(format!("{name}.conv"), filters, channels, 1),
            hidden: Dense::new(format!("{name}.dense1"), channels * 64, hidden),
            output: Dense {
                weight: last.role(Role::DenseWeight),
                ..Dense::new(format!("{name}.dense2"), hidden, outputs)
            },
        }
    }

    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        self.convolution.push_tensors(list);
        self.hidden.push_tensors(list);
        self.output.push_tensors(list);
    }
}

impl AuxiliaryLayers {
    fn new(head: AuxiliaryHead, spec: &NetworkSpec, filters: u32) -> Self {
        let name = format!("auxiliary.{}", head.name());
        let dense = |outputs| {
            let (channels, hidden) = (AuxiliaryHead::CHANNELS, AuxiliaryHead::HIDDEN);
            let sizes = [filters, channels, hidden, outputs];
            Self::Dense(DenseHead::new(&name, sizes, Last::Trains))
        };
        match head {
            AuxiliaryHead::MovesLeft => dense(1),
            AuxiliaryHead::ShortValue => dense(3),
            AuxiliaryHead::OpponentReply => {
                let first = (AuxiliaryHead::POLICY_CHANNELS, 1);
                Self::Reply(PolicyLayers::new(&name, spec, filters, first, Last::Trains))
            }
            AuxiliaryHead::FutureBoard | AuxiliaryHead::FinalBoard => {
                Self::Squares(SquareHead::new(&name, filters))
            }
            AuxiliaryHead::SoftPolicy => {
                Self::SoftPolicy(PolicyOutput::new(&name, spec, filters, Last::Trains))
            }
        }
    }
}

impl SquareHead {
    fn new(name: &str, filters: u32) -> Self {
        let channels = AuxiliaryHead::SQUARE_CHANNELS;
        Self {
            convolution: NormalizedConvolution::new(format!("{name}.conv"), filters, channels, 1),
            output: Convolution {
                name: format!("{name}.planes"),
                inputs: channels,
                outputs: u32::from(PIECE_CLASSES),
                kernel: 1,
                weight: Role::ConvolutionWeight,
            },
        }
    }
}

impl Last {
    /// The role of its weight, which is `other` in heads for training.
    const fn role(self, other: Role) -> Role {
        match self {
            Self::Plays => Role::OutputWeight,
            Self::Trains => other,
        }
    }
}

impl NormalizedConvolution {
    const fn new(name: String, inputs: u32, outputs: u32, kernel: u32) -> Self {
        Self {
            name,
            inputs,
            outputs,
            kernel,
            scale: Role::NormalizationScale,
        }
    }

    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        let shape = [self.outputs, self.inputs, self.kernel, self.kernel];
        let (name, vector) = (&self.name, [self.outputs]);
        list.extend([
            TensorLayout::new(name, "weight", &shape, Role::ConvolutionWeight),
            TensorLayout::new(name, "norm.weight", &vector, self.scale),
            TensorLayout::new(name, "norm.bias", &vector, Role::NormalizationBias),
            TensorLayout::new(name, "norm.mean", &vector, Role::RunningMean),
            TensorLayout::new(name, "norm.variance", &vector, Role::RunningVariance),
        ]);
    }
}

impl Convolution {
    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        let shape = [self.outputs, self.inputs, self.kernel, self.kernel];
        list.extend([
            TensorLayout::new(&self.name, "weight", &shape, self.weight),
            TensorLayout::new(&self.name, "bias", &[self.outputs], Role::Bias),
        ]);
    }
}

impl Dense {
    const fn new(name: String, inputs: u32, outputs: u32) -> Self {
        Self {
            name,
            inputs,
            outputs,
            weight: Role::DenseWeight,
        }
    }

    fn push_tensors(&self, list: &mut Vec<TensorLayout>) {
        let shape = [self.outputs, self.inputs];
        list.extend([
            TensorLayout::new(&self.name, "weight", &shape, self.weight),
            TensorLayout::new(&self.name, "bias", &[self.outputs], Role::Bias),
        ]);
    }
}
