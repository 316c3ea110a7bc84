//! Files of text as bytes: plain, gzip or zstd, recognised by their first bytes.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;

use crate::file_kind::FileKind;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Largest window of a zstd file, as a power of two: what `zstd --long=27` writes.
const WINDOW_LOG: u32 = 27;

/// Unpacks a text that may be compressed; its name counts for nothing but an error. Lines may end in line feeds, with
/// or without carriage returns before them, or in carriage returns alone, which become line feeds.
///
/// # Errors
///
/// If it cannot be read, or is of a kind in which there is no text: an archive, a web page. That is looked for in
/// what was unpacked too.
pub fn unpack<'a>(
    name: &Path,
    mut input: impl BufRead + Send + 'a,
) -> io::Result<Box<dyn BufRead + Send + 'a>> {
    let begin = input.fill_buf()?;
    let is_packed = begin.starts_with(&GZIP) || begin.starts_with(&ZSTD);
    let mut unpacked: Box<dyn BufRead + Send + 'a> = if begin.starts_with(&GZIP) {
        Box::new(BufReader::new(GzipMembers::new(input)))
    } else if begin.starts_with(&ZSTD) {
        let mut decoder = zstd::Decoder::with_buffer(input)?;
        decoder.window_log_max(WINDOW_LOG)?;
        Box::new(BufReader::new(decoder))
    } else {
        Box::new(input)
    };
    let looked_at = |begin: &[u8]| (FileKind::of(begin), has_carriage_returns_only(begin));
    let (kind, has_returns) = match unpacked.fill_buf().map(looked_at) {
        // A file that breaks off says so where it is read.
        Err(error) if is_packed && error.kind() == io::ErrorKind::UnexpectedEof => (None, false),
        looked_at => looked_at?,
    };
    match kind {
        Some(kind) if !kind.is_text() => Err(io::Error::other(format!("it is {kind}"))),
        None if !is_packed && said_to_be_packed(name) => Err(io::Error::other(
            "it is not compressed as its name says, and no text; download it again",
        )),
        _ if has_returns => Ok(Box::new(BufReader::new(CarriageReturns(unpacked)))),
        _ => Ok(unpacked),
    }
}

/// Whether lines end as old Macs and some spreadsheets end them.
fn has_carriage_returns_only(begin: &[u8]) -> bool {
    begin.contains(&b'\r') && !begin.contains(&b'\n')
}

/// A text with a line feed in place of each carriage return.
struct CarriageReturns<R>(R);

impl<R: Read> Read for CarriageReturns<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        for byte in buffer[..read].iter_mut().filter(|byte| **byte == b'\r') {
            *byte = b'\n';
        }
        Ok(read)
    }
}

/// What is packed by gzip, one member after the other. What follows the last one is passed over, as gzip does: zeros to
/// the end of a block, or garbage.
#[derive(Debug)]
pub struct GzipMembers<R>(Option<GzDecoder<R>>);

impl<R: BufRead> GzipMembers<R> {
    /// Reads what begins as gzip does.
    pub fn new(input: R) -> Self {
        Self(Some(GzDecoder::new(input)))
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // The rest may begin with the last byte of a buffer.
            let rest = member.get_mut().fill_buf()?;
            let follows = !rest.is_empty() && GZIP.starts_with(&rest[..rest.len().min(2)]);
            let ended = self.0.take().filter(|_| follows);
            self.0 = ended.map(|ended| GzDecoder::new(ended.into_inner()));
        }
        Ok(0)
    }
}

fn said_to_be_packed(name: &Path) -> bool {
    name.extension()
        .is_some_and(|ending| ["gz", "zst"].iter().any(|packed| ending == *packed))
}

