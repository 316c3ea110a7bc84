//! What AMD's compiler makes of the kernels, without a card: `scripts/check-gpu` runs these two.
//!
//! ```text
//! kernels_are_written (any GPU) --NETWORK-STORAGE-VARIANT-KERNEL.wgsl--> registers_are_counted (Mesa's radeon driver, forced to a chip)
//! ```
//!
//! The driver opens no device that wgpu could use then, so that its pipelines are made by Vulkan itself.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use ash::{khr, vk};
use rookery_common::network::NetworkSpec;
use rookery_common::text::quantity;

use super::sources::{UNCHECKED, kernels, parsed};
use super::storages;
use crate::variant::{Tiling, TowerPath};

/// The folder of the kernels.
fn folder() -> PathBuf {
    let folder = std::env::var_os("ROOKERY_KERNELS");
    folder.expect("ROOKERY_KERNELS names a folder").into()
}

#[test]
#[ignore = "scripts/check-gpu runs it"]
fn kernels_are_written() {
    // Blocks do not change a kernel but for a number.
    for shape in ["2x64", "2x128", "2x256"] {
        let spec = NetworkSpec::from_shape(shape).unwrap();
        for storage in storages().iter().copied() {
            let mut numbers = HashMap::new();
            for (path, kernel) in kernels(&spec, storage, None) {
                let start = format!("{shape} {storage:?} {} {}", short(path), kernel.name);
                let number = numbers.entry(start.clone()).or_insert(0);
                let file = folder().join(format!("{start} {number}.wgsl"));
                std::fs::write(file, &kernel.source).unwrap();
                *number += 1;
            }
        }
    }
}

/// What a kernel's name says of the first way of computing the tower that has it.
fn short(path: TowerPath) -> String {
    match path {
        TowerPath::Fused { boards } => quantity(boards, "board"),
        TowerPath::Layered(Tiling { threads, pairs }) => {
            let pairs = if pairs { " pairs" } else { "" };
            format!("{threads} threads{pairs}")
        }
        TowerPath::Matrices(_) => unreachable!("matrices are not asked for"),
    }
}

/// A kernel in SPIR-V, translated as wgpu does where checks are off.
fn spirv(source: &str) -> Vec<u32> {
    use naga::back::spv;
    let (module, info) = parsed(source);
    let options = spv::Options {
        lang_version: (1, 5),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: UNCHECKED,
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let entry = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".to_owned(),
    };
    spv::write_vec(&module, &info, &options, Some(&entry)).unwrap()
}

/// Vulkan's name of something.
fn text(name: &[c_char]) -> String {
    let bytes: Vec<u8> = name.iter().map(|byte| byte.cast_unsigned()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).unwrap();
    text.to_str().unwrap().to_owned()
}

#[test]
#[ignore = "scripts/check-gpu runs it"]
#[expect(
    unsafe_code,
    reason = "Vulkan's functions, of which the first driver's first device compiles and computes nothing"
)]
fn registers_are_counted() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "wgsl"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "kernels_are_written runs first");
    // SAFETY: every structure outlives the calls that read it, and what is made is used while its maker is there.
    unsafe {
        let entry = ash::Entry::load().unwrap();
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
        let instance = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = entry.create_instance(&instance, None).unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let properties = instance.get_physical_device_properties(physical);
        println!("device {}", text(&properties.device_name));
        let priority = [1.0];
        let queue = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priority)];
        let extensions = [khr::pipeline_executable_properties::NAME.as_ptr()];
        let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true);
        let mut narrow = vk::PhysicalDeviceVulkan11Features::default()
            .storage_buffer16_bit_access(true)
            .uniform_and_storage_buffer16_bit_access(true);
        let mut half = vk::PhysicalDeviceVulkan12Features::default().shader_float16(true);
        let device = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queue)
            .enabled_extension_names(&extensions)
            .push_next(&mut statistics)
            .push_next(&mut narrow)
            .push_next(&mut half);
        let device = instance.create_device(physical, &device, None).unwrap();
        let counts = khr::pipeline_executable_properties::Device::new(&instance, &device);
        for file in files {
            let source = std::fs::read_to_string(&file).unwrap();
            let pipeline = compile(&device, &source);
            let executable = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
            let found = counts.get_pipeline_executable_statistics(&executable);
            let found = found.unwrap().into_iter().map(|one| {
                let number = match one.format {
                    vk::PipelineExecutableStatisticFormatKHR::FLOAT64 => one.value.f64,
                    _ => one.value.u64 as f64,
                };
                (text(&one.name), serde_json::Value::from(number))
            });
            let found: serde_json::Map<_, _> = found.collect();
            let name = file.file_stem().unwrap().display();
            println!("kernel {name}: {}", serde_json::Value::Object(found));
        }
    }
}

/// A pipeline whose statistics are kept, with as many storage buffers as kernels have at most.
///
/// # Safety
///
/// The device has to be there.
#[expect(unsafe_code, reason = "Vulkan's functions")]
unsafe fn compile(device: &ash::Device, source: &str) -> vk::Pipeline {
    let words = spirv(source);
    let binding = |number| {
        vk::DescriptorSetLayoutBinding::default()
            .binding(number)
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
    };
    let bindings: Vec<_> = (0..8).map(binding).collect();
    let layout = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: every structure outlives the call that reads it.
    unsafe {
        let layouts = [device.create_descriptor_set_layout(&layout, None).unwrap()];
        let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let layout = device.create_pipeline_layout(&layout, None).unwrap();
        let module = vk::ShaderModuleCreateInfo::default().code(&words);
        let module = device.create_shader_module(&module, None).unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let pipeline = vk::ComputePipelineCreateInfo::default()
            .flags(vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR)
            .stage(stage)
            .layout(layout);
        let made = device.create_compute_pipelines(vk::PipelineCache::null(), &[pipeline], None);
        made.unwrap()[0]
    }
}
