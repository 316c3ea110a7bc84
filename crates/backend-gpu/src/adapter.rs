//! The GPUs of this machine, as Vulkan, Metal or DirectX 12 show them.

use std::fmt;
use std::sync::LazyLock;

use rookery_common::text::quantity;
use rookery_engine::BackendError;

use crate::advice::driver_advice;

/// A GPU, or a program that computes in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuAdapter {
    /// Its number in `gpu:N`, from 0. Hardware comes first: discrete GPUs, then integrated ones.
    pub number: usize,
    /// The maker's name for it.
    pub name: String,
    /// The driver with its version.
    pub driver: String,
    /// The programming interface: `vulkan`, `metal` or `dx12`.
    pub interface: &'static str,
    /// Whether a processor computes in its place: lavapipe, SwiftShader, WARP.
    pub is_software: bool,
    /// Whether it stores numbers of 16 bits (`SHADER_F16`).
    pub has_f16: bool,
    /// Whether threads of a subgroup can exchange numbers.
    pub has_subgroups: bool,
    /// Threads of a subgroup at least, none if the GPU does not say.
    pub subgroup_threads: u32,
    /// Rows and columns of cooperative matrices of 16 bits that are summed in 32, if the GPU has those: 16 or 8.
    pub matrix_tile: Option<u32>,
    /// Memory that the threads of a workgroup share, in bytes.
    pub workgroup_bytes: u32,
    /// Threads of a workgroup at most.
    pub workgroup_threads: u32,
    /// The largest array that a kernel can read, in bytes.
    pub binding_bytes: u64,
    /// The largest of its own memories, in bytes, where the interface tells: Vulkan.
    pub memory_bytes: Option<u64>,
}

impl fmt::Display for GpuAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            driver,
            interface,
            ..
        } = self;
        write!(f, "{name} ({interface}, driver {driver})")
    }
}

/// The GPUs of this machine, none where no driver is installed.
///
/// # Examples
///
/// ```
/// for (number, adapter) in rookery_backend_gpu::adapters().iter().enumerate() {
///     assert_eq!(adapter.number, number);
///     println!("gpu:{number} {adapter}");
/// }
/// ```
pub fn adapters() -> Vec<GpuAdapter> {
    let found = found().into_iter().enumerate();
    found
        .map(|(number, adapter)| describe(number, &adapter))
        .collect()
}

/// The GPU of this number.
///
/// # Errors
///
/// [`BackendError::Failed`] if there are not as many, with what to do where there is none.
pub(crate) fn adapter(number: usize) -> Result<(wgpu::Adapter, GpuAdapter), BackendError> {
    let mut found = found();
    if number >= found.len() {
        let software = found.iter().filter(|one| is_software(&one.get_info()));
        let software = software.count();
        return Err(BackendError::Failed(format!(
            "RK-0302: device gpu:{number} cannot be used: {}",
            inventory(found.len() - software, software)
        )));
    }
    let adapter = found.swap_remove(number);
    let described = describe(number, &adapter);
    Ok((adapter, described))
}

/// How many adapters there are of hardware and of software, and what to do where none is hardware.
fn inventory(hardware: usize, software: usize) -> String {
    let (gpus, substitutes) = (
        quantity(hardware, "GPU"),
        quantity(software, "software adapter"),
    );
    match (hardware, software) {
        (0, 0) => driver_advice().to_owned(),
        (0, _) => format!(
            "this machine has no GPU, but {substitutes}, counted from 0; {}",
            driver_advice()
        ),
        (_, 0) => format!("this machine has {gpus}, counted from 0"),
        _ => format!("this machine has {gpus} and then {substitutes}, counted from 0"),
    }
}

const INTERFACES: wgpu::Backends = wgpu::Backends::VULKAN
    .union(wgpu::Backends::METAL)
    .union(wgpu::Backends::DX12);

/// One for as long as the process runs. With the last instance a loader unloads its drivers, and a thread that has used one
/// and ends later calls what is no longer there: so NVIDIA's driver took a process down.
static INSTANCE: LazyLock<wgpu::Instance> = LazyLock::new(|| {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: INTERFACES,
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
});

