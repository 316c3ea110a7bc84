//! The lock that keeps a folder to one trainer.

use std::path::Path;

use anyhow::Context as _;
use rookery_common::file_lock::{FileLock, FileLockError, holder};

/// Creates the folder if it is missing and locks it: as long as the value lives no other process uses it.
///
/// # Errors
///
/// If it cannot be created, or another process has it.
pub fn take(folder: &Path) -> anyhow::Result<FileLock> {
    let shown = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {shown}"))?;
    FileLock::take(&folder.join("lock")).map_err(|error| match error {
        FileLockError::Held { process, .. } => {
            let other = holder(process);
            anyhow::anyhow!("RK-0702: another trainer ({other}) is using the folder {shown}")
        }
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let first = take(dir.path()).unwrap();
        let error = take(dir.path()).unwrap_err().to_string();
        assert!(error.contains("another trainer"), "{error}");
        drop(first);
        assert!(take(dir.path()).is_ok());
    }
}
