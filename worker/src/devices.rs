//! The command `devices`: what this machine can compute on.

use rookery_backend_gpu::{GpuAdapter, KernelTuner, MatrixChoice, adapters, driver_advice};
use rookery_backends::kernel_tuner;
use rookery_common::output;

use crate::cli::DevicesArgs;
use crate::config::{ConfigFile, resolve_data_dir};
use crate::tuning::{MeasuredSpeed, Tuning};

/// Lists the processor and the GPUs that Vulkan, Metal or DirectX 12 show, each with the name that `--device` takes, the
/// kernels that were fastest there, and what `bench` measured.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn run(args: DevicesArgs) -> anyhow::Result<()> {
    let folder = resolve_data_dir(args.dir, &ConfigFile::default()).ok();
    let measured = folder.as_deref().map(Tuning::load).unwrap_or_default();
    let kernels = kernel_tuner(folder.as_deref());
    output::print(&list(&adapters(), &kernels, &measured))
}

fn list(adapters: &[GpuAdapter], kernels: &KernelTuner, measured: &Tuning) -> String {
    let mut text = "cpu    this machine's processor, f32\n".to_owned();
    text += &speeds(measured, "cpu");
    for adapter in adapters {
        let numbers = if adapter.has_f16 {
            "f32 and f16"
        } else {
            "f32"
        };
        text += &format!(
            "gpu:{}  {adapter}, {numbers}, {}, arrays of {} MiB, workgroups of {} threads with {} KiB{}{}{}\n",
            adapter.number,
            match adapter.memory_bytes {
                Some(bytes) => format!("memory of {} MiB", bytes >> 20),
                None => "memory unknown".to_owned(),
            },
            adapter.binding_bytes >> 20,
            adapter.workgroup_threads,
            adapter.workgroup_bytes >> 10,
            if adapter.has_subgroups {
                ", subgroups"
            } else {
                ""
            },
            matrices(adapter),
            if adapter.is_software {
                "; a software adapter: this machine's processor, which auto never takes for a GPU"
            } else {
                ""
            },
        );
        for tuned in kernels.known(adapter) {
            text += &format!("       tuned for {tuned}\n");
        }
        text += &speeds(measured, &adapter.to_string());
    }
    if adapters.iter().all(|adapter| adapter.is_software) {
        let software = match adapters {
            [] => "",
            _ => "a software adapter is the processor, and is used only if --device names it; ",
        };
        text += &format!("RK-0301: no GPU: {software}{}\n", driver_advice());
    }
    text
}

/// Whether an adapter has cooperative matrices, and whether kernels use them unless the user says otherwise.
fn matrices(adapter: &GpuAdapter) -> String {
    let Some(tile) = adapter.matrix_tile else {
        return ", no cooperative matrices".to_owned();
    };
    let used = match MatrixChoice::default().tile(adapter) {
        Some(_) => "used in f16",
        None => "used only with --gpu-matrices on",
    };
    format!(", cooperative matrices of {tile} x {tile} ({used})")
}

/// What `bench` measured on some hardware.
fn speeds(measured: &Tuning, hardware: &str) -> String {
    let speeds = measured.speeds(hardware).map(|speed| {
        let MeasuredSpeed {
            network,
            precision,
            bare,
            selfplay,
            ..
        } = speed;
        format!(
            "       measured with {network} in {precision}: {bare} evaluations/s bare, {selfplay} in self-play\n"
        )
    });
    speeds.collect()
}

#[cfg(test)]
mod tests {
    use rookery_backends::kernels_path;
    use rookery_common::network::NetworkSpec;

    use super::*;

    #[test]
    fn each_device_has_the_name_that_is_asked_for() {
        let (untuned, unmeasured) = (KernelTuner::default(), Tuning::default());
        assert!(list(&[], &untuned, &unmeasured).contains("no GPU: "));
        let card = GpuAdapter {
            number: 0,
            name: "Card".to_owned(),
            driver: "maker 1.2".to_owned(),
            interface: "vulkan",
            is_software: false,
            has_f16: true,
            has_subgroups: true,
            subgroup_threads: 32,
            matrix_tile: Some(16),
            workgroup_bytes: 48 << 10,
            workgroup_threads: 1024,
            binding_bytes: 2 << 30,
            memory_bytes: Some(8 << 30),
        };
        let software = GpuAdapter {
            number: 1,
            name: "llvmpipe".to_owned(),
            is_software: true,
            has_f16: false,
            matrix_tile: None,
            memory_bytes: None,
            ..card.clone()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = kernels_path(folder.path());
        let file = serde_json::json!({"program": env!("CARGO_PKG_VERSION"), "tuned": [{
            "adapter": "Card", "driver": "maker 1.2", "precision": "f16", "network": NetworkSpec::resnet(6, 64),
            "chosen": {"fused": {"boards": 2}}, "evals_per_s": 12345.6, "tried": 9,
        }]});
        std::fs::write(&path, file.to_string()).unwrap();
        let mut measured = Tuning::default();
        for (hardware, bare) in [("cpu", 900), ("Card (vulkan, driver maker 1.2)", 50_000)] {
            measured.note_speed(MeasuredSpeed {
                hardware: hardware.to_owned(),
                precision: "f32".to_owned(),
                network: "6x64".to_owned(),
                bare,
                selfplay: bare / 2,
            });
        }
        let tuner = KernelTuner::remembered(path);
        let nvidia = GpuAdapter {
            driver: "NVIDIA 580.95".to_owned(),
            ..card.clone()
        };
        let text = list(&[card, software.clone()], &tuner, &measured);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("cpu "), "{text}");
        assert_eq!(
            lines[1],
            "       measured with 6x64 in f32: 900 evaluations/s bare, 450 in self-play"
        );
        assert_eq!(
            lines[2],
            "gpu:0  Card (vulkan, driver maker 1.2), f32 and f16, memory of 8192 MiB, arrays of 2048 MiB, workgroups of \
             1024 threads with 48 KiB, subgroups, cooperative matrices of 16 x 16 (used only with --gpu-matrices on)"
        );
        assert_eq!(
            lines[3],
            "       tuned for a network of 6x64 in f16: the tower in one kernel, 2 positions a workgroup, 12346 \
             evaluations/s, the fastest of 9"
        );
        assert_eq!(
            lines[4],
            "       measured with 6x64 in f32: 50000 evaluations/s bare, 25000 in self-play"
        );
        assert!(
            lines[5]
                .starts_with("gpu:1  llvmpipe (vulkan, driver maker 1.2), f32, memory unknown, ")
        );
        let is_software = "subgroups, no cooperative matrices; a software adapter: ";
        assert!(lines[5].contains(is_software), "{text}");
        let used = list(&[nvidia], &untuned, &unmeasured);
        assert!(used.contains("of 16 x 16 (used in f16)\n"), "{used}");
        assert!(!text.contains("no GPU"), "{text}");
        let alone = list(&[software], &untuned, &unmeasured);
        assert!(
            alone.contains("RK-0301: no GPU: a software adapter is the processor"),
            "{alone}"
        );
    }
}
