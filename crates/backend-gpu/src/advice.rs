//! What to do where no GPU is found, by what this machine shows.

use std::path::Path;

/// What a machine shows of its GPUs and of itself.
#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    /// Windows runs this Linux.
    is_wsl: bool,
    is_container: bool,
    has_nvidia: bool,
    /// A driver of the kernel shows a GPU to programs.
    has_dri: bool,
}

impl Signs {
    fn of_this_machine() -> Self {
        let any = |paths: &[&str]| paths.iter().any(|path| Path::new(path).exists());
        Self {
            is_wsl: any(&["/dev/dxg"]),
            is_container: any(&["/.dockerenv", "/run/.containerenv"])
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            has_nvidia: any(&[
                "/proc/driver/nvidia/version",
                "/usr/lib/wsl/lib/libcuda.so.1",
            ]),
            has_dri: any(&["/dev/dri"]),
        }
    }
}

/// Whether an NVIDIA GPU is there, even if no interface for graphics shows it.
pub fn has_nvidia_gpu() -> bool {
    Signs::of_this_machine().has_nvidia
}

/// What to do where [`adapters`](crate::adapters) finds no hardware.
pub fn driver_advice() -> &'static str {
    advice(Signs::of_this_machine())
}

const fn advice(signs: Signs) -> &'static str {
    match signs {
        Signs {
            is_wsl: true,
            has_nvidia: true,
            ..
        } => {
            "WSL2 has no Vulkan for NVIDIA's GPUs: run the worker on Windows itself, or take the archive \
             rookery-worker-torch, which needs CUDA alone"
        }
        Signs { is_wsl: true, .. } => {
            "WSL2 shows GPUs to programs of Windows better: run the worker on Windows itself"
        }
        Signs {
            is_container: true,
            has_nvidia: true,
            ..
        } => {
            "this container has NVIDIA's driver without its Vulkan part: start it with \
             NVIDIA_DRIVER_CAPABILITIES=all and install libvulkan1 and libegl1 in it (the image worker-gpu has them), or \
             take the image worker-torch, which needs CUDA alone"
        }
        Signs {
            is_container: true,
            has_dri: true,
            ..
        } => {
            "this container sees a GPU and has no Vulkan driver for it: install libvulkan1 and mesa-vulkan-drivers in it \
             (the image worker-gpu has them), and let its user open /dev/dri (--group-add)"
        }
        Signs {
            is_container: true, ..
        } => {
            "this container sees no GPU: pass it on with --device /dev/dri, or --gpus all for NVIDIA, and take the image \
             worker-gpu, which has Vulkan's drivers"
        }
        Signs {
            has_nvidia: true, ..
        } => {
            "NVIDIA's driver is installed without its Vulkan part, as \"headless\" and \"server\" packages are: install the \
             one with graphics (Debian: nvidia-driver, Ubuntu: nvidia-driver-NUMBER) and libvulkan1, or take the archive \
             rookery-worker-torch, which needs CUDA alone"
        }
        Signs { has_dri: true, .. } => {
            "install libvulkan1 and the GPU's Vulkan driver: mesa-vulkan-drivers for AMD and Intel, NVIDIA's own for NVIDIA"
        }
        _ => {
            "no driver for Vulkan, Metal or DirectX 12 shows a GPU here; if there is one, install its driver with Vulkan"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_the_machine() {
        let none = Signs::default();
        let container = Signs {
            is_container: true,
            ..none
        };
        let nvidia = Signs {
            has_nvidia: true,
            ..none
        };
        let cases = [
            (none, "shows a GPU here"),
            (nvidia, "\"headless\""),
            (
                Signs {
                    has_dri: true,
                    ..none
                },
                "mesa-vulkan-drivers",
            ),
            (container, "--device /dev/dri"),
            (
                Signs {
                    has_dri: true,
                    ..container
                },
                "--group-add",
            ),
            (
                Signs {
                    has_nvidia: true,
                    ..container
                },
                "NVIDIA_DRIVER_CAPABILITIES",
            ),
            (
                Signs {
                    is_wsl: true,
                    ..none
                },
                "on Windows itself",
            ),
            (
                Signs {
                    is_wsl: true,
                    ..nvidia
                },
                "WSL2 has no Vulkan",
            ),
        ];
        for (signs, part) in cases {
            let told = advice(signs);
            assert!(told.contains(part), "{signs:?}: {told}");
        }
    }
}
