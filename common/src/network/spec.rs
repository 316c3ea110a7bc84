//! The specification that every network file carries in its header.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auxiliary::AuxiliaryHead;
use super::error::SpecError;
use super::program::{DEEPEST_IN_RUNS, MOST_RANDOM, Program};
use crate::encoding::{InputEncoding, PolicyEncoding};
use crate::ids::ContentHash;
use crate::text::is_plain;

/// Everything that is needed to build a network, and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NetworkSpec {
    /// The body between input and heads.
    pub architecture: Architecture,
    /// What the network sees.
    pub input: InputEncoding,
    /// What its policy output means and how it is made.
    pub policy: PolicySpec,
    /// What its value output is.
    pub value: ValueHead,
    /// Share of the value head's hidden units that each training step leaves out, 0 to 0.9
    /// (dropout, Srivastava et al. 2014). Evaluation uses all of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub value_dropout: f32,
    /// Heads that only training uses, none twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<AuxiliaryHead>,
    /// The program and version that made the file, in at most 128 characters.
    #[serde(default)]
    pub creator: String,
    /// The network from which training started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ContentHash>,
    /// Optimiser steps since random initialisation.
    #[serde(default)]
    pub training_step: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(share: &f32) -> bool {
    *share == 0.0
}

/// The body of a network. New architectures join as variants; old files keep loading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Architecture {
    /// A residual convolution tower, with squeeze-excitation where `se_ratio` is given.
    Resnet(Resnet),
    /// No network: a program that everybody has. The rest of such a specification is always the same
    /// and means nothing.
    Program(Program),
}

/// Sizes of a residual tower (He et al. 2016; squeeze-excitation as Lc0 does it).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resnet {
    /// Residual blocks, 1 to 64.
    pub blocks: u32,
    /// Filters of every convolution in the tower, a multiple of 8 from 8 to 1024.
    pub filters: u32,
    /// The squeeze-excitation layer has `filters / se_ratio` units; without it, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub se_ratio: Option<u32>,
    /// The activation after every normalisation.
    #[serde(default)]
    pub activation: Activation,
}

/// An activation function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[cfg_attr(feature = "command-line", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(0, x).
    #[default]
    Relu,
    /// x tanh(softplus(x)) (Misra 2019).
    Mish,
}

/// The policy output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicySpec {
    /// Which output stands for which move.
    pub encoding: PolicyEncoding,
    /// How the outputs are computed.
    pub head: PolicyHead,
}

/// How policy outputs are computed from the tower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PolicyHead {
    /// A 3x3 convolution with normalisation, then a 3x3 convolution to planes: 80 of them for
    /// `lc0-1858` (Lc0's map), 73 for `az-73`. Not possible for `flat-1968`.
    Convolution,
    /// A 1x1 convolution to `channels` planes with normalisation, then a dense layer.
    Dense {
        /// Planes before the dense layer, 1 to 256.
        channels: u32,
    },
}

/// The value output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ValueHead {
    /// Three logits: the mover wins, draws, loses.
    Wdl {
        /// Planes of the 1x1 convolution, 1 to 256.
        channels: u32,
        /// Units of the hidden dense layer, 1 to 2048.
        hidden: u32,
    },
    /// One number from -1 (the mover loses) to 1, by tanh.
    Scalar {
        /// Planes of the 1x1 convolution, 1 to 256.
        channels: u32,
        /// Units of the hidden dense layer, 1 to 2048.
        hidden: u32,
    },
}

/// Longest name of a creator, in characters.
pub(super) const CREATOR_CHARS: usize = 128;

/// Most steps that a network may say it was trained for: what every reader of JSON counts exactly.
const MAX_TRAINING_STEP: u64 = 1 << 53;

/// Most parameters of a network: one gigabyte of 32-bit numbers.
pub const MAX_PARAMETERS: u64 = 250_000_000;

fn within(what: &'static str, value: u32, low: u32, high: u32) -> Result<(), SpecError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        let [value, low, high] = [value, low, high].map(u64::from);
        Err(SpecError::OutOfBounds {
            what,
            value,
            low,
            high,
        })
    }
}

