//! Compression: gzip around the protobuf, within bounds.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rookery_common::unpack::GzipMembers;

use super::error::{Lc0Error, Lc0Result};

/// Largest file, compressed or not: what the largest network takes in 32-bit numbers.
pub(super) const MAX_BYTES: u64 = 1 << 30;

/// The first two bytes of a gzip file, and of each of its members.
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks a file. As in Lc0, one that is not compressed passes as it is.
pub(super) fn decompress(bytes: &[u8]) -> Lc0Result<Bytes> {
    decompress_within(bytes, MAX_BYTES)
}

fn decompress_within(bytes: &[u8], limit: u64) -> Lc0Result<Bytes> {
    let mut unpacked = Vec::new();
    if bytes.starts_with(&GZIP) {
        let mut members = GzipMembers::new(bytes).take(limit + 1);
        let read = members.read_to_end(&mut unpacked);
        read.map_err(|error| Lc0Error::Gzip(error.to_string()))?;
    } else {
        unpacked.extend_from_slice(bytes);
    }
    if unpacked.len() as u64 > limit {
        return Err(Lc0Error::TooLarge(limit));
    }
    Ok(unpacked.into())
}

/// Packs a protobuf; the same bytes always give the same file.
pub(crate) fn compress(bytes: &[u8]) -> Lc0Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|error| Lc0Error::Gzip(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unpacks_and_a_bomb_does_not() {
        let zeros = vec![0; 100_000];
        let packed = compress(&zeros).unwrap();
        assert!(packed.len() < 1000);
        assert_eq!(decompress_within(&packed, 100_000).unwrap(), zeros);
        let refused = Err(Lc0Error::TooLarge(99_999));
        assert_eq!(decompress_within(&packed, 99_999), refused);
        assert_eq!(decompress_within(&zeros, 99_999), refused);
        let broken = decompress_within(&packed[..packed.len() - 1], 100_000);
        assert!(matches!(broken, Err(Lc0Error::Gzip(_))), "{broken:?}");
    }

    #[test]
    fn members_are_joined_and_what_follows_them_is_passed_over() {
        let twice = [compress(b"one, ").unwrap(), compress(b"two").unwrap()].concat();
        for after in [&b""[..], b"\0\0\0\0", b"more"] {
            let file = [&twice[..], after].concat();
            assert_eq!(decompress_within(&file, 8).unwrap(), "one, two");
            assert_eq!(decompress_within(&file, 7), Err(Lc0Error::TooLarge(7)));
            assert_eq!(decompress_within(&file, 4), Err(Lc0Error::TooLarge(4)));
        }
        let broken = decompress_within(&[&twice[..], &GZIP].concat(), 8);
        assert!(matches!(broken, Err(Lc0Error::Gzip(_))), "{broken:?}");
    }
}
