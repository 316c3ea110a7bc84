//! The narrow interface between programs and whatever computes networks.
//!
//! A [`Backend`] is a device with the library that computes there, in one precision. It loads the
//! weights of a network; of the [`LoadedNetwork`] any number of threads have an
//! [`Evaluator`] each. Programs choose a backend once and name neither device nor library again.

mod comparison;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_model::{ModelError, Weights};

use crate::evaluator::{Evaluator, EvaluatorError};

pub use comparison::{Comparison, compare, fastest, fastest_of};

/// A device as the user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// Of libtorch's the first CUDA device, else Apple's GPU; without one the fastest of the other GPUs and the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The GPU of this number, by Vulkan, Metal or DirectX 12.
    Gpu(usize),
    /// The NVIDIA GPU of this number, by libtorch.
    Cuda(usize),
    /// Apple's GPU, by libtorch.
    Mps,
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("RK-0313: {0:?} is no device; write auto, cpu, gpu, gpu:N, gpu:all, cuda, cuda:N or mps")]
pub struct ParseDeviceError(String);

impl FromStr for DeviceChoice {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || ParseDeviceError(text.chars().take(40).collect());
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu(0)),
            "cuda" => Ok(Self::Cuda(0)),
            "mps" => Ok(Self::Mps),
            _ => {
                let (kind, number) = text.split_once(':').ok_or_else(refuse)?;
                let number = number.parse::<u8>().map_err(|_| refuse())?.into();
                match kind {
                    "gpu" => Ok(Self::Gpu(number)),
                    "cuda" => Ok(Self::Cuda(number)),
                    _ => Err(refuse()),
                }
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(number) => write!(f, "gpu:{number}"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::Mps => f.write_str("mps"),
        }
    }
}

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
#[error("RK-0312: {0:?} is no precision; write auto, f32, bf16 or f16")]
pub struct ParsePrecisionError(String);

impl FromStr for Precision {
    type Err = ParsePrecisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
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
}

/// What a backend is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// The device's name: `cpu`, `gpu:N`, `cuda:N` or `mps`.
    pub device: String,
    /// The precision, never [`Auto`](Precision::Auto). A network that is too large for the 16 bits that suit a GPU
    /// best may be computed in another: [`LoadedNetwork::precision`].
    pub precision: Precision,
    /// The same for coordinators: audits allow as much as results of the two classes differ by rounding.
    pub class: NumericClass,
}

impl BackendInfo {
    /// What is known of a device of this name that computes in this precision.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if coordinators do not know such results.
    ///
    /// # Examples
    ///
    /// ```
    /// use rookery_common::protocol::jobs::Backend;
    /// use rookery_engine::{BackendInfo, Precision};
    ///
    /// let info = BackendInfo::new("cuda:1", Precision::F16)?;
    /// assert_eq!(info.class, Backend::CudaF16);
    /// assert!(!info.is_cpu());
    /// # Ok::<(), rookery_engine::BackendError>(())
    /// ```
    pub fn new(device: impl Into<String>, precision: Precision) -> Result<Self, BackendError> {
        let device = device.into();
        let kind = device.split(':').next().unwrap_or_default();
        let class = match kind {
            "mps" => Some(NumericClass::Mps),
            _ => NumericClass::from_name(&format!("{kind}-{precision}")),
        };
        let class = class.ok_or_else(|| {
            let unknown =
                format!("computing in {precision} on {device} is not known to coordinators");
            BackendError::Failed(unknown)
        })?;
        Ok(Self {
            device,
            precision,
            class,
        })
    }

    /// Whether the device is the processor.
    pub fn is_cpu(&self) -> bool {
        self.device == "cpu"
    }
}

/// A device that cannot be used, or a network that cannot be computed there.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The device has no free memory now, and may have some later.
    #[error("{0}")]
    OutOfMemory(String),
    /// Anything else, with what to do.
    #[error("{0}")]
    Failed(String),
}

/// A device, the library that computes there, and a precision.
pub trait Backend: fmt::Debug + Send + Sync {
    /// What it is.
    fn info(&self) -> &BackendInfo;

    /// The device with what measurements on it depend on: of a GPU, its maker's name and its driver.
    fn hardware(&self) -> String {
        self.info().device.clone()
    }

    /// Brings a network to the device.
    ///
    /// # Errors
    ///
    /// [`BackendError`] for weights that are not finite in the backend's precision, and if the device fails.
    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError>;

    /// Whether the device was lost: its driver was reset, or it was removed. Its networks compute nothing more then, and
    /// no others can be loaded.
    fn is_lost(&self) -> bool {
        false
    }

    /// The same device, opened anew after it was lost.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if it cannot be opened.
    fn reopen(&self) -> Result<Arc<dyn Backend>, BackendError> {
        let BackendInfo { device, .. } = self.info();
        let refused = format!("device {device} is not opened a second time");
        Err(BackendError::Failed(refused))
    }

    /// Gives back, for other programs, the device's memory that the library keeps for later. Networks that are loaded
    /// stay.
    fn release_memory(&self) {}
}

/// A network on a device.
pub trait LoadedNetwork: fmt::Debug + Send + Sync {
    /// What the network is.
    fn spec(&self) -> &NetworkSpec;

    /// The precision in which it is computed at present.
    fn precision(&self) -> Precision;

    /// How its kernels divide the work, where there was a choice.
    fn kernels(&self) -> Option<String> {
        None
    }

    /// An evaluator of the network for one thread, beside any others. It uses no other thread.
    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send>;
}

impl From<EvaluatorError> for BackendError {
    fn from(error: EvaluatorError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ModelError> for BackendError {
    fn from(error: ModelError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for text in ["auto", "cpu", "gpu:0", "gpu:3", "cuda:0", "cuda:7", "mps"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert_eq!("gpu".parse(), Ok(DeviceChoice::Gpu(0)));
        for text in [
            "", "tpu", "tpu:0", "gpu:", "cuda:", "cuda:-1", "cuda:999", "CPU",
        ] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn precisions_are_read_as_they_are_written() {
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

    #[test]
    fn what_coordinators_do_not_know_is_no_backend() {
        assert_eq!(
            BackendInfo::new("mps", Precision::F32).unwrap().class,
            NumericClass::Mps
        );
        let error = BackendInfo::new("cpu", Precision::F16).unwrap_err();
        assert!(error.to_string().contains("f16 on cpu"), "{error}");
    }
}
