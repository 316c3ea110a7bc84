//! The lock that keeps a folder to one trainer.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;

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
    fn a_folder_has_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let first = FolderLock::take(dir.path()).unwrap();
        let error = FolderLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains("another trainer"), "{error}");
        drop(first);
        assert!(FolderLock::take(dir.path()).is_ok());
    }
}
