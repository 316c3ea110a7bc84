//! In what numbers to compute: the user's choice, and what it means on a device.

use std::fmt;
use std::str::FromStr;

use tch::{Device, Kind};

use crate::device::ComputeDevice;
use crate::error::{NnError, Result};

/// The numbers in which a network is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// `f16` on CUDA, and where a network is too large for it whichever of the two others is faster, `bf16` clearly so;
    /// `f32` elsewhere, but `bf16` on a processor that has instructions for it and is clearly faster with them, which is
    /// measured.
    #[default]
    Auto,
    /// 32 bits.
    F32,
    /// 16 bits with the exponent of `f32`.
    Bf16,
    /// 16 bits, IEEE half precision.
    F16,
}

/// A text that names no precision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no precision; write auto, f32, bf16 or f16")]
pub struct ParsePrecisionError(String);

impl FromStr for Precision {
    type Err = ParsePrecisionError;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let all = [Self::Auto, Self::F32, Self::Bf16, Self::F16];
        let found = all.into_iter().find(|precision| precision.name() == text);
        found.ok_or_else(|| ParsePrecisionError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Precision {
    /// The name used on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// The precision of numbers of this kind.
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::BFloat16 => Self::Bf16,
            Kind::Half => Self::F16,
            _ => Self::F32,
        }
    }

    /// The kinds of numbers to choose from by measurement, the most exact first, never empty.
    pub(crate) fn candidates(self, device: ComputeDevice) -> Result<&'static [Kind]> {
        match (self, device.0) {
            (Self::F16, Device::Cpu) => Err(NnError::Precision {
                precision: self.name(),
                device: device.to_string(),
                reason: "processors compute it slower than f32",
            }),
            (Self::Auto, Device::Cuda(_)) | (Self::F16, _) => Ok(&[Kind::Half]),
            (Self::Auto, Device::Cpu) if has_bf16_instructions() => {
                Ok(&[Kind::Float, Kind::BFloat16])
            }
            (Self::Auto | Self::F32, _) => Ok(&[Kind::Float]),
            (Self::Bf16, _) => Ok(&[Kind::BFloat16]),
        }
    }

    /// The kinds of numbers of more range for networks that overflow in the candidates, to choose from in the same way;
    /// none where the user has chosen, or nothing has more range. Cards that have no `bf16` emulate it slowly.
    pub(crate) const fn wider(self, device: ComputeDevice) -> &'static [Kind] {
        match (self, device.0) {
            (Self::Auto, Device::Cuda(_)) => &[Kind::Float, Kind::BFloat16],
            _ => &[],
        }
    }
}

/// Whether the processor multiplies bf16 matrices. Every processor with AMX tiles has the AVX-512
/// form too.
#[cfg(target_arch = "x86_64")]
fn has_bf16_instructions() -> bool {
    std::arch::is_x86_feature_detected!("avx512bf16")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_bf16_instructions() -> bool {
    false
}

/// Whether a processor of this kind trains faster in bf16. Told by its kind and not measured, as another answer after a
/// restart would change the numbers of a training that goes on. Steps in bf16 take half the time of those in `f32` with
/// AMX, and half as long again on Intel's processors that have only AVX-512's form; on AMD's they were not measured, but
/// evaluations in bf16 by the same operators were faster (docs/results/trainer-speed.md).
#[cfg(target_arch = "x86_64")]
pub(crate) fn trains_in_bf16() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const AMX_BF16: u32 = 1 << 22;
    const AUTH: u32 = u32::from_le_bytes(*b"Auth"); // of "AuthenticAMD"
    let (vendor, extended) = (__cpuid(0), __cpuid_count(7, 0));
    has_bf16_instructions() && (extended.edx & AMX_BF16 != 0 || vendor.ebx == AUTH)
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn trains_in_bf16() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_chosen_for_the_device() {
        let cuda = ComputeDevice(Device::Cuda(0));
        assert_eq!(Precision::Auto.candidates(cuda).unwrap(), [Kind::Half]);
        assert_eq!(Precision::F32.candidates(cuda).unwrap(), [Kind::Float]);
        let cpu = Precision::Auto.candidates(ComputeDevice::CPU).unwrap();
        assert_eq!(cpu[0], Kind::Float);
        let error = Precision::F16.candidates(ComputeDevice::CPU).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("precision f16 cannot be used on cpu"),
            "{error}"
        );
    }

    #[test]
    fn only_a_gpus_own_choice_has_a_way_out_of_its_range() {
        let cuda = ComputeDevice(Device::Cuda(0));
        let wider = Precision::Auto.wider(cuda);
        assert_eq!(wider, [Kind::Float, Kind::BFloat16]);
        assert!(!wider.contains(&Precision::Auto.candidates(cuda).unwrap()[0]));
        assert!(Precision::F16.wider(cuda).is_empty());
        assert!(Precision::Auto.wider(ComputeDevice::CPU).is_empty());
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for precision in [
            Precision::Auto,
            Precision::F32,
            Precision::Bf16,
            Precision::F16,
        ] {
            assert_eq!(precision.name().parse(), Ok(precision));
        }
        assert!("fp64".parse::<Precision>().is_err());
    }
}
