//! An S3 server of its own, the program `rookery-s3`, over a folder.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::programs::{PATIENCE, Running, quiet_port};
use crate::s3_fault::S3Fault;

/// The key that the server knows.
pub(crate) const KEY: &str = "test-key";
/// Its secret.
pub(crate) const SECRET: &str = "test-secret";
/// The bucket that there is.
pub const BUCKET: &str = "rookery";

/// A server; it is killed and its folder removed when it is dropped.
#[derive(Debug)]
pub struct S3 {
    folder: TempDir,
    port: u16,
    server: Mutex<Option<Running>>,
}

impl S3 {
    /// Starts a server with an empty bucket. Its files lie in `folder`, or in the system's
    /// temporary one.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(folder: Option<&Path>) -> anyhow::Result<Self> {
        let folder = match folder {
            Some(folder) => tempfile::tempdir_in(folder)?,
            None => tempfile::tempdir()?,
        };
        let server = Self {
            folder,
            port: quiet_port()?,
            server: Mutex::new(None),
        };
        fs::create_dir_all(server.files().join(BUCKET))?;
        server.run()?;
        Ok(server)
    }

    /// The address of the store, for `--store`.
    pub fn url() -> String {
        format!("s3://{BUCKET}/tests")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Variables of the environment by which a coordinator reaches it.
    pub fn environment(&self) -> Vec<(String, String)> {
        Self::environment_at(self.address())
    }

    /// The same for a way to it that begins at this address.
    pub fn environment_at(address: SocketAddr) -> Vec<(String, String)> {
        let variables = [
            ("AWS_ENDPOINT", format!("http://{address}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ];
        let owned = variables.map(|(name, value)| (name.to_owned(), value));
        owned.to_vec()
    }

    /// The folder in which all that it was given lies.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("buckets")
    }

    /// Starts the server again after it was killed, and waits until it listens.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub fn run(&self) -> anyhow::Result<()> {
        let listen = self.address().to_string();
        let buckets = self.files().display().to_string();
        let fault = self.fault().display().to_string();
        let arguments = ["--listen", &listen, "--dir", &buckets, "--fault", &fault];
        let log = self.folder.path().join("log");
        let mut running = Running::start("rookery-s3", &log, &arguments, &[])?;
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&listen).is_err() {
            if running.ended()?.is_some() || Instant::now() > deadline {
                bail!("the S3 server does not listen:\n{}", running.printed());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        *self.server.lock() = Some(running);
        Ok(())
    }

    /// Kills the server as a power cut would.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub fn kill(&self) -> anyhow::Result<()> {
        let running = self.server.lock().take();
        running.context("the S3 server is running")?.kill()
    }

    fn fault(&self) -> PathBuf {
        self.folder.path().join("fault")
    }

    /// How the server treats requests from now on, also after it was killed.
    ///
    /// # Errors
    ///
    /// If it cannot be told.
    pub fn set_fault(&self, fault: S3Fault) -> anyhow::Result<()> {
        fault.write(&self.fault())
    }
}
