//! A network's numbers for other programs, which know neither normalisations after convolutions
//! nor divided counts: both are multiplied into the weights.

use rookery_common::encoding::InputEncoding;
use tch::{Kind, Tensor};

use crate::error::{NnError, Result, TorchResult};
use crate::folded::fold;
use crate::tensors::to_f32;
use crate::weights::Weights;

/// An array of finite numbers, the last dimension fastest.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<i64>,
    pub(crate) numbers: Vec<f32>,
}

/// Weight and bias of a layer.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) weight: Array,
    pub(crate) bias: Array,
}

impl Layer {
    /// A convolution with its normalisation; the one named `input` takes planes as
    /// `rookery_common::encoding` counts them.
    pub(crate) fn convolution(weights: &Weights, name: &str) -> Result<Self> {
        let [mut weight, bias] = fold(weights, name)?;
        if name == "input" {
            weight = weight.f_div(&input_scales(weights.spec().input)?)?;
        }
        Self::new(name, &weight, &bias)
    }

    /// A dense layer, or a convolution without normalisation.
    pub(crate) fn affine(weights: &Weights, name: &str) -> Result<Self> {
        let part = |part: &str| weights.get(&format!("{name}.{part}"));
        Self::new(name, part("weight")?, part("bias")?)
    }

    fn new(name: &str, weight: &Tensor, bias: &Tensor) -> Result<Self> {
        Ok(Self {
            weight: Array::new(&format!("{name}.weight"), weight)?,
            bias: Array::new(&format!("{name}.bias"), bias)?,
        })
    }
}

impl Array {
    /// A tensor as it is, but `input.weight` for undivided counts.
    pub(crate) fn raw(weights: &Weights, name: &str) -> Result<Self> {
        let tensor = weights.get(name)?;
        if name != "input.weight" {
            return Self::new(name, tensor);
        }
        let scales = input_scales(weights.spec().input)?;
        Self::new(name, &tensor.f_to_kind(Kind::Double)?.f_div(&scales)?)
    }

    fn new(name: &str, tensor: &Tensor) -> Result<Self> {
        let (shape, numbers) = (tensor.size(), to_f32(tensor)?);
        if numbers.iter().all(|number| number.is_finite()) {
            Ok(Self { shape, numbers })
        } else {
            Err(NnError::NotComputable(name.to_owned()))
        }
    }
}

/// What each plane is divided by before the input convolution, shaped `[1, planes, 1, 1]`.
pub(crate) fn input_scales(input: InputEncoding) -> TorchResult<Tensor> {
    let mut scales = vec![1.0; input.binary_planes()];
    scales.extend_from_slice(input.scalar_scales());
    Tensor::f_from_slice(&scales)?
        .f_to_kind(Kind::Double)?
        .f_reshape([1, -1, 1, 1])
}
