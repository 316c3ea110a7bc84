//! A network's numbers for other programs, which know neither normalisations after convolutions
//! nor divided counts: both are multiplied into the weights.

use rookery_common::encoding::InputEncoding;

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
    /// A convolution with its normalisation; the one named `input` takes planes as
    /// `rookery_common::encoding` counts them.
    pub(crate) fn convolution(weights: &Weights, name: &str) -> Result<Self> {
        let FoldedConvolution {
            outputs,
            inputs,
            kernel,
            mut weight,
            bias,
        } = FoldedConvolution::new(weights, name)?;
        if name == "input" {
            undivide(&mut weight, weights.spec().input);
        }
        let single = |numbers: Vec<f64>| numbers.into_iter().map(|number| number as f32).collect();
        let shape = [outputs, inputs, kernel, kernel].map(|n| n as u32).to_vec();
        let weight = Tensor {
            shape,
            values: single(weight),
        };
        let bias = Tensor {
            shape: vec![outputs as u32],
            values: single(bias),
        };
        Self::new(name, weight, bias)
    }

    /// A dense layer, or a convolution without normalisation.
    pub(crate) fn affine(weights: &Weights, name: &str) -> Result<Self> {
        let part = |part: &str| weights.get(&format!("{name}.{part}")).cloned();
        Self::new(name, part("weight")?, part("bias")?)
    }

    fn new(name: &str, weight: Tensor, bias: Tensor) -> Result<Self> {
        Ok(Self {
            weight: finite(&format!("{name}.weight"), weight)?,
            bias: finite(&format!("{name}.bias"), bias)?,
        })
    }
}

/// The numbers of a tensor as it is, but `input.weight` for undivided counts.
pub(crate) fn raw(weights: &Weights, name: &str) -> Result<Vec<f32>> {
    let mut tensor = weights.get(name)?.clone();
    if name == "input.weight" {
        let mut wide: Vec<f64> = tensor.values.iter().copied().map(f64::from).collect();
        undivide(&mut wide, weights.spec().input);
        tensor.values = wide.into_iter().map(|number| number as f32).collect();
    }
    Ok(finite(name, tensor)?.values)
}

fn finite(name: &str, tensor: Tensor) -> Result<Tensor> {
    if tensor.values.iter().all(|number| number.is_finite()) {
        Ok(tensor)
    } else {
        Err(ModelError::NotComputable(name.to_owned()))
    }
}

/// Makes a first weight `[outputs][planes][3][3]` one for counts that are not divided.
fn undivide(weight: &mut [f64], input: InputEncoding) {
    for (weight, scale) in with_scales(weight, input) {
        *weight /= scale;
    }
}

/// Each number of a first weight `[outputs][planes][3][3]` with what its plane is divided by before
/// the convolution.
pub(crate) fn with_scales<T>(
    weight: &mut [T],
    input: InputEncoding,
) -> impl Iterator<Item = (&mut T, f64)> {
    let binary = std::iter::repeat_n(1.0, input.binary_planes());
    let scales = binary.chain(input.scalar_scales().iter().copied().map(f64::from));
    let scales: Vec<f64> = scales.flat_map(|scale| [scale; 9]).collect();
    let planes = scales.len();
    weight
        .iter_mut()
        .enumerate()
        .map(move |(index, weight)| (weight, scales[index % planes]))
}
