//! A journal file: entries are appended and synced, never changed.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rookery_common::files;

use super::entry::Entry;
use super::error::{SpoolError, at};
use super::frame::{self, MAGIC};

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// Bytes of whole entries; what a failed write left behind lies beyond.
    length: u64,
}

impl Journal {
    /// Creates a journal with its first entry, durably. One that is there already stays.
    pub(super) fn create(path: &Path, first: &[u8]) -> Result<Self, SpoolError> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(path);
        let file = file.map_err(at("create", path))?;
        let mut journal = Self {
            file,
            path: path.to_owned(),
            length: 0,
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(first);
        journal.append(&bytes)?;
        sync_folder_of(path)?;
        Ok(journal)
    }

    /// Opens a journal and reads its entries. What follows them, the remains of a write that did
    /// not end, is cut off. None, and the file as it was, if it begins with no entry or something
    /// else in it cannot be read.
    pub(super) fn open(path: &Path) -> Result<Option<(Self, Vec<Entry>)>, SpoolError> {
        let bytes = std::fs::read(path).map_err(at("read", path))?;
        let Some((entries, length)) = read_entries(&bytes) else {
            return Ok(None);
        };
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(at("open", path))?;
        file.set_len(length).map_err(at("shorten", path))?;
        let journal = Self {
            file,
            path: path.to_owned(),
            length,
        };
        Ok(Some((journal, entries)))
    }

    /// Writes the bytes of a whole journal in place of one that is gone, durably.
    pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<Self, SpoolError> {
        write_whole(path, bytes)?;
        let file = OpenOptions::new().write(true).open(path);
        Ok(Self {
            file: file.map_err(at("open", path))?,
            path: path.to_owned(),
            length: bytes.len() as u64,
        })
    }

    /// Bytes of whole entries.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether somebody has removed the file; what is written to it would then be lost.
    pub(super) fn is_gone(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Appends the bytes of an entry, durably or not at all.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        let mut attempt = || {
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::Start(self.length))?;
            self.file.write_all(bytes)?;
            self.file.sync_data()
        };
        attempt().map_err(at("write", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// From now on nothing can be written.
    #[cfg(test)]
    pub(super) fn break_file(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    /// From now on everything can be written again.
    #[cfg(test)]
    pub(super) fn mend_file(&mut self) {
        self.file = OpenOptions::new().write(true).open(&self.path).unwrap();
    }
}

/// What can be read of a damaged journal.
#[derive(Debug)]
pub(super) struct Rescued {
    /// The whole entries as a journal.
    pub(super) bytes: Vec<u8>,
    /// Games before the last damaged place that are in no chunk, as far as can be read: if what tells
    /// of their chunk is what was damaged, the coordinator may have them.
    pub(super) doubtful: usize,
}

/// Reads all whole entries of a damaged journal. None if the first, which tells of the job, is none.
pub(super) fn rescue(path: &Path) -> Result<Option<Rescued>, SpoolError> {
    let bytes = std::fs::read(path).map_err(at("read", path))?;
    Ok(bytes.strip_prefix(MAGIC).and_then(rescue_entries))
}

fn rescue_entries(mut rest: &[u8]) -> Option<Rescued> {
    let (first, _) = frame::read(rest)?;
    if !matches!(Entry::from_frame(&first), Ok(Entry::JobStarted(_))) {
        return None;
    }
    let mut bytes = MAGIC.to_vec();
    let (mut games, mut cut) = (BTreeSet::<u32>::new(), BTreeSet::<u32>::new());
    let mut before_damage = BTreeSet::new();
    loop {
        if let Some((frame, after)) = frame::read(rest) {
            match Entry::from_frame(&frame) {
                Ok(entry) => {
                    match entry {
                        Entry::Game(game) => {
                            games.insert(game.index);
                        }
                        Entry::ChunkSealed(members) => cut.extend(members.games),
                        Entry::JobStarted(_) | Entry::ChunkAcknowledged(_) | Entry::Closed => {}
                    }
                    bytes.extend_from_slice(&rest[..rest.len() - after.len()]);
                }
                Err(_) => before_damage.clone_from(&games),
            }
            rest = after;
        } else if let Some(next) = frame::resume(rest) {
            before_damage.clone_from(&games);
            rest = next;
        } else {
            if !frame::is_torn(rest) {
                before_damage.clone_from(&games);
            }
            break;
        }
    }
    let doubtful = before_damage.difference(&cut).count();
    Some(Rescued { bytes, doubtful })
}

/// A file's entries, at least one, and how long they are together; none if anything but the end of
/// the file cannot be read.
fn read_entries(bytes: &[u8]) -> Option<(Vec<Entry>, u64)> {
    let mut entries = Vec::new();
    let mut rest = bytes.strip_prefix(MAGIC)?;
    while let Some((frame, after)) = frame::read(rest) {
        entries.push(Entry::from_frame(&frame).ok()?);
        rest = after;
    }
    let whole = !entries.is_empty() && frame::is_torn(rest);
    whole.then(|| (entries, (bytes.len() - rest.len()) as u64))
}

/// Removes a file, which may be gone.
pub(super) fn remove_if_there(path: &Path) -> Result<(), SpoolError> {
    unless_gone(std::fs::remove_file(path), path)
}

/// Removes a folder with all that is in it, which may be gone.
pub(super) fn remove_folder_if_there(path: &Path) -> Result<(), SpoolError> {
    unless_gone(std::fs::remove_dir_all(path), path)
}

fn unless_gone(removed: std::io::Result<()>, path: &Path) -> Result<(), SpoolError> {
    files::if_found(removed).map_err(at("remove", path))?;
    Ok(())
}

/// Makes the names in a file's folder durable.
pub(super) fn sync_folder_of(path: &Path) -> Result<(), SpoolError> {
    files::sync_folder(files::folder_of(path)).map_err(at("sync the folder of", path))
}

/// Writes a file whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SpoolError> {
    files::write_whole(path, bytes).map_err(at("write", path))
}