/// Unpacks a text of at most `limit` bytes.
///
/// # Errors
///
/// As [`unpack`], and for a text that is longer.
pub(crate) fn unpack_within(name: &Path, input: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    unpack(name, input)?
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("it has more than {} MiB, unpacked", limit >> 20);
        return Err(io::Error::other(text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn compressed_texts_are_read_as_plain_ones() {
        let text = b"1. e4 e5 *\n".repeat(1000);
        let mut twice = zstd::encode_all(&text[..5000], 1).unwrap();
        twice.extend(zstd::encode_all(&text[5000..], 1).unwrap());
        let members = [gzip(&text[..5000]), gzip(&text[5000..])].concat();
        for packed in [text.clone(), gzip(&text), members, twice] {
            assert_eq!(
                unpack_within(Path::new("x"), &packed, 11_000).unwrap(),
                text
            );
        }
        assert!(unpack_within(Path::new("x"), b"", 0).unwrap().is_empty());
    }

    #[test]
    fn lines_may_end_in_carriage_returns_alone() {
        let text = b"1. e4 e5 *\n".repeat(5000);
        let ends_in = |end: &str| String::from_utf8_lossy(&text).replace('\n', end);
        let (old, windows) = (ends_in("\r"), ends_in("\r\n"));
        let read = |bytes: &[u8]| unpack_within(Path::new("x"), bytes, 1 << 20).unwrap();
        assert_eq!(read(old.as_bytes()), text);
        assert_eq!(read(&gzip(old.as_bytes())), text);
        assert_eq!(
            read(windows.as_bytes()),
            windows.as_bytes(),
            "only lone ones become others"
        );
    }

    #[test]
    fn what_follows_a_gzip_file_is_passed_over() {
        let text = b"1. e4 e5 *\n".repeat(1000);
        let members = [gzip(&text[..5000]), gzip(&text[5000..])].concat();
        let read = |after: &[u8], buffer: usize| {
            let file = [&members, after].concat();
            let mut unpacked = Vec::new();
            let input = BufReader::with_capacity(buffer, &file[..]);
            unpack(Path::new("x"), input)?.read_to_end(&mut unpacked)?;
            assert_eq!(unpacked, text);
            io::Result::Ok(())
        };
        for after in [&[0; 512][..], b"junk", b"\x1fjunk", b""] {
            read(after, 1 << 16).unwrap();
        }
        // Members may begin with the last byte of a buffer.
        for buffer in 2..60 {
            read(&[0; 512], buffer).unwrap();
        }
        read(&GZIP, 1 << 16).unwrap_err();
    }

    #[test]
    fn bombs_are_refused_before_they_fill_the_memory() {
        let text = vec![b' '; 20 << 20];
        for packed in [gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            assert!(packed.len() < 200_000);
            let error = unpack_within(Path::new("x"), &packed, 1 << 20)
                .unwrap_err()
                .to_string();
            assert!(error.contains("more than 1 MiB"), "{error}");
        }
    }

    #[test]
    fn files_of_other_kinds_are_named_also_within_an_archive() {
        let zip = b"PK\x03\x04\x14\0";
        let packed = gzip(zip);
        let zstd = zstd::encode_all(&b"<html></html>"[..], 1).unwrap();
        for (bytes, what) in [
            (&zip[..], "a zip archive"),
            (b"BZh91AY&SY", "bzip2"),
            (b"\xff\xfe[\0E\0", "UTF-16"),
            (&packed, "a zip archive"),
            (&zstd, "a web page"),
        ] {
            let error = unpack(Path::new("x"), bytes).err().unwrap().to_string();
            assert!(error.contains(what), "{error}");
        }
        let junk = b"\x9b\x1c\xfe\x03junk";
        for (name, refused) in [("a.csv.zst", true), ("a.pgn.gz", true), ("a.csv", false)] {
            let error = unpack(Path::new(name), &junk[..]).err();
            assert_eq!(error.is_some(), refused, "{name}");
        }
        assert!(unpack(Path::new("plain.zst"), &b"1. e4 *\n"[..]).is_ok());
        assert!(unpack(Path::new("x"), &b"\xef\xbb\xbf1. d4 *\n"[..]).is_ok());
    }
}
