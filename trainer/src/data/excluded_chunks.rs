//! Chunks that the coordinator holds out of training, as far as they are known, in a file: a trainer
//! that starts again leaves out the same chunks before it has asked anyone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::files::{if_found, write_whole};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::trust::HoldRow;
use serde::{Deserialize, Serialize};

/// The chunks that are held.
#[derive(Debug)]
pub struct ExcludedChunks {
    path: PathBuf,
    synced: Synced,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Synced {
    /// The place of the last hold that is known.
    until: i64,
    held: BTreeSet<ContentHash>,
    /// Those that were held when the last candidate's training began.
    #[serde(default)]
    left_out: BTreeSet<ContentHash>,
}

impl ExcludedChunks {
    /// Reads what is known from a file; without one, or where it is damaged, nothing is, and the
    /// coordinator is asked for all.
    ///
    /// # Errors
    ///
    /// If the file is there and cannot be read.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let text = if_found(std::fs::read(path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let synced = match text {
            Some(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!("{} is damaged: {error}; it is made anew", path.display());
                Synced::default()
            }),
            None => Synced::default(),
        };
        Ok(Self {
            path: path.to_owned(),
            synced,
        })
    }

    /// The place of the last hold that is known, 0 without any.
    pub const fn until(&self) -> i64 {
        self.synced.until
    }

    /// Whether a chunk is held.
    pub fn has(&self, chunk: ContentHash) -> bool {
        self.synced.held.contains(&chunk)
    }

    /// How many are held.
    pub fn count(&self) -> usize {
        self.synced.held.len()
    }

    /// Whether the last candidate is trained without a chunk.
    pub fn is_left_out(&self, chunk: ContentHash) -> bool {
        self.synced.left_out.contains(&chunk)
    }

    /// Remembers that a candidate is trained without the chunks that are held.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn begin_candidate(&mut self) -> anyhow::Result<()> {
        if self.synced.left_out == self.synced.held {
            return Ok(());
        }
        self.synced.left_out.clone_from(&self.synced.held);
        self.write()
    }

    /// Follows a change; the answer is whether it was one.
    pub fn follow(&mut self, hold: &HoldRow) -> bool {
        if hold.held {
            self.synced.held.insert(hold.chunk)
        } else {
            self.synced.held.remove(&hold.chunk)
        }
    }

    /// Remembers that everything up to a place was followed.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn reach(&mut self, until: i64) -> anyhow::Result<()> {
        if until > self.synced.until {
            self.synced.until = until;
            self.write()?;
        }
        Ok(())
    }

    /// Forgets everything, so that the coordinator is asked for all.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn forget(&mut self) -> anyhow::Result<()> {
        self.synced = Synced::default();
        self.write()
    }

    fn write(&self) -> anyhow::Result<()> {
        write_whole(&self.path, &serde_json::to_vec(&self.synced)?)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holds.json");
        let row = |sequence: i64, chunk: &[u8], held| HoldRow {
            sequence,
            chunk: ContentHash::of(chunk),
            chunk_sequence: 1,
            held,
            reason: String::new(),
            at: String::new(),
        };
        let mut holds = ExcludedChunks::open(&path).unwrap();
        assert!(holds.follow(&row(1, b"a", true)));
        assert!(!holds.follow(&row(2, b"a", true)), "it is held already");
        assert!(holds.follow(&row(3, b"b", true)));
        assert!(holds.follow(&row(4, b"a", false)));
        holds.reach(4).unwrap();
        let mut again = ExcludedChunks::open(&path).unwrap();
        assert_eq!((again.until(), again.count()), (4, 1));
        assert!(again.has(ContentHash::of(b"b")) && !again.has(ContentHash::of(b"a")));
        again.reach(4).unwrap();
        again.forget().unwrap();
        let mut forgotten = ExcludedChunks::open(&path).unwrap();
        assert_eq!((forgotten.until(), forgotten.count()), (0, 0));
        forgotten.reach(4).unwrap();
        std::fs::write(&path, b"{").unwrap();
        assert_eq!(ExcludedChunks::open(&path).unwrap().until(), 0);
    }
}
