//! Chunk files that a command line names, or that lie in the folders that it names.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rookery_common::text::quantity;

/// The chunk files among these paths and in these folders (and theirs), in order of their names. Logs a warning if a
/// folder has other files, which are left out.
///
/// # Errors
///
/// If a folder cannot be read.
pub fn chunk_files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Found::default();
    for path in paths {
        if path.is_dir() {
            found.add_folder(path)?;
        } else {
            found.chunks.push(path.clone());
        }
    }
    if let Some(warning) = found.warning() {
        tracing::warn!("{warning}");
    }
    Ok(found.chunks)
}

#[derive(Debug, Default)]
struct Found {
    chunks: Vec<PathBuf>,
    /// Files in folders that have another ending.
    others: usize,
    /// One of them.
    example: Option<PathBuf>,
}

impl Found {
    fn add_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let cannot = || format!("cannot read the folder {}", folder.display());
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(cannot)? {
            entries.push(entry.with_context(cannot)?.path());
        }
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                self.add_folder(&entry)?;
            } else if entry.extension().is_some_and(|ending| ending == "chunk") {
                self.chunks.push(entry);
            } else {
                self.others += 1;
                self.example.get_or_insert(entry);
            }
        }
        Ok(())
    }

    /// What to tell the user of the files that are left out.
    fn warning(&self) -> Option<String> {
        let example = self.example.as_ref()?;
        Some(format!(
            "of the folders only files whose names end in .chunk are read; left out: {}, for example {}",
            quantity(self.others, "file"),
            example.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_folders_are_found_in_order_and_other_files_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let file = |name: &str| folder.path().join(name);
        for name in [
            "b.chunk",
            "a.chunk",
            "inner/c.chunk",
            "d.chunk.zst",
            "inner/notes",
        ] {
            std::fs::write(file(name), b"").unwrap();
        }
        let mut found = Found::default();
        found.add_folder(folder.path()).unwrap();
        assert_eq!(
            found.chunks,
            ["a.chunk", "b.chunk", "inner/c.chunk"].map(file)
        );
        let warning = found.warning().unwrap();
        assert!(
            warning.contains("left out: 2 files, for example"),
            "{warning}"
        );
        assert!(warning.ends_with("d.chunk.zst"), "{warning}");
        // A file that is named itself is read whatever its name.
        let named = [file("inner"), file("d.chunk.zst")];
        let expected = ["inner/c.chunk", "d.chunk.zst"].map(file);
        assert_eq!(chunk_files(&named).unwrap(), expected);
        assert_eq!(Found::default().warning(), None);
        assert!(Found::default().add_folder(&file("none")).is_err());
    }
}
