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
/// How files begin in which no games would be found, what they are, and what to do.
const OTHERS: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"BZh", "compressed by bzip2; unpack it first"),
    (b"\xfd7zXZ\0", "compressed by xz; unpack it first"),
    (b"\xff\xfe", "text in UTF-16; write it as UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16; write it as UTF-8 first"),
];
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
/// If it cannot be read, or is of a kind that is not.
pub fn open(path: &Path, read: &BytesRead) -> anyhow::Result<Box<dyn Read + Send>> {
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let counting = Counting {
        file,
        read: Arc::clone(read),
    };
    let mut reader = BufReader::with_capacity(BUFFER, counting);
    let begin = reader.fill_buf().with_context(cannot)?;
    if let Some((_, what)) = OTHERS.iter().find(|(magic, _)| begin.starts_with(magic)) {
        anyhow::bail!("{}: it is {what}", cannot());
    }
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
            let error = total_bytes(&files).unwrap_err().to_string();
            assert!(
                error.contains("other.pgn") && error.contains(what),
                "{error}"
            );
        }
        std::fs::write(&other, "\u{feff}1. d4 *\n").unwrap();
        assert_eq!(total_bytes(&files).unwrap(), 22);
    }
}
