//! Convolutions with their normalisation, as files have them: with biases, or the normalisation, or
//! both.

use rookery_common::network::layout::NORM_EPSILON;

use super::error::{Lc0Error, Lc0Result};
use super::layer::{Named, optional, required};
use super::wire::weights::{ConvBlock, Layer};

/// A convolution and its normalisation.
pub(super) struct Normed {
    pub(super) weight: Vec<f32>,
    pub(super) gamma: Vec<f32>,
    pub(super) beta: Vec<f32>,
    pub(super) mean: Vec<f32>,
    pub(super) variance: Vec<f32>,
}

impl Normed {
    /// Reads a convolution with these numbers of weights and outputs, called `lc0` in messages; a missing
    /// normalisation becomes one that only adds the biases.
    pub(super) fn read(
        block: &ConvBlock,
        lc0: &str,
        weights: usize,
        outputs: usize,
    ) -> Lc0Result<Self> {
        let label = |part: &str| format!("{lc0}.{part}");
        let vector = |layer: &Option<Layer>, part: &str| {
            let label = label(part);
            let found = optional(layer.as_ref(), &label)?;
            found.map(|layer| layer.numbers(outputs)).transpose()
        };
        let weight = required(block.weights.as_ref(), &label("weights"))?.numbers(weights)?;
        let biases = vector(&block.biases, "biases")?;
        let Some(mut mean) = vector(&block.bn_means, "bn_means")? else {
            let missing = || Lc0Error::Missing(label("biases"));
            return Ok(Self::biased(weight, biases.ok_or_else(missing)?));
        };
        for (mean, bias) in mean.iter_mut().zip(biases.unwrap_or_default()) {
            *mean -= bias;
        }
        let label = label("bn_stddivs");
        let layer = required(block.bn_stddivs.as_ref(), &label)?;
        Ok(Self {
            weight,
            gamma: vector(&block.bn_gammas, "bn_gammas")?.unwrap_or_else(|| vec![1.0; outputs]),
            beta: vector(&block.bn_betas, "bn_betas")?.unwrap_or_else(|| vec![0.0; outputs]),
            mean,
            variance: variances(layer, outputs)?,
        })
    }

    fn biased(weight: Vec<f32>, biases: Vec<f32>) -> Self {
        let outputs = biases.len();
        Self {
            weight,
            gamma: vec![1.0; outputs],
            beta: biases,
            mean: vec![0.0; outputs],
            variance: vec![(1.0 - NORM_EPSILON) as f32; outputs],
        }
    }
}

fn variances(layer: Named<'_>, count: usize) -> Lc0Result<Vec<f32>> {
    let variances = layer.numbers(count)?;
    if variances.iter().any(|variance| *variance < 0.0) {
        return Err(layer.holds("a negative variance"));
    }
    Ok(variances)
}

/// Weights and biases of a convolution like [`Normed::read`]'s, whose normalisation, if it has one,
/// is multiplied into them.
pub(super) fn folded(
    block: &ConvBlock,
    lc0: &str,
    weights: usize,
    outputs: usize,
) -> Lc0Result<[Vec<f32>; 2]> {
    let mut parts = Normed::read(block, lc0, weights, outputs)?;
    if optional(block.bn_means.as_ref(), lc0)?.is_none() {
        return Ok([parts.weight, parts.beta]);
    }
    let rows = parts.weight.chunks_exact_mut(weights / outputs);
    for (output, row) in rows.enumerate() {
        let deviation = (f64::from(parts.variance[output]) + NORM_EPSILON).sqrt();
        let scale = f64::from(parts.gamma[output]) / deviation;
        for weight in row {
            *weight = (f64::from(*weight) * scale) as f32;
        }
        let shift = f64::from(parts.mean[output]) * scale;
        parts.beta[output] = (f64::from(parts.beta[output]) - shift) as f32;
    }
    Ok([parts.weight, parts.beta])
}