/// Adapters in the order of their numbers.
fn found() -> Vec<wgpu::Adapter> {
    let mut found = pollster::block_on(INSTANCE.enumerate_adapters(INTERFACES));
    let all: Vec<wgpu::AdapterInfo> = found.iter().map(wgpu::Adapter::get_info).collect();
    let vulkan_has = |info: &wgpu::AdapterInfo| {
        let mut vulkan = all
            .iter()
            .filter(|one| one.backend == wgpu::Backend::Vulkan);
        vulkan.any(|one| (one.vendor, one.device) == (info.vendor, info.device))
    };
    // DirectX 12 shows again what Vulkan has shown.
    found.retain(|adapter| {
        let info = adapter.get_info();
        info.backend != wgpu::Backend::Dx12 || !vulkan_has(&info)
    });
    found.sort_by_key(|adapter| rank(adapter.get_info().device_type));
    found
}

/// Discrete GPUs first, software last.
const fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => 2,
        wgpu::DeviceType::Cpu => 3,
    }
}

fn is_software(info: &wgpu::AdapterInfo) -> bool {
    info.device_type == wgpu::DeviceType::Cpu
}

/// What kernels with cooperative matrices need.
pub(crate) const MATRIX_FEATURES: wgpu::Features = wgpu::Features::SHADER_F16
    .union(wgpu::Features::SUBGROUP)
    .union(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// The largest square matrices of 16 bits that are summed in 32.
fn matrix_tile(known: &[wgpu::CooperativeMatrixProperties]) -> Option<u32> {
    let suits = known.iter().filter(|one| {
        (one.m_size, one.n_size) == (one.k_size, one.k_size)
            && one.ab_type == wgpu::CooperativeScalarType::F16
            && one.cr_type == wgpu::CooperativeScalarType::F32
    });
    suits.map(|one| one.k_size).max()
}

fn describe(number: usize, adapter: &wgpu::Adapter) -> GpuAdapter {
    let (info, features, limits) = (adapter.get_info(), adapter.features(), adapter.limits());
    let is_software = is_software(&info);
    let driver = [info.driver, info.driver_info].join(" ");
    GpuAdapter {
        number,
        name: info.name,
        driver: match driver.trim() {
            "" => "unknown".to_owned(),
            driver => driver.to_owned(),
        },
        interface: info.backend.to_str(),
        is_software,
        has_f16: features.contains(wgpu::Features::SHADER_F16),
        has_subgroups: features.contains(wgpu::Features::SUBGROUP),
        subgroup_threads: info.subgroup_min_size,
        matrix_tile: features
            .contains(MATRIX_FEATURES)
            .then(|| matrix_tile(&adapter.cooperative_matrix_properties()))
            .flatten(),
        workgroup_bytes: limits.max_compute_workgroup_storage_size,
        workgroup_threads: limits
            .max_compute_invocations_per_workgroup
            .min(limits.max_compute_workgroup_size_x),
        binding_bytes: limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size),
        memory_bytes: memory_bytes(adapter),
    }
}

/// The largest of the heaps that Vulkan calls the device's own. A card whose memory the processor can reach may list a part
/// of it once more.
#[cfg(not(target_vendor = "apple"))]
#[expect(unsafe_code, reason = "wgpu does not tell of memory, and Vulkan does")]
fn memory_bytes(adapter: &wgpu::Adapter) -> Option<u64> {
    /// `VK_MEMORY_HEAP_DEVICE_LOCAL_BIT`.
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: the handles are read while the adapter is there, and nothing is destroyed.
    let memory = unsafe {
        let vulkan = adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        let instance = vulkan.shared_instance().raw_instance();
        instance.get_physical_device_memory_properties(vulkan.raw_physical_device())
    };
    let heaps = memory.memory_heaps_as_slice().iter();
    let own = heaps.filter(|heap| heap.flags.as_raw() & DEVICE_LOCAL != 0);
    own.map(|heap| heap.size).max()
}

#[cfg(target_vendor = "apple")]
const fn memory_bytes(_: &wgpu::Adapter) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_and_software_are_counted_apart() {
        let advice = driver_advice();
        for (hardware, software, expected) in [
            (0, 0, advice.to_owned()),
            (
                0,
                1,
                format!(
                    "this machine has no GPU, but 1 software adapter, counted from 0; {advice}"
                ),
            ),
            (2, 0, "this machine has 2 GPUs, counted from 0".to_owned()),
            (
                1,
                2,
                "this machine has 1 GPU and then 2 software adapters, counted from 0".to_owned(),
            ),
        ] {
            assert_eq!(inventory(hardware, software), expected);
        }
    }
}
