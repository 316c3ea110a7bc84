//! Batch-norm folding: a convolution's normalisation multiplied into its weight and bias.

use rookery_common::network::NormalizedConvolution;
use rookery_common::network::layout::NORM_EPSILON;

use crate::error::Result;
use crate::weights::Weights;

/// A convolution and its normalisation in one, in 64 bits, so that a further transform
/// rounds once.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldedConvolution {
    /// Output channels.
    pub outputs: usize,
    /// Input channels.
    pub inputs: usize,
    /// Squares of the kernel in a row: 1 or 3.
    pub kernel: usize,
    /// `[outputs][inputs][kernel][kernel]`: `weight * gamma / sqrt(variance + epsilon)`.
    pub weight: Vec<f64>,
    /// `[outputs]`: `beta - mean * gamma / sqrt(variance + epsilon)`.
    pub bias: Vec<f64>,
}

impl FoldedConvolution {
    /// Folds a convolution of a network.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tensor`](crate::ModelError::Tensor) if the network has no such convolution.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::network::{Layers, NetworkSpec};
    /// use rookery_model::{FoldedConvolution, Weights};
    ///
    /// let weights = Weights::random(NetworkSpec::resnet(1, 8), 1)?;
    /// let layers = Layers::new(weights.spec())?;
    /// let folded = FoldedConvolution::new(&weights, &layers.value.convolution)?;
    /// assert_eq!((folded.outputs, folded.inputs, folded.kernel), (32, 8, 1));
    /// assert_eq!(folded.weight.len(), 32 * 8);
    /// # Ok::<(), rookery_model::ModelError>(())
    /// ```
    pub fn new(weights: &Weights, layer: &NormalizedConvolution) -> Result<Self> {
        let part = |part: &str| -> Result<&[f32]> {
            Ok(weights.get(&format!("{}.{part}", layer.name))?.values())
        };
        let (gamma, beta) = (part("norm.weight")?, part("norm.bias")?);
        let (mean, variance) = (part("norm.mean")?, part("norm.variance")?);
        let scale = gamma.iter().zip(variance).map(|(gamma, variance)| {
            f64::from(*gamma) / (f64::from(*variance) + NORM_EPSILON).sqrt()
        });
        let scale: Vec<f64> = scale.collect();
        let [outputs, inputs, kernel] =
            [layer.outputs, layer.inputs, layer.kernel].map(|size| size as usize);
        let weight = part("weight")?
            .chunks(inputs * kernel * kernel)
            .zip(&scale)
            .flat_map(|(row, scale)| row.iter().map(move |weight| f64::from(*weight) * scale));
        let shift = beta.iter().zip(mean).zip(&scale);
        let bias = shift.map(|((beta, mean), scale)| f64::from(*beta) - f64::from(*mean) * scale);
        Ok(Self {
            outputs,
            inputs,
            kernel,
            weight: weight.collect(),
            bias: bias.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::{Layers, NetworkSpec};

    use super::*;
    use crate::testing::busy_weights;

    /// By the definition of the normalisation: convolve, subtract the mean, divide by the deviation, scale, shift.
    #[test]
    fn a_folded_convolution_is_the_convolution_and_its_normalisation() {
        let weights = busy_weights(&NetworkSpec::resnet(1, 8), 3);
        let layers = Layers::new(weights.spec()).unwrap();
        let folded = FoldedConvolution::new(&weights, &layers.value.convolution).unwrap();
        let value = |part: &str, index: usize| {
            f64::from(weights.get(&format!("value.conv.{part}")).unwrap().values()[index])
        };
        let x: Vec<f64> = (0..8).map(|channel| f64::from(channel) - 2.5).collect();
        for output in 0..folded.outputs {
            let sum = (0..8).map(|input| value("weight", 8 * output + input) * x[input]);
            let deviation = (value("norm.variance", output) + NORM_EPSILON).sqrt();
            let normalised = (sum.sum::<f64>() - value("norm.mean", output)) / deviation;
            let expected = normalised * value("norm.weight", output) + value("norm.bias", output);
            let row = &folded.weight[8 * output..][..8];
            let found = row
                .iter()
                .zip(&x)
                .map(|(weight, x)| weight * x)
                .sum::<f64>();
            let found = found + folded.bias[output];
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
    }
}
