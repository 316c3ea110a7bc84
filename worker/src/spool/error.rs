//! What can go wrong with the spool.

use std::path::{Path, PathBuf};

use rookery_common::chunk::EncodeError;
use rookery_common::ids::JobId;

use super::playable::JobError;

/// An error of the spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A file or folder could not be read or written.
    #[error("cannot {action} {path}: {source}{}", advice(source), path = path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another worker uses the spool.
    #[error("RK-0502: another worker uses {0}; give this one its own --dir")]
    Locked(PathBuf),
    /// A journal entry that cannot be read or written.
    #[error("a journal entry is unusable: {0}")]
    Entry(String),
    /// A finished game that no chunk can hold: a bug of this program.
    #[error("a finished game cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// A job that cannot be played.
    #[error("RK-0512: job {id} cannot be played: {error}")]
    Job {
        /// The job.
        id: JobId,
        /// Why.
        error: JobError,
    },
    /// A job that the spool does not hold.
    #[error("the spool holds no job {0}")]
    NoJob(JobId),
}

impl SpoolError {
    /// Whether what is to be written to is not there, rather than not writable at present.
    pub fn is_gone(&self) -> bool {
        match self {
            Self::File { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Self::NoJob(_) => true,
            Self::Locked(_) | Self::Entry(_) | Self::Encode(_) | Self::Job { .. } => false,
        }
    }
}

/// What to do about a file that could not be written.
pub(crate) fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; RK-0501: make room on the disk, finished games wait in memory"
        }
        _ => "",
    }
}

/// Names what was tried on which file.
pub(super) fn at(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SpoolError {
    move |source| SpoolError::File {
        action,
        path: path.to_owned(),
        source,
    }
}
