//! A store of blobs of its own for each test.

use std::path::PathBuf;
use std::sync::Arc;

use rookery_coordinator::blobs::{Downloads, FolderStore, SharedBlobs};

use super::s3::{S3, S3Fault};

/// A store: S3 for the test binary `cloud`, else a folder.
pub(crate) enum Files {
    Folder(tempfile::TempDir),
    Object(S3),
}

impl Files {
    pub(crate) async fn new() -> Self {
        match env!("CARGO_CRATE_NAME") {
            "cloud" => Self::Object(S3::start().await),
            _ => Self::Folder(tempfile::tempdir().unwrap()),
        }
    }

    /// The store; downloads go through the coordinator.
    pub(crate) fn open(&self) -> SharedBlobs {
        match self {
            Self::Folder(_) => Arc::new(FolderStore::open(&self.root()).unwrap()),
            Self::Object(s3) => Arc::new(s3.blobs(Downloads::default())),
        }
    }

    /// Variables of the environment by which the program finds the store.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        match self {
            Self::Folder(_) => {
                let root = self.root().display().to_string();
                vec![("ROOKERY_STORAGE".to_owned(), root)]
            }
            Self::Object(s3) => {
                let mut variables = vec![("ROOKERY_STORAGE".to_owned(), S3::url())];
                variables.extend(s3.settings());
                variables
            }
        }
    }

    /// The folder in which the store's blobs lie by their keys.
    pub(crate) fn root(&self) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.path().join("blobs"),
            Self::Object(s3) => s3.root(),
        }
    }

    /// From now on the store fails.
    pub(crate) fn break_down(&self) {
        match self {
            Self::Folder(_) => std::fs::remove_dir_all(self.root()).unwrap(),
            Self::Object(s3) => s3.set_fault(S3Fault::Failing),
        }
    }

    /// The store works again.
    pub(crate) fn mend(&self) {
        match self {
            Self::Folder(_) => std::fs::create_dir_all(self.root().join("unfinished")).unwrap(),
            Self::Object(s3) => s3.set_fault(S3Fault::None),
        }
    }
}
