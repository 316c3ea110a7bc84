//! PGN files as bytes: plain, gzip or zstd, told apart by how they begin.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BUFFER: usize = 1 << 17;
/// Largest window of a zstd file, as a power of two: what `zstd --long=27` writes.
const WINDOW_LOG: u32 = 27;

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
/// If it cannot be read.
pub fn open(path: &Path, read: &BytesRead) -> anyhow::Result<Box<dyn Read + Send>> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let counting = Counting {
        file,
        read: Arc::clone(read),
    };
    let mut reader = BufReader::with_capacity(BUFFER, counting);
    let begin = reader.fill_buf().with_context(cannot)?;
    Ok(if begin.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(reader))
    } else if begin.starts_with(&ZSTD) {
        let mut decoder = zstd::Decoder::with_buffer(reader).with_context(cannot)?;
        decoder.window_log_max(WINDOW_LOG).with_context(cannot)?;
        Box::new(decoder)
    } else {
        Box::new(reader)
    })
}

/// Bytes of all files, as they are on disk.
///
/// # Errors
///
/// If one is not there.
pub fn total_bytes(files: &[PathBuf]) -> anyhow::Result<u64> {
    let size = |path: &PathBuf| {
        let metadata = std::fs::metadata(path);
        metadata
            .map(|metadata| metadata.len())
            .with_context(|| format!("cannot read {}", path.display()))
    };
    files.iter().map(size).sum()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn compressed_files_are_read_as_plain_ones() {
        let dir = tempfile::tempdir().unwrap();
        let text = b"1. e4 e5 *\n".repeat(1000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let mut twice = zstd::encode_all(&text[..5000], 1).unwrap();
        twice.extend(zstd::encode_all(&text[5000..], 1).unwrap());
        let files = [text.clone(), gzip.finish().unwrap(), twice, Vec::new()];
        for (index, bytes) in files.iter().enumerate() {
            let path = dir.path().join(index.to_string());
            std::fs::write(&path, bytes).unwrap();
            let count = BytesRead::default();
            let mut got = Vec::new();
            open(&path, &count).unwrap().read_to_end(&mut got).unwrap();
            assert_eq!(got, if index < 3 { text.clone() } else { Vec::new() });
            assert_eq!(count.load(Ordering::Relaxed), bytes.len() as u64);
        }
        let error = open(&dir.path().join("missing"), &BytesRead::default())
            .err()
            .unwrap();
        assert!(error.to_string().contains("missing"), "{error}");
    }
}
