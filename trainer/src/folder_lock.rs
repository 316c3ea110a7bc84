//! The lock that keeps a folder to one trainer.

use std::path::Path;

use anyhow::Context as _;
use rookery_common::file_lock::{FileLock, FileLockError, holder};

/// A folder that only this process uses for as long as the value lives.
#[derive(Debug)]
pub struct FolderLock {
    _lock: FileLock,
}

impl FolderLock {
    /// Creates the folder if it is missing and locks it.
    ///
    /// # Errors
    ///
    /// If it cannot be created, or another process has it.
    pub fn take(folder: &Path) -> anyhow::Result<Self> {
        let shown = folder.display();
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {shown}"))?;
        match FileLock::take(&folder.join("lock")) {
            Ok(lock) => Ok(Self { _lock: lock }),
            Err(FileLockError::Held { process, .. }) => {
                let other = holder(process);
                anyhow::bail!("RK-0702: another trainer ({other}) is using the folder {shown}")
            }
            Err(error) => Err(error.into()),
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
