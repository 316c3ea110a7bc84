//! Convolutions for evaluation: the normalisation is multiplied into weight and bias.

use rookery_common::network::NormalizedConvolution;
use rookery_model::{ModelError, Weights};
use tch::{Device, Kind, Tensor};

use crate::convolution::{Products, convolve};
use crate::error::{Result, TorchResult};
use crate::graph::Parts;
use crate::host::{self, Winograd};
use crate::tensors::{is_finite, tensor_of};

/// A convolution whose normalisation is folded in.
#[derive(Debug)]
pub(crate) struct FoldedConvolution {
    weight: Tensor,
    bias: Tensor,
    /// The same in 32 bits on the processor.
    winograd: Option<Winograd>,
}

impl FoldedConvolution {
    pub(crate) fn apply(&self, x: &Tensor) -> TorchResult<Tensor> {
        let quick = self.winograd.as_ref().map(|layer| host::convolve(layer, x));
        if let Some(y) = quick.transpose()?.flatten() {
            return Ok(y);
        }
        convolve(x, &self.weight, Some(&self.bias), Products::Exact)
    }
}

/// How convolutions are computed behind the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Convolutions {
    /// The quickest way there is: in 32 bits on a processor by Winograd's algorithm, where it can be.
    #[default]
    Quickest,
    /// By libtorch, which adds up in another order, as programs before Winograd's algorithm did: to find out how much that
    /// changes.
    Libtorch,
}

/// Folds weights and brings them to a device.
pub(crate) struct Folding<'a> {
    pub(crate) weights: &'a Weights,
    pub(crate) device: Device,
    pub(crate) kind: Kind,
    pub(crate) convolutions: Convolutions,
}

impl Folding<'_> {
    /// Brings a tensor to the device; convolution weights in channels-last order, which is the
    /// fastest on every device tried.
    fn place(&self, name: &str, tensor: &Tensor, kind: Kind) -> Result<Tensor> {
        let mut placed = tensor.f_to_kind(kind)?.f_to_device(self.device)?;
        if placed.dim() == 4 {
            placed = placed
                .f_permute([0, 2, 3, 1])?
                .f_contiguous()?
                .f_permute([0, 3, 1, 2])?;
        }
        if is_finite(&placed)? {
            Ok(placed)
        } else {
            Err(ModelError::NotComputable(name.to_owned()).into())
        }
    }
}

/// Weight `[outputs, inputs, kernel, kernel]` and bias, in 64 bits, of a convolution whose normalisation is folded in.
pub(crate) fn tensors_of(folded: &rookery_model::FoldedConvolution) -> TorchResult<[Tensor; 2]> {
    let shape = [folded.outputs, folded.inputs, folded.kernel, folded.kernel];
    let shape = shape.map(|size| size as i64);
    let weight = Tensor::f_from_slice(&folded.weight)?.f_reshape(shape)?;
    Ok([weight, Tensor::f_from_slice(&folded.bias)?])
}

impl Parts<FoldedConvolution> for Folding<'_> {
    fn convolution(&self, layer: &NormalizedConvolution) -> Result<FoldedConvolution> {
        let folded = rookery_model::FoldedConvolution::new(self.weights, layer)?;
        let [weight, bias] = tensors_of(&folded)?;
        let name = &layer.name;
        let on_host = self.device == Device::Cpu && self.kind == Kind::Float;
        let quick = on_host && self.convolutions == Convolutions::Quickest;
        let winograd = quick.then(|| host::winograd(&folded));
        Ok(FoldedConvolution {
            winograd: winograd.flatten(),
            weight: self.place(&format!("{name}.weight"), &weight, self.kind)?,
            bias: self.place(&format!("{name}.norm.bias"), &bias, self.kind)?,
        })
    }

    fn tensor(&self, name: &str) -> Result<Tensor> {
        self.place(name, &tensor_of(self.weights, name)?, self.kind)
    }

    fn exact(&self, name: &str) -> Result<Tensor> {
        self.place(name, &tensor_of(self.weights, name)?, Kind::Float)
    }

    fn on_host(&self) -> Option<&Weights> {
        (self.device == Device::Cpu).then_some(self.weights)
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::network::{Layers, NetworkSpec, Tower};
    use rookery_model::testing::busy_weights;

    use super::*;

    #[test]
    fn convolutions_are_left_to_libtorch_where_that_is_wanted() {
        let weights = busy_weights(&NetworkSpec::resnet(1, 16), 1);
        let layers = Layers::new(weights.spec()).unwrap();
        let Tower::Residual(tower) = &layers.tower;
        let conv1 = &tower.blocks[0].conv1;
        let folded = rookery_model::FoldedConvolution::new(&weights, conv1).unwrap();
        let can = host::winograd(&folded).is_some();
        for (convolutions, quick) in [
            (Convolutions::Quickest, can),
            (Convolutions::Libtorch, false),
        ] {
            let folding = Folding {
                weights: &weights,
                device: Device::Cpu,
                kind: Kind::Float,
                convolutions,
            };
            let layer = folding.convolution(conv1).unwrap();
            assert_eq!(layer.winograd.is_some(), quick, "{convolutions:?}");
        }
    }
}
