//! libtorch's CUDA library, opened at run time, and the compiler that cuDNN looks for where it is not.

use std::sync::OnceLock;

/// Opens libtorch's CUDA library, once; it then stays open for the life of the process. The error
/// says why it could not be opened.
#[cfg(unix)]
pub(crate) fn library() -> &'static Result<(), String> {
    use std::path::Path;

    static OPENED: OnceLock<Result<(), String>> = OnceLock::new();
    OPENED.get_or_init(|| {
        opened::open(Path::new("libtorch_cuda.so")).map_err(|error| {
            format!(
                "libtorch's CUDA library was not found; `scripts/libtorch --cuda` installs it \
                 ({error})"
            )
        })?;
        opened::open_compiler();
        Ok(())
    })
}

/// Elsewhere libtorch is linked as a whole.
#[cfg(not(unix))]
pub(crate) fn library() -> &'static Result<(), String> {
    static LINKED: OnceLock<Result<(), String>> = OnceLock::new();
    LINKED.get_or_init(|| Ok(()))
}

#[cfg(unix)]
mod opened {
    use std::path::{Path, PathBuf};

    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

    /// Opens a library, which then stays open.
    #[expect(unsafe_code, reason = "opening a library runs its initialisers")]
    pub(super) fn open(library: &Path) -> Result<(), libloading::Error> {
        // SAFETY: these are libtorch's own libraries and NVIDIA's, whose initialisers register kernels;
        // the OnceLock above keeps a second thread from doing the same meanwhile.
        let library = unsafe { Library::open(Some(library.as_os_str()), RTLD_NOW | RTLD_GLOBAL) }?;
        std::mem::forget(library);
        Ok(())
    }

    /// Opens NVIDIA's run-time compiler and the library that this opens in turn. cuDNN has kernels made by it, but
    /// looks for it only in its own folder and the system's, and the compiler of CUDA 13 looks for its library only in
    /// the system's: a library that is open already is found wherever it lies. Python's torch does the same. Where
    /// they are missing, cuDNN takes other kernels, if it has some, so that is no error.
    pub(super) fn open_compiler() {
        // It is linked with the compiler, and knows the folder.
        let mut opened = open(Path::new("libcaffe2_nvrtc.so"));
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if let Some(builtins) = loaded(&maps, "libnvrtc.so").and_then(builtins_beside) {
            opened = opened.and_then(|()| open(&builtins));
        }
        if let Err(error) = opened {
            tracing::debug!("NVIDIA's run-time compiler cannot be used: {error}");
        }
    }

    /// The path of a library whose name begins so, by a process's `/proc/PID/maps`.
    fn loaded<'a>(maps: &'a str, name: &str) -> Option<&'a Path> {
        let path = |line: &'a str| line.find('/').map(|start| Path::new(&line[start..]));
        maps.lines()
            .filter_map(path)
            .find(|path| is_named(path, name))
    }

    fn builtins_beside(compiler: &Path) -> Option<PathBuf> {
        let folder = std::fs::read_dir(compiler.parent()?).ok()?;
        let mut paths = folder.flatten().map(|entry| entry.path());
        paths.find(|path| is_named(path, "libnvrtc-builtins.so"))
    }

    fn is_named(path: &Path, beginning: &str) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(beginning))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_library_of_the_compiler_is_found_beside_it() {
            let folder = tempfile::tempdir().unwrap();
            let path = |name| folder.path().join(name);
            let (compiler, builtins) = (path("libnvrtc.so.13"), path("libnvrtc-builtins.so.13.0"));
            let others = ["libnvrtc.alt.so.13", "libnvrtc-builtins.alt.so.13.0"].map(path);
            for file in others.iter().chain([&compiler, &builtins]) {
                std::fs::write(file, "").unwrap();
            }
            let maps = format!(
                "55d0a000-55d0b000 r--p 00000000 fd:01 7      /opt/rookery/rookery-worker\n\
                 7f00a000-7f00b000 rw-p 00000000 00:00 0 \n\
                 7f01a000-7f01b000 r--p 00000000 fd:01 8      {}\n\
                 7f02a000-7f02b000 r-xp 00001000 fd:01 9      {}\n",
                others[0].display(),
                compiler.display()
            );
            let found = loaded(&maps, "libnvrtc.so").unwrap();
            assert_eq!(found, compiler);
            assert_eq!(builtins_beside(found), Some(builtins));
            assert_eq!(loaded(&maps, "libcudnn.so"), None);
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn libraries_in_use_are_in_the_maps_of_the_process() {
            crate::use_threads(1);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let libtorch = loaded(&maps, "libtorch_cpu.so").unwrap();
            assert!(libtorch.is_file(), "{}", libtorch.display());
        }
    }
}
