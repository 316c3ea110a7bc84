//! Which backend a choice of a device and a precision means: Rookery's kernels for processors and for GPUs, libtorch where
//! the program was built with that, and the devices of other machines.

mod data_dir;
mod named_device;
mod selection;

use std::sync::{Arc, Once};

use rookery_backend_cpu::CpuBackend;
use rookery_backend_gpu::{GpuAdapter, GpuBackend, adapters, driver_advice, has_nvidia_gpu};
use rookery_engine::{Backend, BackendError, DeviceChoice, Precision};

pub use data_dir::{default_data_dir, home_folder, kernel_tuner, kernels_path};
pub use named_device::{NamedDevice, RemoteAccess};
pub use rookery_backend_gpu::KernelTuner;
pub use selection::DeviceSelection;

/// Keeps Mesa from sorting GPUs by what the desktop prefers, and from printing an error on machines without one, by the
/// environment variable `NODEVICE_SELECT`.
///
/// # Safety
///
/// No other thread may run yet, which could read the environment meanwhile.
#[expect(
    unsafe_code,
    reason = "the environment can only be changed before any thread runs"
)]
pub unsafe fn leave_the_desktop_alone() {
    if std::env::var_os("WAYLAND_DISPLAY").is_none() {
        // SAFETY: as above.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}

/// The backends that a choice of a device and a precision allows, never none: several, the most exact first, where a
/// network's speed decides between them ([`fastest`](rookery_engine::fastest)). GPUs have the kernels that `tuner` finds.
///
/// # Errors
///
/// [`BackendError`] for a device that cannot be used, or a precision in which it does not compute.
pub fn open(
    device: DeviceChoice,
    precision: Precision,
    tuner: &KernelTuner,
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    if let DeviceChoice::Gpu(number) = device {
        return gpu(number, precision, tuner);
    }
    if let Some(gpu) = torch::gpu(device, precision)? {
        return Ok(vec![gpu]);
    }
    let gpus = match device {
        DeviceChoice::Auto => gpus(&adapters(), precision, tuner),
        _ => Vec::new(),
    };
    if device == DeviceChoice::Auto && gpus.is_empty() && has_nvidia_gpu() {
        tracing::warn!(
            "RK-0318: this machine has an NVIDIA GPU that is not used: {}",
            driver_advice()
        );
    }
    if precision == Precision::F16 && !gpus.is_empty() {
        return Ok(gpus);
    }
    let mut backends: Vec<Arc<dyn Backend>> = Vec::new();
    if matches!(precision, Precision::Auto | Precision::F32) {
        backends.push(Arc::new(CpuBackend::new(precision)?));
    }
    backends.extend(torch::processor(precision)?);
    backends.extend(gpus);
    backends.sort_by_key(|backend| backend.info().precision != Precision::F32);
    Ok(backends)
}

/// The backends of each of the devices that compute side by side, as [`open`] gives those of one.
///
/// # Errors
///
/// [`BackendError`] if one of the devices cannot be used, or all GPUs were asked for and there is none.
pub fn open_all(
    devices: &DeviceSelection,
    precision: Precision,
    tuner: &KernelTuner,
) -> Result<Vec<Vec<Arc<dyn Backend>>>, BackendError> {
    let numbers = match devices {
        DeviceSelection::One(device) => return Ok(vec![open(*device, precision, tuner)?]),
        DeviceSelection::Gpus(numbers) => numbers.clone(),
        DeviceSelection::AllGpus => {
            let hardware = adapters().into_iter().filter(|one| !one.is_software);
            hardware.map(|adapter| adapter.number).collect()
        }
    };
    if numbers.is_empty() {
        return Err(BackendError::Failed(format!(
            "RK-0302: device {devices} cannot be used: {}",
            driver_advice()
        )));
    }
    let opened = numbers.iter().map(|number| gpu(*number, precision, tuner));
    opened.collect()
}

/// The GPU of this number. Left to itself it may compute in 32 bits or, where it has them, in 16.
fn gpu(
    number: usize,
    precision: Precision,
    tuner: &KernelTuner,
) -> Result<Vec<Arc<dyn Backend>>, BackendError> {
    let is_free = precision == Precision::Auto;
    let first = if is_free { Precision::F32 } else { precision };
    let mut backends = vec![GpuBackend::new(number, first, tuner.clone())?];
    if is_free {
        let free = backends[0].in_precision(Precision::Auto)?;
        backends.extend((free.info().precision != Precision::F32).then_some(free));
    }
    backends.last().into_iter().for_each(warn_about);
    let shared = backends.into_iter();
    Ok(shared
        .map(|backend| Arc::new(backend) as Arc<dyn Backend>)
        .collect())
}

/// Warns if the adapter is software, which is opened only where it was named, and if matrices were asked for and cannot be
/// used.
fn warn_about(backend: &GpuBackend) {
    // An engine opens its device again with every network.
    static SOFTWARE: Once = Once::new();
    let adapter = backend.adapter();
    if adapter.is_software {
        SOFTWARE.call_once(|| tracing::warn!("{}", software_warning(adapter, &adapters())));
    }
    if let Some(why) = backend.matrix_obstacle() {
        tracing::warn!(
            "--gpu-matrices on has no effect on gpu:{}, {}: {why}",
            adapter.number,
            adapter.name
        );
    }
}

/// What a software adapter is, and how to compute on a card instead.
fn software_warning(software: &GpuAdapter, all: &[GpuAdapter]) -> String {
    let remedy = match all.iter().find(|one| !one.is_software) {
        Some(card) => format!("the first card is gpu:{}, {}", card.number, card.name),
        None => driver_advice().to_owned(),
    };
    format!(
        "RK-0320: gpu:{} is no graphics card: {software} is a program that computes on the processor, slower than \
         --device cpu; {remedy}",
        software.number
    )
}

/// The GPUs that are taken without being named: none in whose place a processor computes, and none that fails.
fn gpus(
    adapters: &[GpuAdapter],
    precision: Precision,
    tuner: &KernelTuner,
) -> Vec<Arc<dyn Backend>> {
    let hardware = adapters.iter().filter(|adapter| !adapter.is_software);
    let opened = hardware.filter_map(|adapter| match gpu(adapter.number, precision, tuner) {
        Ok(backends) => Some(backends),
        Err(error) => {
            tracing::debug!("{adapter} is not used: {error}");
            None
        }
    });
    opened.flatten().collect()
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

    use super::{Arc, Backend, BackendError, DeviceChoice, Precision};

    /// No GPU; an error if one was asked for.
    pub(super) fn gpu(
        device: DeviceChoice,
        _precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        match device {
            DeviceChoice::Cuda(_) | DeviceChoice::Mps => Err(BackendError::Failed(format!(
                "RK-0302: device {device} cannot be used: {ELSEWHERE}"
            ))),
            DeviceChoice::Cpu | DeviceChoice::Gpu(_) | DeviceChoice::Auto => Ok(None),
        }
    }

    /// No 16 bits.
    pub(super) fn processor(
        precision: Precision,
    ) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        match precision {
            Precision::Auto | Precision::F32 => Ok(None),
            Precision::Bf16 | Precision::F16 => Err(BackendError::Failed(format!(
                "RK-0303: precision {precision} cannot be used: {ELSEWHERE}"
            ))),
        }
    }

    /// What this worker computes, and what to do about it.
    const ELSEWHERE: &str = "this worker has no libtorch: it computes on processors in f32, and by `--device gpu` on \
                             GPUs with a Vulkan, Metal or DirectX 12 driver in f32 and f16; take the archive \
                             rookery-worker-torch, or build it with `cargo build --release -p rookery-worker \
                             --features torch`";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_computes_in_32_bits_without_any_library() {
        let backends = open(DeviceChoice::Cpu, Precision::F32, &KernelTuner::default()).unwrap();
        let [backend] = backends.as_slice() else {
            panic!("{backends:?}")
        };
        assert!(backend.info().is_cpu());
        assert_eq!(backend.info().precision, Precision::F32);
        let exact = &open(DeviceChoice::Cpu, Precision::Auto, &KernelTuner::default()).unwrap()[0];
        assert_eq!(exact.info(), backend.info());
    }

    #[test]
    fn what_this_program_cannot_compute_is_refused_with_what_to_do() {
        let half = open(DeviceChoice::Cpu, Precision::F16, &KernelTuner::default()).unwrap_err();
        assert!(half.to_string().contains("precision f16 cannot be used"));
        let cuda = open(
            DeviceChoice::Cuda(250),
            Precision::Auto,
            &KernelTuner::default(),
        )
        .unwrap_err();
        let cuda = cuda.to_string();
        assert!(cuda.contains("device cuda:250 cannot be used"), "{cuda}");
        #[cfg(not(feature = "torch"))]
        assert!(cuda.contains("--features torch"), "{cuda}");
        let gpu = open(
            DeviceChoice::Gpu(250),
            Precision::Auto,
            &KernelTuner::default(),
        )
        .unwrap_err();
        let gpu = gpu.to_string();
        assert!(gpu.contains("device gpu:250 cannot be used"), "{gpu}");
    }

    /// lavapipe, where there is no GPU: scripts/setup installs it.
    #[test]
    fn a_gpu_by_its_number_computes_in_32_and_in_16_bits() {
        let adapters = adapters();
        let first = adapters
            .first()
            .expect("a GPU or lavapipe (mesa-vulkan-drivers)");
        let backends = open(
            DeviceChoice::Gpu(0),
            Precision::Auto,
            &KernelTuner::default(),
        )
        .unwrap();
        let precisions = backends.iter().map(|backend| backend.info().precision);
        let expected = [Precision::F32, Precision::F16];
        let count = if first.has_f16 { 2 } else { 1 };
        assert!(precisions.eq(expected.into_iter().take(count)));
        let [exact] = &open(
            DeviceChoice::Gpu(0),
            Precision::F32,
            &KernelTuner::default(),
        )
        .unwrap()[..] else {
            panic!("several")
        };
        assert_eq!(exact.info().device, "gpu:0");
        assert_eq!(exact.info().class.name(), "gpu-f32");
    }

    #[test]
    fn a_software_adapter_is_called_so_with_what_to_do() {
        let mut software = adapters()
            .pop()
            .expect("a GPU or lavapipe (mesa-vulkan-drivers)");
        (software.number, software.is_software) = (1, true);
        let card = GpuAdapter {
            number: 0,
            name: "Card".to_owned(),
            is_software: false,
            ..software.clone()
        };
        let alone = software_warning(&software, std::slice::from_ref(&software));
        let beside = software_warning(&software, &[card, software.clone()]);
        for (warning, remedy) in [
            (&alone, driver_advice()),
            (&beside, "the first card is gpu:0, Card"),
        ] {
            let is = format!("gpu:1 is no graphics card: {software} is a program");
            assert!(warning.contains(&is), "{warning}");
            assert!(warning.ends_with(remedy), "{warning}");
        }
    }

    #[test]
    fn a_processor_in_a_gpus_place_is_taken_by_its_number_alone() {
        let mut found = adapters();
        assert!(!found.is_empty(), "a GPU or lavapipe (mesa-vulkan-drivers)");
        found
            .iter_mut()
            .for_each(|adapter| adapter.is_software = true);
        assert!(gpus(&found, Precision::Auto, &KernelTuner::default()).is_empty());
        found
            .iter_mut()
            .for_each(|adapter| adapter.is_software = false);
        assert!(gpus(&found, Precision::Auto, &KernelTuner::default()).len() >= found.len());
    }
}
