//! Names, shapes and roles of a network's tensors.
//!
//! A [normalised convolution](super::layers::NormalizedConvolution) has no bias and a normalisation behind it
//! (`.norm`: `weight`, `bias`, `mean`, `variance`; epsilon 1e-5). Convolution weights are
//! `[out, in, height, width]`, dense weights `[out, in]`.

use super::layers::Layers;
use super::spec::NetworkSpec;

/// One tensor of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorLayout {
    /// The name in the file, for example `blocks.3.conv1.weight`.
    pub name: String,
    /// The shape.
    pub shape: Vec<u32>,
    /// What it is for.
    pub role: Role,
}

/// What a tensor is for. Initialisation, weight decay, folding and checks depend on it, never on names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The kernels of a convolution, `[outputs, inputs, height, width]`.
    ConvolutionWeight,
    /// The matrix of a dense layer, `[outputs, inputs]`.
    DenseWeight,
    /// Kernels or matrix of the last layer of policy or value.
    OutputWeight,
    /// What a dense layer, or a convolution without normalisation, adds to each output.
    Bias,
    /// The factor of a normalisation, gamma.
    NormalizationScale,
    /// The factor of the normalisation that ends the branch of a residual block.
    ResidualScale,
    /// The summand of a normalisation, beta.
    NormalizationBias,
    /// The running mean that a normalisation subtracts.
    RunningMean,
    /// The running variance by whose root a normalisation divides, never negative.
    RunningVariance,
}

impl Role {
    /// Whether the tensor holds running statistics, which no gradient moves.
    pub const fn is_statistic(self) -> bool {
        matches!(self, Self::RunningMean | Self::RunningVariance)
    }

    /// Whether weight decay applies: to kernels and matrices, but neither to biases nor to normalisations.
    pub const fn decays(self) -> bool {
        matches!(
            self,
            Self::ConvolutionWeight | Self::DenseWeight | Self::OutputWeight
        )
    }
}

impl TensorLayout {
    /// The tensor `part` of a layer.
    pub(super) fn new(layer: &str, part: &str, shape: &[u32], role: Role) -> Self {
        Self {
            name: format!("{layer}.{part}"),
            shape: shape.to_vec(),
            role,
        }
    }

    /// Numbers in the tensor.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|n| u64::from(*n)).product()
    }
}

/// The epsilon of every normalisation.
pub const NORM_EPSILON: f64 = 1e-5;

