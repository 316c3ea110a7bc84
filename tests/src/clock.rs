//! The clock of a program, set forward and back by a test: `libfaketime`, which Debian's package of that name
//! installs, is loaded before the program's own libraries and answers for the system. What measures how long
//! something takes goes on undisturbed, as on a machine whose clock is set.

use std::path::PathBuf;

use anyhow::Context as _;
use tempfile::TempDir;

/// The library for programs of several threads, in a folder of the machine's architecture.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A clock.
#[derive(Debug)]
pub struct Clock {
    folder: TempDir,
    library: PathBuf,
}

impl Clock {
    /// A clock that is right.
    ///
    /// # Errors
    ///
    /// If the library is not installed.
    pub fn new() -> anyhow::Result<Self> {
        let folders = std::fs::read_dir("/usr/lib")?.flatten();
        let mut libraries = folders.map(|folder| folder.path().join(LIBRARY));
        let library = libraries.find(|library| library.is_file());
        let clock = Self {
            folder: tempfile::tempdir()?,
            library: library.context("libfaketimeMT.so.1 is missing: install `libfaketime`")?,
        };
        clock.set(0)?;
        Ok(clock)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    /// Variables of the environment by which a program goes by it.
    pub fn environment(&self) -> Vec<(String, String)> {
        let variables = [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ];
        let owned = variables.map(|(name, value)| (name.to_owned(), value));
        owned.to_vec()
    }

    /// Sets it this number of seconds ahead of the right time, or behind it.
    ///
    /// # Errors
    ///
    /// If the programs cannot be told.
    pub fn set(&self, seconds: i64) -> anyhow::Result<()> {
        let partial = self.folder.path().join("partial");
        std::fs::write(&partial, format!("{seconds:+}\n"))?;
        Ok(std::fs::rename(&partial, self.file())?)
    }
}
