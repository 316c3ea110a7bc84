//! The precision to compute in: the user's choice, and what it means on a device.

use rookery_engine::Precision;
use tch::{Device, Kind};

use crate::device::ComputeDevice;
use crate::error::{Result, TorchError};

/// The precision of numbers of this kind.
pub const fn from_kind(kind: Kind) -> Precision {
    match kind {
        Kind::BFloat16 => Precision::Bf16,
        Kind::Half => Precision::F16,
        _ => Precision::F32,
    }
}

/// The kinds of numbers to choose from by measurement, the most exact first, never empty.
pub(crate) fn candidates(precision: Precision, device: ComputeDevice) -> Result<&'static [Kind]> {
    match (precision, device.0) {
        (Precision::F16, Device::Cpu) => Err(TorchError::Precision {
            precision: precision.name(),
            device: device.to_string(),
            reason: "processors compute it slower than f32",
        }),
        (Precision::Auto, Device::Cuda(_)) | (Precision::F16, _) => Ok(&[Kind::Half]),
        (Precision::Auto, Device::Cpu) if has_bf16_instructions() => {
            Ok(&[Kind::Float, Kind::BFloat16])
        }
        (Precision::Auto | Precision::F32, _) => Ok(&[Kind::Float]),
        (Precision::Bf16, _) => Ok(&[Kind::BFloat16]),
    }
}

/// The kinds of numbers of more range for networks that overflow in the candidates, to choose from in the same way;
/// none where the user has chosen, or nothing has more range. Cards that have no `bf16` emulate it slowly.
pub(crate) const fn wider(precision: Precision, device: ComputeDevice) -> &'static [Kind] {
    match (precision, device.0) {
        (Precision::Auto, Device::Cuda(_)) => &[Kind::Float, Kind::BFloat16],
        _ => &[],
    }
}

/// Whether the processor multiplies matrices of bf16. Every processor with AMX tiles has the AVX-512
/// form too.
#[cfg(target_arch = "x86_64")]
pub fn has_bf16_instructions() -> bool {
    std::arch::is_x86_feature_detected!("avx512bf16")
}

/// Whether the processor multiplies matrices of bf16: not known to do so.
#[cfg(not(target_arch = "x86_64"))]
pub fn has_bf16_instructions() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_chosen_for_the_device() {
        let cuda = ComputeDevice(Device::Cuda(0));
        assert_eq!(candidates(Precision::Auto, cuda).unwrap(), [Kind::Half]);
        assert_eq!(candidates(Precision::F32, cuda).unwrap(), [Kind::Float]);
        let cpu = candidates(Precision::Auto, ComputeDevice::CPU).unwrap();
        assert_eq!(cpu[0], Kind::Float);
        let error = candidates(Precision::F16, ComputeDevice::CPU).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("precision f16 cannot be used on cpu"),
            "{error}"
        );
    }

    #[test]
    fn only_a_gpus_own_choice_has_a_way_out_of_its_range() {
        let cuda = ComputeDevice(Device::Cuda(0));
        let wider_kinds = wider(Precision::Auto, cuda);
        assert_eq!(wider_kinds, [Kind::Float, Kind::BFloat16]);
        assert!(!wider_kinds.contains(&candidates(Precision::Auto, cuda).unwrap()[0]));
        assert!(wider(Precision::F16, cuda).is_empty());
        assert!(wider(Precision::Auto, ComputeDevice::CPU).is_empty());
    }
}
