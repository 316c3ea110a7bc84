//! An S3 server in the test's process, over a folder, that can be told to fail.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rookery_coordinator::blobs::{Downloads, ObjectBlobs};
use rookery_tests::s3::{self, BUCKET};
pub(crate) use rookery_tests::s3_fault::S3Fault;
use rookery_tests::s3_server::serve;
use tokio::net::TcpListener;

/// The server; it ends with the test's runtime.
pub(crate) struct S3 {
    address: SocketAddr,
    fault: Arc<Mutex<S3Fault>>,
    folder: tempfile::TempDir,
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fault = Arc::new(Mutex::new(S3Fault::None));
        let (files, current) = (folder.path().to_owned(), fault.clone());
        tokio::spawn(async move { serve(listener, &files, move || Ok(*current.lock())).await });
        Self {
            address,
            fault,
            folder,
        }
    }

    /// The address of a store of blobs in its bucket.
    pub(crate) fn url() -> String {
        format!("s3://{BUCKET}/some/prefix")
    }

    /// The settings for it, as variables of the environment.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        s3::S3::environment_at(self.address)
    }

    /// That store.
    pub(crate) fn blobs(&self, downloads: Downloads) -> ObjectBlobs {
        ObjectBlobs::open(&Self::url(), self.settings(), downloads).unwrap()
    }

    /// Where the objects of that store lie.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join(BUCKET).join("some/prefix")
    }

    /// How it treats requests from now on.
    pub(crate) fn set_fault(&self, fault: S3Fault) {
        *self.fault.lock() = fault;
    }
}
