//! The command `devices`: what this machine can compute on.

use rookery_backend_gpu::{GpuAdapter, adapters, driver_advice};
use rookery_common::output;

/// Lists the processor and the GPUs that Vulkan, Metal or DirectX 12 show, each with the name that `--device` takes.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn run() -> anyhow::Result<()> {
    output::print(&list(&adapters()))
}

fn list(adapters: &[GpuAdapter]) -> String {
    let mut text = "cpu    this machine's processor, f32\n".to_owned();
    for adapter in adapters {
        let numbers = if adapter.has_f16 {
            "f32 and f16"
        } else {
            "f32"
        };
        text += &format!(
            "gpu:{}  {adapter}, {numbers}, arrays of {} MiB, workgroups of {} threads with {} KiB{}{}\n",
            adapter.number,
            adapter.binding_bytes >> 20,
            adapter.workgroup_threads,
            adapter.workgroup_bytes >> 10,
            if adapter.has_subgroups {
                ", subgroups"
            } else {
                ""
            },
            if adapter.is_software {
                "; a processor in a GPU's place, which auto never takes"
            } else {
                ""
            },
        );
    }
    if adapters.iter().all(|adapter| adapter.is_software) {
        text += &format!("RK-0301: no GPU: {}\n", driver_advice());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_the_name_that_is_asked_for() {
        assert!(list(&[]).contains("no GPU: "));
        let card = GpuAdapter {
            number: 0,
            name: "Card".to_owned(),
            driver: "maker 1.2".to_owned(),
            interface: "vulkan",
            is_software: false,
            has_f16: true,
            has_subgroups: true,
            workgroup_bytes: 48 << 10,
            workgroup_threads: 1024,
            binding_bytes: 2 << 30,
        };
        let software = GpuAdapter {
            number: 1,
            name: "llvmpipe".to_owned(),
            is_software: true,
            has_f16: false,
            ..card.clone()
        };
        let text = list(&[card, software]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("cpu "), "{text}");
        assert_eq!(
            lines[1],
            "gpu:0  Card (vulkan, driver maker 1.2), f32 and f16, arrays of 2048 MiB, workgroups of 1024 threads with \
             48 KiB, subgroups"
        );
        assert!(lines[2].starts_with("gpu:1  llvmpipe (vulkan, driver maker 1.2), f32, "));
        assert!(lines[2].ends_with("which auto never takes"), "{text}");
    }
}
