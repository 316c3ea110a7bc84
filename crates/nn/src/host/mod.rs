//! What a processor computes here instead of through libtorch: the first layer, straight from packed planes;
//! convolutions in 32 bits; the ends of residual blocks and rectifiers, each in one pass over activations that lie in channels-last order; and the
//! policy's last layer, for legal moves.
//!
//! libtorch has no operator that fuses squeeze-excitation; its eight operators for the end of a
//! block read and write the activations again and again, which costs about as much as a third of the
//! convolutions. A tensor that lies in memory otherwise is left to libtorch.

mod first;
mod kernels;
mod legal;
mod number;
mod winograd;

use rookery_common::network::{Dense, SqueezeExcitation};
use rookery_model::Weights;
use tch::{Device, Kind, Tensor};

use crate::error::Result;
#[cfg(test)]
use crate::error::TorchResult;
use crate::tensors::{tensor_of, to_f32};

pub(crate) use first::FirstLayer;
pub(crate) use kernels::Gate;
pub(crate) use legal::LegalLogits;
pub(crate) use number::{Brain, Number};
pub(crate) use winograd::Winograd;

impl Gate {
    /// A network's squeeze-excitation, for [`Activation::Relu`](rookery_common::network::Activation::Relu).
    pub(crate) fn new(weights: &Weights, layers: &SqueezeExcitation) -> Result<Self> {
        let bias = |layer: &Dense| -> Result<Vec<f32>> {
            let bias = weights.get(&format!("{}.bias", layer.name))?;
            Ok(bias.values().to_vec())
        };
        let transposed = |layer: &Dense| -> Result<Vec<f32>> {
            let weight = tensor_of(weights, &format!("{}.weight", layer.name))?;
            Ok(to_f32(&weight.f_transpose(0, 1)?.f_contiguous()?)?)
        };
        Ok(Self {
            squeeze: transposed(&layers.squeeze)?,
            squeeze_bias: bias(&layers.squeeze)?,
            excite: transposed(&layers.excite)?,
            excite_bias: bias(&layers.excite)?,
        })
    }

    /// `relu(x + sigmoid(gamma) * y + beta)` into both; false, and nothing done, if that is left to
    /// libtorch. `x` is in 32 bits.
    pub(crate) fn close(&self, y: &mut Tensor, x: &mut Tensor) -> bool {
        let channels = self.excite_bias.len() / 2;
        match kind_beside(y, x, channels) {
            Some(Kind::Float) => self.close_as::<f32>(y, x),
            Some(Kind::BFloat16) => self.close_as::<Brain>(y, x),
            _ => false,
        }
    }

    fn close_as<N: Number>(&self, y: &mut Tensor, x: &mut Tensor) -> bool {
        let both = numbers_mut::<N>(y).zip(numbers_mut(x));
        both.map(|(y, x)| kernels::close_excited(y, x, self))
            .is_some()
    }
}

/// `relu(x)` in place; false if that is left to libtorch.
pub(crate) fn rectify(x: &mut Tensor) -> bool {
    fn rectify_as<N: Number>(x: &mut Tensor) -> bool {
        numbers_mut::<N>(x).map(kernels::rectify).is_some()
    }
    match x.f_kind() {
        Ok(Kind::Float) if lies_densely(x) => rectify_as::<f32>(x),
        Ok(Kind::BFloat16) if lies_densely(x) => rectify_as::<Brain>(x),
        _ => false,
    }
}

/// `relu(x + y)` into both; false, and nothing done, if that is left to libtorch. `x` is in 32 bits.
pub(crate) fn close(y: &mut Tensor, x: &mut Tensor) -> bool {
    fn close_as<N: Number>(y: &mut Tensor, x: &mut Tensor) -> bool {
        let both = numbers_mut::<N>(y).zip(numbers_mut(x));
        both.map(|(y, x)| kernels::close(y, x)).is_some()
    }
    let channels = y.size().get(1).copied().unwrap_or_default() as usize;
    match kind_beside(y, x, channels) {
        Some(Kind::Float) => close_as::<f32>(y, x),
        Some(Kind::BFloat16) => close_as::<Brain>(y, x),
        _ => false,
    }
}

/// The kind of `y`, if `x` is in 32 bits and both are `[positions, channels, 8, 8]` in channels-last order.
fn kind_beside(y: &Tensor, x: &Tensor, channels: usize) -> Option<Kind> {
    let wide = x.f_kind().ok()? == Kind::Float && y.size() == x.size();
    let fits = wide && is_boards(y, channels) && is_boards(x, channels);
    fits.then(|| y.f_kind().ok()).flatten()
}

/// Whether a tensor is `[positions, channels, 8, 8]` in channels-last order.
fn is_boards(tensor: &Tensor, channels: usize) -> bool {
    let channels = channels as i64;
    let (size, stride) = (tensor.size(), tensor.stride());
    tensor.dim() == 4
        && size[1..] == [channels, 8, 8]
        && stride[1..] == [1, 8 * channels, channels]
        && (stride[0] == 64 * channels || size[0] == 1)
}

/// Whether the numbers lie side by side, in whatever order.
fn lies_densely(tensor: &Tensor) -> bool {
    let mut steps: Vec<(i64, i64)> = tensor.stride().into_iter().zip(tensor.size()).collect();
    steps.retain(|(_, size)| *size != 1);
    steps.sort_unstable();
    let mut expected = 1;
    steps.into_iter().all(|(stride, size)| {
        let fits = stride == expected;
        expected *= size;
        fits
    })
}

/// The numbers of a tensor on the processor, whose kind must be that of `N` and whose numbers must
/// lie side by side.
#[expect(unsafe_code, reason = "tch gives no slices of a tensor's memory")]
fn numbers<N: Number>(tensor: &Tensor) -> Option<&[N]> {
    let fits = tensor.device() == Device::Cpu && tensor.f_kind().ok()? == N::KIND;
    let fits = fits && tensor.numel() > 0;
    // SAFETY: the tensor owns `numel` numbers of this kind that lie side by side, and lives as long
    // as the slice.
    fits.then(|| unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), tensor.numel()) })
}

/// As [`numbers`], to be changed.
#[expect(unsafe_code, reason = "tch gives no slices of a tensor's memory")]
fn numbers_mut<N: Number>(tensor: &mut Tensor) -> Option<&mut [N]> {
    let fits = tensor.device() == Device::Cpu && tensor.f_kind().ok()? == N::KIND;
    let fits = fits && tensor.numel() > 0;
    // SAFETY: as above; the tensor is borrowed for writing. A caller's other tensors may share its memory (in
    // f32 a tower's stream is one tensor twice), but nobody looks into them while the slice lives.
    fits.then(|| unsafe {
        std::slice::from_raw_parts_mut(tensor.data_ptr().cast(), tensor.numel())
    })
}

/// Copies a tensor, so that it lies in channels-last order.
#[cfg(test)]
fn channels_last(tensor: &Tensor) -> TorchResult<Tensor> {
    tensor
        .f_permute([0, 2, 3, 1])?
        .f_contiguous()?
        .f_permute([0, 3, 1, 2])
}

#[cfg(test)]
mod tests;
