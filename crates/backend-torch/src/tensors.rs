//! Small conversions between tensors and what Rust holds.

use rookery_model::Weights;
use tch::{Device, Kind, Tensor};

use crate::error::{Result, TorchResult};

/// A copy of one of a network's tensors.
pub fn tensor_of(weights: &Weights, name: &str) -> Result<Tensor> {
    let tensor = weights.get(name)?;
    let shape: Vec<i64> = tensor.shape().iter().map(|n| i64::from(*n)).collect();
    Ok(Tensor::f_from_slice(tensor.values())?.f_reshape(shape)?)
}

/// A copy that shares neither memory nor gradients with the tensor.
pub fn own_copy(tensor: &Tensor) -> TorchResult<Tensor> {
    let tensor = tensor.f_detach()?;
    let mut copy = tensor.f_zeros_like()?;
    copy.f_copy_(&tensor)?;
    Ok(copy)
}

/// A tensor of the processor's on a device. A GPU fetches it, before whatever it is given later, straight from memory that
/// the system does not move, into which it is copied here. Where there is no such memory, the driver copies it
/// piece by piece while all wait.
pub fn upload(tensor: &Tensor, device: Device) -> TorchResult<Tensor> {
    let pinned = match device {
        Device::Cuda(_) => tensor.f_internal_pin_memory(device).ok(),
        _ => None,
    };
    match pinned {
        // Nobody waits for that: libtorch uses the memory again only when the GPU has fetched from it.
        Some(pinned) => pinned.f_to_device_(device, pinned.f_kind()?, true, false),
        None => tensor.f_to_device(device),
    }
}

/// A copy of a tensor's numbers, converted to `f32`, from whichever device.
pub fn to_f32(tensor: &Tensor) -> TorchResult<Vec<f32>> {
    let mut numbers = vec![0.0_f32; tensor.numel()];
    copy_f32(tensor, &mut numbers)?;
    Ok(numbers)
}

/// Copies a tensor's numbers, converted to `f32`, into `target`, which must be as long.
pub(crate) fn copy_f32(tensor: &Tensor, target: &mut [f32]) -> TorchResult<()> {
    let length = tensor.numel();
    tensor.f_to_kind(Kind::Float)?.f_copy_data(target, length)
}

/// Whether every number is finite.
pub fn is_finite(tensor: &Tensor) -> TorchResult<bool> {
    Ok(tensor.f_isfinite()?.f_all()?.f_int64_value(&[])? != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_uploaded_stays_the_same_and_a_missing_gpu_is_an_error() {
        let numbers = Tensor::from_slice(&[1_i64, 2, 3]);
        assert_eq!(upload(&numbers, Device::Cpu).unwrap(), numbers);
        assert!(upload(&numbers, Device::Cuda(99)).is_err());
    }
}