impl NetworkSpec {
    /// The default network of a size: `lc0-112` input, squeeze-excitation with ratio 8 (at most
    /// 32 units wide filters get ratio 4), `lc0-1858` policy by convolution, WDL value. Such a
    /// network is an lc0 network weight for weight.
    pub fn resnet(blocks: u32, filters: u32) -> Self {
        let se_ratio = Some(if filters <= 32 { 4 } else { 8 });
        Self {
            architecture: Architecture::Resnet(Resnet {
                blocks,
                filters,
                se_ratio,
                activation: Activation::Relu,
            }),
            input: InputEncoding::Lc0112,
            policy: PolicySpec {
                encoding: PolicyEncoding::Lc01858,
                head: PolicyHead::Convolution,
            },
            value: ValueHead::Wdl {
                channels: 32,
                hidden: 128,
            },
            value_dropout: 0.0,
            auxiliary: Vec::new(),
            creator: String::new(),
            parent: None,
            training_step: 0,
        }
    }

    /// What stands in the file of a program: its name, and besides it what every specification has.
    pub fn of_program(program: Program) -> Self {
        Self {
            architecture: Architecture::Program(program),
            ..Self::resnet(1, 8)
        }
    }

    /// The default network of a shape written `blocks x filters`, for example `6x64`.
    ///
    /// # Errors
    ///
    /// [`SpecError`] for another text or sizes outside the bounds.
    pub fn from_shape(shape: &str) -> Result<Self, SpecError> {
        let refuse = || SpecError::Shape(shape.chars().take(40).collect());
        let (blocks, filters) = shape.split_once('x').ok_or_else(refuse)?;
        let number = |text: &str| text.trim().parse().map_err(|_| refuse());
        let spec = Self::resnet(number(blocks)?, number(filters)?);
        spec.check()?;
        Ok(spec)
    }

    /// Blocks and filters, as people name networks: `6x64`; the name of a program.
    pub fn shape(&self) -> String {
        match &self.architecture {
            Architecture::Resnet(body) => format!("{}x{}", body.blocks, body.filters),
            Architecture::Program(program) => program.to_string(),
        }
    }

    /// The tower of a network.
    ///
    /// # Errors
    ///
    /// [`SpecError::Program`] if this is none.
    pub const fn body(&self) -> Result<&Resnet, SpecError> {
        match &self.architecture {
            Architecture::Resnet(body) => Ok(body),
            Architecture::Program(program) => Err(SpecError::Program(*program)),
        }
    }

    /// The tower of a network, to be changed.
    ///
    /// # Errors
    ///
    /// [`SpecError::Program`] if this is none.
    pub const fn body_mut(&mut self) -> Result<&mut Resnet, SpecError> {
        match &mut self.architecture {
            Architecture::Resnet(body) => Ok(body),
            Architecture::Program(program) => Err(SpecError::Program(*program)),
        }
    }

    /// The program that this is instead of a network.
    pub const fn program(&self) -> Option<Program> {
        match &self.architecture {
            Architecture::Resnet(_) => None,
            Architecture::Program(program) => Some(*program),
        }
    }

    /// Checks every size against its bounds, and the creator's name; of a program, that it is one
    /// for runs and nothing else is said of it.
    ///
    /// # Errors
    ///
    /// The first [`SpecError`] found.
    pub fn check(&self) -> Result<(), SpecError> {
        match &self.architecture {
            Architecture::Resnet(body) => body.check()?,
            Architecture::Program(program) => return self.check_program(*program),
        }
        match self.policy.head {
            PolicyHead::Convolution if self.policy.encoding == PolicyEncoding::Flat1968 => {
                return Err(SpecError::NoConvolutionHead(self.policy.encoding.name()));
            }
            PolicyHead::Convolution => {}
            PolicyHead::Dense { channels } => within("policy channels", channels, 1, 256)?,
        }
        let (ValueHead::Wdl { channels, hidden } | ValueHead::Scalar { channels, hidden }) =
            self.value;
        within("value channels", channels, 1, 256)?;
        within("value hidden units", hidden, 1, 2048)?;
        if !(0.0..=0.9).contains(&self.value_dropout) {
            return Err(SpecError::Dropout);
        }
        for (place, head) in self.auxiliary.iter().enumerate() {
            if self.auxiliary[..place].contains(head) {
                return Err(SpecError::HeadTwice(head.name()));
            }
        }
        if self.training_step > MAX_TRAINING_STEP {
            return Err(SpecError::OutOfBounds {
                what: "training_step",
                value: self.training_step,
                low: 0,
                high: MAX_TRAINING_STEP,
            });
        }
        if !is_plain(&self.creator, CREATOR_CHARS) {
            return Err(SpecError::Creator);
        }
        let parameters = self.parameters();
        if parameters > MAX_PARAMETERS {
            return Err(SpecError::TooLarge(parameters));
        }
        Ok(())
    }

