//! Chunks that the coordinator refused, the newest of them, kept for bug reports.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use rookery_common::ids::ContentHash;

use super::error::{SpoolError, at};
use super::journal::{remove_if_there, sync_folder_of, write_whole};

const FOLDER: &str = "refused";
/// How many are kept.
const MOST_CHUNKS: usize = 100;
/// How many bytes of them are kept.
const MOST_BYTES: u64 = 256 << 20;

/// Keeps a chunk with the reason beside it in the spool at `root`, and lets go of the oldest where
/// there are too many. Gives its file.
pub(super) fn keep(
    root: &Path,
    hash: ContentHash,
    bytes: &[u8],
    why: &str,
) -> Result<PathBuf, SpoolError> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(at("create", &folder))?;
    sync_folder_of(&folder)?;
    let chunk = folder.join(format!("{hash}.chunk"));
    write_whole(&chunk.with_extension("txt"), format!("{why}\n").as_bytes())?;
    write_whole(&chunk, bytes)?;
    trim(&folder, MOST_CHUNKS, MOST_BYTES)?;
    Ok(chunk)
}

/// Keeps the newest chunks of a folder, at least one.
fn trim(folder: &Path, most_chunks: usize, most_bytes: u64) -> Result<(), SpoolError> {
    let read = || -> std::io::Result<Vec<_>> {
        let files: Vec<DirEntry> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        let paths = files.iter().map(DirEntry::path);
        let chunks = paths.filter(|path| path.extension().is_some_and(|end| end == "chunk"));
        let dated = chunks.map(|path| {
            let about = path.metadata()?;
            Ok((about.modified()?, about.len(), path))
        });
        dated.collect()
    };
    let mut chunks = read().map_err(at("read", folder))?;
    chunks.sort_by(|one, other| other.cmp(one));
    let mut bytes = 0;
    for (place, (_, length, path)) in chunks.iter().enumerate() {
        bytes += length;
        if place > 0 && (place >= most_chunks || bytes > most_bytes) {
            for file in [path.clone(), path.with_extension("txt")] {
                remove_if_there(&file)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Five chunks of ten bytes each, the first one the oldest.
    fn five() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..5 {
            let chunk = folder.path().join(format!("{number}.chunk"));
            std::fs::write(&chunk, [0; 10]).unwrap();
            std::fs::write(chunk.with_extension("txt"), "why").unwrap();
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + number);
            let file = std::fs::File::options().write(true).open(&chunk).unwrap();
            file.set_modified(then).unwrap();
        }
        folder
    }

    fn left(most_chunks: usize, most_bytes: u64) -> Vec<String> {
        let folder = five();
        trim(folder.path(), most_chunks, most_bytes).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_newest_are_kept_with_their_reasons() {
        assert_eq!(left(5, 50).len(), 10);
        let two = ["3.chunk", "3.txt", "4.chunk", "4.txt"];
        assert_eq!(left(2, 1000), two);
        assert_eq!(left(100, 29), two);
        assert_eq!(left(100, 1), two[2..]);
    }
}
