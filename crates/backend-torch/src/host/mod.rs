//! Kernels of `rookery-backend-cpu` on tensors: the first layer, convolutions in f32, the ends of residual blocks,
//! rectifiers, and the policy's last layer.
//!
//! The first layer reads packed planes. Ends of blocks and rectifiers take one pass over activations in channels-last
//! order. The last layer computes legal moves only.
//!
//! libtorch has no operator that fuses squeeze-excitation; its eight operators for the end of a
//! block read and write the activations again and again, which costs about as much as a third of the
//! convolutions. A tensor that lies in memory otherwise is left to libtorch.

use std::cell::RefCell;

use rookery_backend_cpu::{Bf16, Element, Workspace};
pub(crate) use rookery_backend_cpu::{FirstLayer, LegalPolicy, SqueezeExcitation, Winograd};
use rookery_common::network::{Activation, Layers, Tower};
use rookery_engine::Batch;
use rookery_model::{FoldedConvolution, Weights};
use tch::{Device, Kind, Tensor};

use crate::error::{Result, TorchResult};

thread_local! {
    /// What lies between the steps of this thread's convolutions.
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// An element type that libtorch has as well.
pub(crate) trait TorchElement: Element {
    /// What libtorch calls it.
    const KIND: Kind;
}

impl TorchElement for f32 {
    const KIND: Kind = Kind::Float;
}

impl TorchElement for Bf16 {
    const KIND: Kind = Kind::BFloat16;
}

/// The first layer of a network; none if it is left to libtorch, as it is with an activation other than a rectifier.
pub(crate) fn first_layer(weights: &Weights) -> Result<Option<FirstLayer>> {
    let layers = Layers::new(weights.spec())?;
    if layers.activation != Activation::Relu {
        return Ok(None);
    }
    let Tower::Residual(tower) = &layers.tower;
    let folded = FoldedConvolution::new(weights, &tower.input)?;
    let input = weights.spec().input;
    Ok(Some(FirstLayer::new(&folded, input, layers.activation)))
}

/// What the first layer makes of a batch: `[positions, channels, 8, 8]` in channels-last order, in numbers of `kind`, 32
/// bits or bf16, and the same in 32 bits.
pub(crate) fn apply_first(
    layer: &FirstLayer,
    batch: &Batch,
    kind: Kind,
) -> TorchResult<[Tensor; 2]> {
    let (positions, channels) = (batch.len() as i64, layer.channels() as i64);
    let mut wide = empty_boards(positions, channels, Kind::Float)?;
    if kind == Kind::Float {
        if let Some(wide) = numbers_mut(&mut wide) {
            layer.apply::<f32>(batch, wide, None);
        }
        return Ok([wide.shallow_clone(), wide]);
    }
    let mut x = empty_boards(positions, channels, Bf16::KIND)?;
    if let Some((wide, x)) = numbers_mut(&mut wide).zip(numbers_mut::<Bf16>(&mut x)) {
        layer.apply(batch, wide, Some(x));
    }
    Ok([x, wide])
}

/// A convolution by Winograd's algorithm; none if it is left to libtorch, on a processor without fused multiplication and
/// addition, or because channels are left over.
pub(crate) fn winograd(folded: &FoldedConvolution) -> Option<Winograd> {
    multiplies_and_adds()
        .then(|| Winograd::new(folded))
        .flatten()
}

/// Whether the processor multiplies and adds in one instruction.
fn multiplies_and_adds() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64")
    }
}

/// The convolution of `x` in channels-last order; none if that is left to libtorch: for other numbers, and where it may
/// use several processor threads, as this uses one.
pub(crate) fn convolve(layer: &Winograd, x: &Tensor) -> TorchResult<Option<Tensor>> {
    if tch::get_num_threads() > 1 || !is_boards(x, layer.inputs()) {
        return Ok(None);
    }
    let Some(boards) = numbers(x) else {
        return Ok(None);
    };
    let mut y = empty_boards(x.size()[0], layer.outputs() as i64, Kind::Float)?;
    if let Some(y) = numbers_mut(&mut y) {
        WORKSPACE.with_borrow_mut(|workspace| layer.apply(boards, workspace, y));
    }
    Ok(Some(y))
}