    fn check_program(&self, program: Program) -> Result<(), SpecError> {
        if let Program::AlphaBeta { depth, random } = program {
            within("depth", depth, 1, DEEPEST_IN_RUNS)?;
            within("random", random, 0, MOST_RANDOM)?;
        }
        if *self == Self::of_program(program) {
            Ok(())
        } else {
            Err(SpecError::MoreThanProgram(program))
        }
    }

    /// Number of parameters, running statistics of normalisations included; 0 of a program.
    pub fn parameters(&self) -> u64 {
        super::layout::tensors(self)
            .iter()
            .map(super::TensorLayout::elements)
            .sum()
    }
}

impl Resnet {
    fn check(&self) -> Result<(), SpecError> {
        within("blocks", self.blocks, 1, 64)?;
        within("filters", self.filters, 8, 1024)?;
        if !self.filters.is_multiple_of(8) {
            return Err(SpecError::FiltersNotMultipleOfEight(self.filters));
        }
        let Some(se_ratio) = self.se_ratio else {
            return Ok(());
        };
        within("se_ratio", se_ratio, 1, self.filters)?;
        if self.filters.is_multiple_of(se_ratio) {
            Ok(())
        } else {
            Err(SpecError::SeRatio {
                se_ratio,
                filters: self.filters,
            })
        }
    }
}

impl PolicySpec {
    /// Planes of the convolution head (Lc0's has 80 and uses 73).
    pub const fn convolution_planes(&self) -> u32 {
        match self.encoding {
            PolicyEncoding::Lc01858 => 80,
            PolicyEncoding::Az73 | PolicyEncoding::Flat1968 => 73,
        }
    }

    /// Number of raw outputs of the head; a convolution head of `lc0-1858` has 80 planes of 64
    /// cells, of which [`lc0_conv_cells`](crate::encoding::policy::lc0_conv_cells) are used.
    pub const fn outputs(&self) -> usize {
        match self.head {
            PolicyHead::Convolution => self.convolution_planes() as usize * 64,
            PolicyHead::Dense { .. } => self.encoding.size(),
        }
    }

