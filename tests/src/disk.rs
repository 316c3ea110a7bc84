//! A small disk of its own, which a test fills up or makes read-only.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use nix::unistd::Uid;
use tempfile::TempDir;

/// Bytes that are written at a time.
const BLOCK: usize = 4096;

/// A file system in memory.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    /// A disk of this size in MiB; none, with a message, if this user may not mount any.
    ///
    /// # Errors
    ///
    /// If root may not either.
    #[expect(
        clippy::print_stderr,
        reason = "whoever reads a test's output is to see it"
    )]
    pub fn new(mebibytes: u32) -> anyhow::Result<Option<Self>> {
        if !Uid::effective().is_root() {
            eprintln!("NOT RUN: only root may mount the disk of this test");
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let options = format!("size={mebibytes}m");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], folder.path())?;
        Ok(Some(Self { folder }))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Fills it to the last block.
    ///
    /// # Errors
    ///
    /// If writing fails otherwise than for want of space.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(self.filler())?;
        loop {
            match file.write_all(&[0; BLOCK]) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error).context("the disk cannot be filled"),
            }
        }
    }

    /// Makes room again.
    ///
    /// # Errors
    ///
    /// If it was not filled.
    pub fn free(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(self.filler())?)
    }

    /// Allows writing, or only reading (while no file is open for writing).
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn remount(&self, access: Access) -> anyhow::Result<()> {
        let options = match access {
            Access::ReadOnly => "remount,ro",
            Access::ReadWrite => "remount,rw",
        };
        mount(&["-o", options], self.path())
    }
}

/// What a disk allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    ReadOnly,
    /// Reading and writing.
    ReadWrite,
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A disk that stays mounted is only in the way of the next test's eyes.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn mount(arguments: &[&str], path: &Path) -> anyhow::Result<()> {
    let done = Command::new("mount").args(arguments).arg(path).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "mount {arguments:?} failed: {said}");
    Ok(())
}
