//! PGN files as bytes, plain or compressed, and how many of them have been read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use rookery_common::unpack::unpack;

const BUFFER: usize = 1 << 17;

/// Bytes of files that have been read, compressed as they are.
pub type BytesRead = Arc<AtomicU64>;

struct Counting {
    file: File,
    read: BytesRead,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Opens a file.
///
/// # Errors
///
/// If it cannot be read, or is of a kind that is not.
pub fn open(path: &Path, read: &BytesRead) -> anyhow::Result<Box<dyn BufRead + Send>> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let counting = Counting {
        file,
        read: Arc::clone(read),
    };
    let reader = BufReader::with_capacity(BUFFER, counting);
    unpack(path, reader).with_context(cannot)
}

/// Bytes of all files, as they are on disk.
///
/// # Errors
///
/// If one is not there, or [cannot be opened](open): that is better known before the others are read.
pub fn total_bytes(files: &[PathBuf]) -> anyhow::Result<u64> {
    let size = |path: &PathBuf| -> anyhow::Result<u64> {
        let metadata = std::fs::metadata(path);
        let metadata = metadata.with_context(|| format!("cannot read {}", path.display()))?;
        // A pipe would lose what is read of it here.
        if metadata.is_file() {
            drop(open(path, &BytesRead::default())?);
        }
        Ok(metadata.len())
    };
    files.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_they_are_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let text = b"1. e4 e5 *\n".repeat(1000);
        let packed = zstd::encode_all(&text[..], 1).unwrap();
        for (index, bytes) in [text.clone(), packed].iter().enumerate() {
            let path = dir.path().join(index.to_string());
            std::fs::write(&path, bytes).unwrap();
            let count = BytesRead::default();
            let mut got = Vec::new();
            open(&path, &count).unwrap().read_to_end(&mut got).unwrap();
            assert_eq!(got, text);
            assert_eq!(count.load(Ordering::Relaxed), bytes.len() as u64);
        }
        let missing = open(&dir.path().join("missing"), &BytesRead::default());
        let error = missing.err().unwrap();
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn files_of_other_kinds_are_refused_before_the_rest_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (good, other) = (dir.path().join("good.pgn"), dir.path().join("other.pgn"));
        std::fs::write(&good, "1. e4 e5 *\n").unwrap();
        let files = [good, other.clone()];
        for (begin, what) in [
            (b"PK\x03\x04\x14\0".as_slice(), "a zip archive"),
            (b"BZh91AY&SY".as_slice(), "bzip2"),
            (b"\xff\xfe[\0E\0".as_slice(), "UTF-16"),
        ] {
            std::fs::write(&other, begin).unwrap();
            let error = format!("{:#}", total_bytes(&files).unwrap_err());
            assert!(
                error.contains("other.pgn") && error.contains(what),
                "{error}"
            );
        }
        std::fs::write(&other, "\u{feff}1. d4 *\n").unwrap();
        assert_eq!(total_bytes(&files).unwrap(), 22);
    }
}
