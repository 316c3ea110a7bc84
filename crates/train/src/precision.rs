//! The precision of activations in training: the user's choice, and what it means on a device.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rookery_backend_torch::convolution::{Products, convolve};
use rookery_backend_torch::error::{TorchError, TorchResult};
use rookery_backend_torch::{ComputeDevice, has_bf16_instructions};
use rookery_engine::Precision;
use tch::{Device, Kind, Tensor};

use crate::error::Result;

/// The numbers of activations on a device.
pub(crate) fn training_kind(device: ComputeDevice, precision: Precision) -> Result<Kind> {
    match precision {
        Precision::F16 => Err(TorchError::Precision {
            precision: precision.name(),
            device: device.to_string(),
            reason: "small gradients vanish in it; train in bf16 or f32",
        }
        .into()),
        Precision::Bf16 => Ok(Kind::BFloat16),
        Precision::Auto if prefers_bf16(device) => Ok(Kind::BFloat16),
        Precision::Auto | Precision::F32 => Ok(Kind::Float),
    }
}

fn prefers_bf16(device: ComputeDevice) -> bool {
    /// Of the GPU on which this process trains. Tried once, as another answer would change numbers in training.
    static OF_GPU: OnceLock<bool> = OnceLock::new();
    match device.device() {
        Device::Cuda(_) => *OF_GPU.get_or_init(|| trains_in(device.device(), Kind::BFloat16)),
        Device::Cpu => trains_in_bf16(),
        _ => false,
    }
}

/// How much longer than f32 numbers may take in training that are to be faster.
const TOLERATED: u32 = 2;

/// Whether a device trains in such numbers not much slower than in f32, which is tried: for NVIDIA's GPUs before Ampere
/// (2020) cuDNN has nothing in bf16, and libtorch then computes one position after the other.
fn trains_in(device: Device, kind: Kind) -> bool {
    let times = [kind, Kind::Float].map(|kind| time_gradients(device, kind));
    matches!(times, [Ok(own), Ok(exact)] if own < TOLERATED * exact)
}

/// The shortest of a few convolutions of 64 boards with their gradients.
fn time_gradients(device: Device, kind: Kind) -> TorchResult<Duration> {
    let ones = |shape: [i64; 4]| {
        let ones = Tensor::f_ones(shape, (kind, device))?.f_permute([0, 3, 1, 2])?;
        ones.f_set_requires_grad(true)
    };
    let (x, weight) = (ones([64, 8, 8, 64])?, ones([64, 3, 3, 64])?);
    let mut fastest = Duration::MAX;
    for _ in 0..4 {
        let start = Instant::now();
        let sum = convolve(&x, &weight, None, Products::Fast)?.f_sum(Kind::Float)?;
        let gradients = Tensor::f_run_backward(&[sum], &[&x, &weight], false, false)?;
        for gradient in gradients {
            // Who reads waits for a GPU.
            gradient.f_sum(Kind::Float)?.f_double_value(&[])?;
        }
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

/// Whether a processor of this kind trains faster in bf16. Told by its kind and not measured, as another answer after a
/// restart would change the numbers of a training that goes on. Steps in bf16 take half the time of those in `f32` with
/// AMX, and half as long again on Intel's processors that have only AVX-512's form; on AMD's they were not measured, but
/// evaluations in bf16 by the same operators were faster (docs/results/trainer-speed.md).
#[cfg(target_arch = "x86_64")]
fn trains_in_bf16() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const AMX_BF16: u32 = 1 << 22;
    const AUTH: u32 = u32::from_le_bytes(*b"Auth"); // of "AuthenticAMD"
    let (vendor, extended) = (__cpuid(0), __cpuid_count(7, 0));
    has_bf16_instructions() && (extended.edx & AMX_BF16 != 0 || vendor.ebx == AUTH)
}

#[cfg(not(target_arch = "x86_64"))]
fn trains_in_bf16() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use rookery_backend_torch::use_threads;

    use super::*;

    #[test]
    fn numbers_in_which_nothing_can_be_trained_are_found_out() {
        use_threads(1);
        for kind in [Kind::Float, Kind::BFloat16] {
            assert!(time_gradients(Device::Cpu, kind).is_ok(), "{kind:?}");
        }
        assert!(!trains_in(Device::Cpu, Kind::Int64));
    }
}
