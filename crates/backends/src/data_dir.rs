//! Where programs find what was measured on this machine.

use std::path::{Path, PathBuf};

use rookery_backend_gpu::KernelTuner;

/// The folder of a variable such as `XDG_DATA_HOME`, or the one of this name in the user's home.
pub fn home_folder(variable: &str, name: &str) -> Option<PathBuf> {
    let set = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    set(variable).map(PathBuf::from).or_else(|| {
        set("HOME")
            .or_else(|| set("USERPROFILE"))
            .map(|home| Path::new(&home).join(name))
    })
}

/// Where data is kept by default: `$XDG_DATA_HOME/rookery`, or `~/.local/share/rookery`.
pub fn default_data_dir() -> Option<PathBuf> {
    Some(home_folder("XDG_DATA_HOME", ".local/share")?.join("rookery"))
}

/// Where the kernels of GPUs are kept in such a folder that were fastest.
pub fn kernels_path(data_dir: &Path) -> PathBuf {
    data_dir.join("gpu-tuning.json")
}

/// Tunes the kernels of GPUs, and remembers them in the folder; without one nothing is tuned.
pub fn kernel_tuner(data_dir: Option<&Path>) -> KernelTuner {
    let path = data_dir.map(kernels_path);
    path.map(KernelTuner::remembered).unwrap_or_default()
}
