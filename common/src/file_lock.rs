//! Lock files: what one process at a time may use. The lock ends with its process, however that ends.
//!
//! Behind the feature `command-line`.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// A lock that this process has for as long as the value lives.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum FileLockError {
    /// Another process has it.
    #[error("{} is locked by {}", path.display(), holder(*process))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The other process, where the file tells it.
        process: Option<u32>,
    },
    /// The file cannot be used.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The lock file.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
}

/// A process, as messages name it.
pub fn holder(process: Option<u32>) -> String {
    process.map_or_else(
        || "another process".to_owned(),
        |process| format!("process {process}"),
    )
}

impl FileLock {
    /// Creates the file if it is missing, locks it and writes this process's number into it.
    ///
    /// # Errors
    ///
    /// If another process has the lock, or the file cannot be used.
    pub fn take(path: &Path) -> Result<Self, FileLockError> {
        let failed = |action| {
            move |source| FileLockError::Io {
                action,
                path: path.to_owned(),
                source,
            }
        };
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path);
        let mut file = file.map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FileLockError::Held {
                    path: path.to_owned(),
                    process: process_in(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
        // The number is for people only: a full disk does not prevent the lock.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}

fn process_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_who_is_named() {
        let path = std::env::temp_dir().join(format!("rookery-lock-{}", std::process::id()));
        let first = FileLock::take(&path).unwrap();
        let error = FileLock::take(&path).unwrap_err();
        let shown = error.to_string();
        assert!(matches!(error, FileLockError::Held { .. }), "{shown}");
        if cfg!(unix) {
            assert!(
                shown.contains(&format!("process {}", std::process::id())),
                "{shown}"
            );
        }
        drop(first);
        drop(FileLock::take(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let nowhere = path.join("lock");
        let error = FileLock::take(&nowhere).unwrap_err();
        assert!(matches!(error, FileLockError::Io { .. }), "{error}");
    }
}