/// Every tensor of a network of this specification, in the order of computation; a program has none.
pub fn tensors(spec: &NetworkSpec) -> Vec<TensorLayout> {
    Layers::new(spec).map_or_else(|_| Vec::new(), |layers| layers.tensors())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::network::{AuxiliaryHead, PolicyHead};

    #[test]
    fn names_are_unique_and_counts_are_known() {
        let spec = NetworkSpec::resnet(2, 32);
        let tensors = tensors(&spec);
        let names: HashSet<_> = tensors.iter().map(|t| &t.name).collect();
        assert_eq!(names.len(), tensors.len());
        let conv = |i: u64, o: u64, k: u64| i * o * k * k + 4 * o;
        let dense = |i: u64, o: u64| i * o + o;
        let block = 2 * conv(32, 32, 3) + dense(32, 8) + dense(8, 64);
        let policy = conv(32, 32, 3) + 80 * 32 * 9 + 80;
        let value = conv(32, 32, 1) + dense(2048, 128) + dense(128, 3);
        assert_eq!(
            spec.parameters(),
            conv(112, 32, 3) + 2 * block + policy + value
        );
    }

    /// The names are those of files, so they never change.
    #[test]
    fn tensors_have_the_names_of_files_and_roles() {
        let mut spec = NetworkSpec::resnet(1, 8);
        spec.auxiliary = vec![
            AuxiliaryHead::MovesLeft,
            AuxiliaryHead::OpponentReply,
            AuxiliaryHead::FutureBoard,
            AuxiliaryHead::SoftPolicy,
        ];
        let text: Vec<String> = tensors(&spec)
            .into_iter()
            .map(|t| format!("{} {:?} {:?}", t.name, t.shape, t.role))
            .collect();
        let expected = "\
input.weight [8, 112, 3, 3] ConvolutionWeight
input.norm.weight [8] NormalizationScale
input.norm.bias [8] NormalizationBias
input.norm.mean [8] RunningMean
input.norm.variance [8] RunningVariance
blocks.0.conv1.weight [8, 8, 3, 3] ConvolutionWeight
blocks.0.conv1.norm.weight [8] NormalizationScale
blocks.0.conv1.norm.bias [8] NormalizationBias
blocks.0.conv1.norm.mean [8] RunningMean
blocks.0.conv1.norm.variance [8] RunningVariance
blocks.0.conv2.weight [8, 8, 3, 3] ConvolutionWeight
blocks.0.conv2.norm.weight [8] ResidualScale
blocks.0.conv2.norm.bias [8] NormalizationBias
blocks.0.conv2.norm.mean [8] RunningMean
blocks.0.conv2.norm.variance [8] RunningVariance
blocks.0.se.squeeze.weight [2, 8] DenseWeight
blocks.0.se.squeeze.bias [2] Bias
blocks.0.se.excite.weight [16, 2] DenseWeight
blocks.0.se.excite.bias [16] Bias
policy.conv.weight [8, 8, 3, 3] ConvolutionWeight
policy.conv.norm.weight [8] NormalizationScale
policy.conv.norm.bias [8] NormalizationBias
policy.conv.norm.mean [8] RunningMean
policy.conv.norm.variance [8] RunningVariance
policy.planes.weight [80, 8, 3, 3] OutputWeight
policy.planes.bias [80] Bias
value.conv.weight [32, 8, 1, 1] ConvolutionWeight
value.conv.norm.weight [32] NormalizationScale
value.conv.norm.bias [32] NormalizationBias
value.conv.norm.mean [32] RunningMean
value.conv.norm.variance [32] RunningVariance
value.dense1.weight [128, 2048] DenseWeight
value.dense1.bias [128] Bias
value.dense2.weight [3, 128] OutputWeight
value.dense2.bias [3] Bias
auxiliary.moves-left.conv.weight [8, 8, 1, 1] ConvolutionWeight
auxiliary.moves-left.conv.norm.weight [8] NormalizationScale
auxiliary.moves-left.conv.norm.bias [8] NormalizationBias
auxiliary.moves-left.conv.norm.mean [8] RunningMean
auxiliary.moves-left.conv.norm.variance [8] RunningVariance
auxiliary.moves-left.dense1.weight [64, 512] DenseWeight
auxiliary.moves-left.dense1.bias [64] Bias
auxiliary.moves-left.dense2.weight [1, 64] DenseWeight
auxiliary.moves-left.dense2.bias [1] Bias
auxiliary.opponent-reply.conv.weight [16, 8, 1, 1] ConvolutionWeight
auxiliary.opponent-reply.conv.norm.weight [16] NormalizationScale
auxiliary.opponent-reply.conv.norm.bias [16] NormalizationBias
auxiliary.opponent-reply.conv.norm.mean [16] RunningMean
auxiliary.opponent-reply.conv.norm.variance [16] RunningVariance
auxiliary.opponent-reply.planes.weight [80, 16, 3, 3] ConvolutionWeight
auxiliary.opponent-reply.planes.bias [80] Bias
auxiliary.future-board.conv.weight [32, 8, 1, 1] ConvolutionWeight
auxiliary.future-board.conv.norm.weight [32] NormalizationScale
auxiliary.future-board.conv.norm.bias [32] NormalizationBias
auxiliary.future-board.conv.norm.mean [32] RunningMean
auxiliary.future-board.conv.norm.variance [32] RunningVariance
auxiliary.future-board.planes.weight [13, 32, 1, 1] ConvolutionWeight
auxiliary.future-board.planes.bias [13] Bias
auxiliary.soft-policy.planes.weight [80, 8, 3, 3] ConvolutionWeight
auxiliary.soft-policy.planes.bias [80] Bias";
        assert_eq!(text.join("\n"), expected);
        spec.policy.head = PolicyHead::Dense { channels: 2 };
        let dense = tensors(&spec);
        let role = |name: &str| dense.iter().find(|t| t.name == name).map(|t| t.role);
        assert_eq!(role("policy.dense.weight"), Some(Role::OutputWeight));
        assert_eq!(
            role("auxiliary.opponent-reply.dense.weight"),
            Some(Role::DenseWeight)
        );
    }
}
