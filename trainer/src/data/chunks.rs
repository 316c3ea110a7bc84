//! The folder of chunk files that were fetched, each under its SHA-256.

use std::collections::HashSet;
use std::fs::ReadDir;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::chunk::Caps;
use rookery_common::files::{if_found, write_whole};
use rookery_common::ids::ContentHash;

/// How the names of chunk files end.
const ENDING: &str = ".chunk";

/// A folder of chunks: `ab/abcdef….chunk`.
#[derive(Debug, Clone)]
pub struct ChunkFolder {
    folder: PathBuf,
}

/// Files that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ChunkFolder {
    /// The chunks in this folder, which need not exist yet.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, hash: ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.folder.join(&name[..2]).join(format!("{name}{ENDING}"))
    }

    /// A chunk's bytes, if it is there and whole. A damaged file counts as missing.
    ///
    /// # Errors
    ///
    /// If the file is there but cannot be read.
    pub fn get(&self, hash: ContentHash) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.path(hash);
        let cannot = || format!("cannot read the chunk {}", path.display());
        let Some(metadata) = if_found(std::fs::metadata(&path)).with_context(cannot)? else {
            return Ok(None);
        };
        if metadata.len() <= Caps::default().compressed_bytes as u64 {
            let bytes = std::fs::read(&path).with_context(cannot)?;
            if ContentHash::of(&bytes) == hash {
                return Ok(Some(bytes));
            }
        }
        tracing::warn!(
            "the chunk file {} is damaged; it is fetched again",
            path.display()
        );
        Ok(None)
    }

    /// Keeps a chunk.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn put(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.path(ContentHash::of(bytes));
        let folder = path.parent().unwrap_or(&self.folder);
        let written = std::fs::create_dir_all(folder).and_then(|()| write_whole(&path, bytes));
        written.with_context(|| format!("cannot keep the chunk {}", path.display()))
    }

    /// Removes the files of these chunks, if they are there.
    ///
    /// # Errors
    ///
    /// If the folder cannot be read, or a file cannot be removed.
    pub fn remove(&self, chunks: &HashSet<ContentHash>) -> anyhow::Result<Removed> {
        let mut removed = Removed::default();
        let Some(parts) = read_folder(&self.folder)? else {
            return Ok(removed);
        };
        for part in parts {
            let part = part.with_context(|| cannot_read(&self.folder))?.path();
            let Some(files) = read_folder(&part)? else {
                continue;
            };
            for file in files {
                let file = file.with_context(|| cannot_read(&part))?;
                let name = file.file_name();
                let stem = name.to_str().and_then(|name| name.strip_suffix(ENDING));
                let hash = stem.and_then(|stem| stem.parse::<ContentHash>().ok());
                if !hash.is_some_and(|hash| chunks.contains(&hash)) {
                    continue;
                }
                let path = file.path();
                let cannot = || format!("cannot remove the chunk {}", path.display());
                removed.bytes += file.metadata().with_context(cannot)?.len();
                std::fs::remove_file(&path).with_context(cannot)?;
                removed.files += 1;
            }
        }
        Ok(removed)
    }
}

/// What lies in a folder; none if it is missing, or is a file.
fn read_folder(folder: &Path) -> anyhow::Result<Option<ReadDir>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        entries => entries.map(Some).with_context(|| cannot_read(folder)),
    }
}

fn cannot_read(folder: &Path) -> String {
    format!("cannot read the folder {}", folder.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_chunk_counts_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ChunkFolder::new(dir.path().join("chunks"));
        let hash = ContentHash::of(b"games");
        assert_eq!(folder.get(hash).unwrap(), None);
        folder.put(b"games").unwrap();
        assert_eq!(folder.get(hash).unwrap().as_deref(), Some(&b"games"[..]));
        std::fs::write(folder.path(hash), b"gamez").unwrap();
        assert_eq!(folder.get(hash).unwrap(), None);
    }

    #[test]
    fn only_chunks_that_are_named_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ChunkFolder::new(dir.path().join("chunks"));
        let [old, new, never] = [&b"old"[..], b"new", b"never"].map(ContentHash::of);
        let named = HashSet::from([old, never]);
        assert_eq!(folder.remove(&named).unwrap(), Removed::default());
        folder.put(b"old").unwrap();
        folder.put(b"new").unwrap();
        let strays = [
            dir.path().join("chunks/notes.txt"),
            folder.path(old).with_extension("txt"),
        ];
        for stray in &strays {
            std::fs::write(stray, b"mine").unwrap();
        }
        let expected = Removed { files: 1, bytes: 3 };
        assert_eq!(folder.remove(&named).unwrap(), expected);
        assert_eq!(folder.get(old).unwrap(), None);
        assert_eq!(folder.get(new).unwrap().as_deref(), Some(&b"new"[..]));
        assert!(strays.iter().all(|stray| stray.exists()));
        assert_eq!(folder.remove(&named).unwrap(), Removed::default());
    }
}