    /// The raw output that holds the policy index `index`.
    pub fn output_of(&self, index: u16) -> u16 {
        match (self.head, self.encoding) {
            (PolicyHead::Convolution, PolicyEncoding::Lc01858) => {
                crate::encoding::policy::lc0_conv_cells()[usize::from(index)]
            }
            _ => index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_round_trips_through_json() {
        let spec = NetworkSpec::from_shape("6x64").unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<NetworkSpec>(&json).unwrap(), spec);
        assert_eq!(spec.shape(), "6x64");
    }

    #[test]
    fn programs_are_named_and_nothing_else_is_said_of_them() {
        for (name, json) in [
            ("random", r#"{"kind":"program","program":"random"}"#),
            (
                "alphabeta:3",
                r#"{"kind":"program","program":"alphabeta","depth":3}"#,
            ),
        ] {
            let program: Program = name.parse().unwrap();
            let spec = NetworkSpec::of_program(program);
            assert_eq!(spec.check(), Ok(()));
            assert_eq!((spec.shape().as_str(), spec.parameters()), (name, 0));
            assert_eq!(spec.program(), Some(program));
            let error = spec.body().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            let text = serde_json::to_string(&spec).unwrap();
            assert!(text.contains(json), "{text}");
            assert_eq!(serde_json::from_str::<NetworkSpec>(&text).unwrap(), spec);
            let trained = NetworkSpec {
                training_step: 1,
                ..spec.clone()
            };
            assert_eq!(trained.check(), Err(SpecError::MoreThanProgram(program)));
            let other = NetworkSpec {
                input: InputEncoding::Az119,
                ..spec
            };
            assert_eq!(other.check(), Err(SpecError::MoreThanProgram(program)));
        }
        for depth in [0, 5, u32::MAX] {
            let deep = NetworkSpec::of_program(Program::alpha_beta(depth));
            let error = deep.check().unwrap_err().to_string();
            assert!(error.ends_with("allowed is 1 to 4"), "{error}");
        }
        let wild = NetworkSpec::of_program(Program::AlphaBeta {
            depth: 1,
            random: 100,
        });
        let error = wild.check().unwrap_err().to_string();
        assert!(error.ends_with("allowed is 0 to 99"), "{error}");
        assert_eq!(NetworkSpec::resnet(1, 8).program(), None);
    }

    #[test]
    fn sizes_outside_the_bounds_are_refused() {
        for shape in [
            "", "6", "x", "0x64", "65x64", "6x7", "6x12", "6x2048", "64x1024", "-1x64",
        ] {
            assert!(NetworkSpec::from_shape(shape).is_err(), "{shape}");
        }
    }

    #[test]
    fn dropout_is_a_share_and_old_files_have_none() {
        let mut spec = NetworkSpec::resnet(4, 32);
        let json = serde_json::to_string(&spec).unwrap();
        assert!(!json.contains("dropout"), "{json}");
        spec.value_dropout = 0.4;
        assert_eq!(spec.check(), Ok(()));
        for bad in [-0.1, 1.0, f32::NAN] {
            spec.value_dropout = bad;
            assert_eq!(spec.check(), Err(SpecError::Dropout));
        }
    }

    #[test]
    fn steps_have_a_bound() {
        let mut spec = NetworkSpec::resnet(4, 32);
        spec.training_step = MAX_TRAINING_STEP;
        assert_eq!(spec.check(), Ok(()));
        for bad in [MAX_TRAINING_STEP + 1, u64::MAX] {
            spec.training_step = bad;
            let error = spec.check().unwrap_err().to_string();
            assert!(error.starts_with("training_step is "), "{error}");
        }
    }

    #[test]
    fn creators_that_mislead_are_refused() {
        let mut spec = NetworkSpec::resnet(4, 32);
        for (creator, expected) in [
            ("x".repeat(128), Ok(())),
            ("x".repeat(129), Err(SpecError::Creator)),
            ("a\u{1b}[2J".to_owned(), Err(SpecError::Creator)),
            ("\u{202e}reniart".to_owned(), Err(SpecError::Creator)),
        ] {
            spec.creator = creator;
            assert_eq!(spec.check(), expected, "{:?}", spec.creator);
        }
    }

    #[test]
    fn auxiliary_heads_are_known_and_old_files_have_none() {
        let mut spec = NetworkSpec::resnet(4, 32);
        let json = serde_json::to_string(&spec).unwrap();
        assert!(!json.contains("auxiliary"), "{json}");
        spec.auxiliary = AuxiliaryHead::ALL.to_vec();
        assert_eq!(spec.check(), Ok(()));
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<NetworkSpec>(&json).unwrap(), spec);
        let unknown = json.replace("moves-left", "crystal-ball");
        let error = serde_json::from_str::<NetworkSpec>(&unknown).unwrap_err();
        assert!(error.to_string().contains("crystal-ball"), "{error}");
        spec.auxiliary.push(AuxiliaryHead::MovesLeft);
        assert_eq!(spec.check(), Err(SpecError::HeadTwice("moves-left")));
    }

    #[test]
    fn a_flat_policy_has_no_convolution_head() {
        let mut spec = NetworkSpec::resnet(4, 32);
        spec.policy.encoding = PolicyEncoding::Flat1968;
        assert_eq!(spec.check(), Err(SpecError::NoConvolutionHead("flat-1968")));
    }
}
