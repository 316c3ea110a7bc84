//! The backends of this program: its own kernels for processors, and libtorch where it was built with that.

use std::sync::Arc;

use rookery_backend_cpu::CpuBackend;
use rookery_engine::{Backend, BackendError, DeviceChoice, Precision};

/// The backends that a choice of a device and a precision allows, never none: several, the most exact first, where a
/// network's speed decides between them ([`fastest`](rookery_engine::fastest)).
///
/// # Errors
///
/// [`BackendError`] for a device that cannot be used, or a precision in which it does not compute.
pub fn open(
    device: DeviceChoice,
    precision: Precision,
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    if let Some(gpu) = torch::gpu(device, precision)? {
        return Ok(vec![gpu]);
    }
    let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
    if matches!(precision, Precision::Auto | Precision::F32) {
        backends.push(Arc::new(CpuBackend::new(precision)?));
    }
    backends.extend(torch::processor(precision)?);
    Ok(backends)
}

#[cfg(feature = "torch")]
mod torch {
    //! What libtorch computes.

    use super::{Arc, Backend, BackendError, DeviceChoice, Precision};
    use rookery_backend_torch::{ComputeDevice, TorchBackend, has_bf16_instructions};

    /// A GPU, if one was asked for or found.
    pub(super) fn gpu(
        device: DeviceChoice,
        precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        let device = ComputeDevice::open(device)?;
        if device.is_cpu() {
            return Ok(None);
        }
        Ok(Some(Arc::new(TorchBackend::new(device, precision)?)))
    }

    /// The processor in 16 bits, if that was asked for or may be faster.
    pub(super) fn processor(
        precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        let precision = match precision {
            Precision::F32 => return Ok(None),
            Precision::Auto if !has_bf16_instructions() => return Ok(None),
            Precision::Auto => Precision::Bf16,
            asked => asked,
        };
        let backend = TorchBackend::new(ComputeDevice::CPU, precision)?;
        Ok(Some(Arc::new(backend)))
    }
}

#[cfg(not(feature = "torch"))]
mod torch {
    //! What is said in libtorch's place.

    use std::path::Path;

    use super::{Arc, Backend, BackendError, DeviceChoice, Precision};

    /// Where Linux shows NVIDIA's driver.
    const NVIDIA_DRIVER: &str = "/proc/driver/nvidia/version";

    /// No GPU; an error if one was asked for, and a hint if there is one.
    pub(super) fn gpu(
        device: DeviceChoice,
        _precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        match device {
            DeviceChoice::Auto if Path::new(NVIDIA_DRIVER).exists() => {
                tracing::warn!("this machine has an NVIDIA GPU that is not used: {ELSEWHERE}");
            }
            DeviceChoice::Cpu | DeviceChoice::Auto => {}
            DeviceChoice::Cuda(_) | DeviceChoice::Mps => {
                return Err(BackendError::Failed(format!(
                    "device {device} cannot be used: {ELSEWHERE}"
                )));
            }
        }
        Ok(None)
    }

    /// No 16 bits.
    pub(super) fn processor(
        precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        match precision {
            Precision::Auto | Precision::F32 => Ok(None),
            Precision::Bf16 | Precision::F16 => Err(BackendError::Failed(format!(
                "precision {precision} cannot be used: {ELSEWHERE}"
            ))),
        }
    }

    /// What this worker computes, and what to do about it.
    const ELSEWHERE: &str = "this worker computes on processors in f32 alone; take the archive \
                             rookery-worker-torch, or build it with `cargo build --release \
                             -p rookery-worker --features torch`";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_computes_in_32_bits_without_any_library() {
        let backends = open(DeviceChoice::Cpu, Precision::F32).unwrap();
        let [backend] = backends.as_slice() else {
            panic!("{backends:?}")
        };
        assert!(backend.info().is_cpu());
        assert_eq!(backend.info().precision, Precision::F32);
        let exact = &open(DeviceChoice::Cpu, Precision::Auto).unwrap()[0];
        assert_eq!(exact.info(), backend.info());
    }

    #[test]
    fn what_this_program_cannot_compute_is_refused_with_what_to_do() {
        let half = open(DeviceChoice::Cpu, Precision::F16).unwrap_err();
        assert!(half.to_string().starts_with("precision f16 cannot be used"));
        let cuda = open(DeviceChoice::Cuda(250), Precision::Auto).unwrap_err();
        let cuda = cuda.to_string();
        assert!(cuda.starts_with("device cuda:250 cannot be used"), "{cuda}");
        #[cfg(not(feature = "torch"))]
        assert!(cuda.contains("--features torch"), "{cuda}");
    }
}
