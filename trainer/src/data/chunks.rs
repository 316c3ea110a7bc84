//! The folder of chunk files that were fetched, each under its SHA-256.

use std::io;
use std::path::PathBuf;

use anyhow::Context as _;
use rookery_common::chunk::Caps;
use rookery_common::files::write_whole;
use rookery_common::ids::ContentHash;

/// A folder of chunks: `ab/abcdef….chunk`.
#[derive(Debug, Clone)]
pub struct ChunkFolder {
    folder: PathBuf,
}

impl ChunkFolder {
    /// The chunks in this folder, which need not exist yet.
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path(&self, hash: ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.folder.join(&name[..2]).join(format!("{name}.chunk"))
    }

    /// A chunk's bytes, if it is there and whole. A damaged file counts as missing.
    ///
    /// # Errors
    ///
    /// If the file is there but cannot be read.
    pub fn get(&self, hash: ContentHash) -> anyhow::Result<Option<Vec<u8>>> {
        let path = self.path(hash);
        let cannot = || format!("cannot read the chunk {}", path.display());
        let size = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(cannot),
        };
        if size <= Caps::default().compressed_bytes as u64 {
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
}
