//! Files that a crash never leaves half written, and the lock that keeps a folder to one trainer.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Writes a file under another name, syncs it, renames it into place and syncs the folder.
///
/// # Errors
///
/// What the system says; the old file is then still there, whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = partial_name(path);
    let attempt = || {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&partial, path)?;
        File::open(folder_of(path))?.sync_all()
    };
    attempt().inspect_err(|_| {
        // What is left of it is of no use; that it cannot be removed adds nothing to the error.
        drop(std::fs::remove_file(&partial));
    })
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

/// A folder that only this process uses for as long as the value lives.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Creates the folder if it is missing and locks it.
    ///
    /// # Errors
    ///
    /// If it cannot be created, or another process has it.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
        let path = folder.join("lock");
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(std::fs::TryLockError::WouldBlock) => {
                anyhow::bail!("another trainer is using the folder {}", folder.display())
            }
            Err(std::fs::TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write_whole(&path, b"old").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let missing = dir.path().join("missing/a");
        assert!(write_whole(&missing, b"x").is_err());
    }

    #[test]
    fn a_folder_has_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let first = FolderLock::take(dir.path()).unwrap();
        let error = FolderLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains("another trainer"), "{error}");
        drop(first);
        assert!(FolderLock::take(dir.path()).is_ok());
    }
}
