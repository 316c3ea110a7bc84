//! A network's numbers for other programs, which know neither normalisations after convolutions
//! nor divided counts: both are multiplied into the weights.

use rookery_common::encoding::InputEncoding;
use rookery_common::network::NormalizedConvolution;

use crate::error::{ModelError, Result};
use crate::folding::FoldedConvolution;
use crate::weights::{Tensor, Weights};

/// Weight and bias of a layer, all numbers finite.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) weight: Tensor,
    pub(crate) bias: Tensor,
}

impl Layer {
    /// A convolution with its normalisation.
    pub(crate) fn convolution(weights: &Weights, layer: &NormalizedConvolution) -> Result<Self> {
        Self::folded(&FoldedConvolution::new(weights, layer)?, &layer.name)
    }

    /// The convolution of the planes, for planes as `rookery_common::encoding` counts them.
    pub(crate) fn input(weights: &Weights, layer: &NormalizedConvolution) -> Result<Self> {
        let mut folded = FoldedConvolution::new(weights, layer)?;
        for (weight, scale) in with_scales(&mut folded.weight, weights.spec().input) {
            *weight /= scale;
        }
        Self::folded(&folded, &layer.name)
    }

    /// A layer without normalisation.
    pub(crate) fn affine(weights: &Weights, name: &str) -> Result<Self> {
        let part = |part: &str| weights.get(&format!("{name}.{part}")).cloned();
        Self::new(name, part("weight")?, part("bias")?)
    }

    fn folded(folded: &FoldedConvolution, name: &str) -> Result<Self> {
        let kernel = folded.kernel as u32;
        let (outputs, inputs) = (folded.outputs as u32, folded.inputs as u32);
        let tensor = |shape: &[u32], numbers: &[f64]| Tensor {
            shape: shape.to_vec(),
            values: numbers.iter().map(|number| *number as f32).collect(),
        };
        let weight = tensor(&[outputs, inputs, kernel, kernel], &folded.weight);
        Self::new(name, weight, tensor(&[outputs], &folded.bias))
    }

    fn new(name: &str, weight: Tensor, bias: Tensor) -> Result<Self> {
        Ok(Self {
            weight: finite(&format!("{name}.weight"), weight)?,
            bias: finite(&format!("{name}.bias"), bias)?,
        })
    }
}

/// The numbers of a tensor as it is.
pub(crate) fn raw(weights: &Weights, name: &str) -> Result<Vec<f32>> {
    Ok(finite(name, weights.get(name)?.clone())?.values)
}

/// The weight of the convolution of the planes as it is, but for undivided counts.
pub(crate) fn raw_input(weights: &Weights, layer: &NormalizedConvolution) -> Result<Vec<f32>> {
    let name = format!("{}.weight", layer.name);
    let mut tensor = weights.get(&name)?.clone();
    for (weight, scale) in with_scales(&mut tensor.values, weights.spec().input) {
        *weight = (f64::from(*weight) / scale) as f32;
    }
    Ok(finite(&name, tensor)?.values)
}

fn finite(name: &str, tensor: Tensor) -> Result<Tensor> {
    if tensor.values.iter().all(|number| number.is_finite()) {
        Ok(tensor)
    } else {
        Err(ModelError::NotComputable(name.to_owned()))
    }
}

/// Each number of a weight `[outputs][planes][3][3]` with what its plane is divided by before the
/// convolution.
pub(crate) fn with_scales<T>(
    weight: &mut [T],
    input: InputEncoding,
) -> impl Iterator<Item = (&mut T, f64)> {
    let binary = std::iter::repeat_n(1.0, input.binary_planes());
    let scales = binary.chain(input.scalar_scales().iter().copied().map(f64::from));
    let scales: Vec<f64> = scales.flat_map(|scale| [scale; 9]).collect();
    let period = scales.len();
    let numbers = weight.iter_mut().enumerate();
    numbers.map(move |(index, weight)| (weight, scales[index % period]))
}