/// `relu(x + sigmoid(gamma) * y + beta)` into both; false, and nothing done, if that is left to
/// libtorch. `x` is in 32 bits.
pub(crate) fn excite(layers: &SqueezeExcitation, y: &mut Tensor, x: &mut Tensor) -> bool {
    fn excite_as<N: TorchElement>(
        layers: &SqueezeExcitation,
        y: &mut Tensor,
        x: &mut Tensor,
    ) -> bool {
        let both = numbers_mut::<N>(y).zip(numbers_mut(x));
        both.map(|(y, x)| layers.apply(y, x)).is_some()
    }
    match kind_beside(y, x, layers.channels()) {
        Some(Kind::Float) => excite_as::<f32>(layers, y, x),
        Some(Kind::BFloat16) => excite_as::<Bf16>(layers, y, x),
        _ => false,
    }
}

/// `relu(x)` in place; false if that is left to libtorch.
pub(crate) fn relu(x: &mut Tensor) -> bool {
    fn relu_as<N: TorchElement>(x: &mut Tensor) -> bool {
        numbers_mut::<N>(x).map(rookery_backend_cpu::relu).is_some()
    }
    match x.f_kind() {
        Ok(Kind::Float) if lies_densely(x) => relu_as::<f32>(x),
        Ok(Kind::BFloat16) if lies_densely(x) => relu_as::<Bf16>(x),
        _ => false,
    }
}

/// `relu(x + y)` into both; false, and nothing done, if that is left to libtorch. `x` is in 32 bits.
pub(crate) fn add_relu(y: &mut Tensor, x: &mut Tensor) -> bool {
    fn add_relu_as<N: TorchElement>(y: &mut Tensor, x: &mut Tensor) -> bool {
        let both = numbers_mut::<N>(y).zip(numbers_mut(x));
        both.map(|(y, x)| rookery_backend_cpu::add_relu(y, x))
            .is_some()
    }
    let channels = y.size().get(1).copied().unwrap_or_default() as usize;
    match kind_beside(y, x, channels) {
        Some(Kind::Float) => add_relu_as::<f32>(y, x),
        Some(Kind::BFloat16) => add_relu_as::<Bf16>(y, x),
        _ => false,
    }
}

/// The last layer of a network's policy.
pub(crate) fn legal_policy(weights: &Weights) -> Result<LegalPolicy> {
    let policy = Layers::new(weights.spec())?.policy;
    let channels = policy.convolution.outputs as usize;
    Ok(LegalPolicy::new(weights, &policy, channels)?)
}

/// Writes the logits of these cells, counted through the whole batch's output, into `logits`, which is as long; false if that is left to libtorch.
/// `features` is what the layer gets.
pub(crate) fn write_logits(
    layer: &LegalPolicy,
    features: &Tensor,
    cells: &[i64],
    logits: &mut [f32],
) -> bool {
    fn write_as<N: TorchElement>(
        layer: &LegalPolicy,
        features: &Tensor,
        cells: &[i64],
        logits: &mut [f32],
    ) -> bool {
        let features = numbers::<N>(features);
        features
            .map(|features| layer.write(features, cells, logits))
            .is_some()
    }
    if !is_boards(features, layer.channels()) {
        return false;
    }
    match features.f_kind() {
        Ok(Kind::Float) => write_as::<f32>(layer, features, cells, logits),
        Ok(Kind::BFloat16) => write_as::<Bf16>(layer, features, cells, logits),
        _ => false,
    }
}

/// Boards in channels-last order whose numbers are not set.
fn empty_boards(positions: i64, channels: i64, kind: Kind) -> TorchResult<Tensor> {
    let shape = [positions, 8, 8, channels];
    Tensor::f_empty(shape, (kind, Device::Cpu))?.f_permute([0, 3, 1, 2])
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
fn numbers<N: TorchElement>(tensor: &Tensor) -> Option<&[N]> {
    let fits = tensor.device() == Device::Cpu && tensor.f_kind().ok()? == N::KIND;
    let fits = fits && tensor.numel() > 0;
    // SAFETY: the tensor owns `numel` numbers of this kind that lie side by side, and lives as long
    // as the slice.
    fits.then(|| unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), tensor.numel()) })
}

/// As [`numbers`], to be changed.
#[expect(unsafe_code, reason = "tch gives no slices of a tensor's memory")]
fn numbers_mut<N: TorchElement>(tensor: &mut Tensor) -> Option<&mut [N]> {
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
