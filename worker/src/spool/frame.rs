//! Frames of a journal: each entry with its length and a checksum, so that a file that ends
//! anywhere, after a crash or on a full disk, is read up to its last whole entry.
//!
//! ```text
//! "rookery journal 1\n"
//! | length: u32 LE | kind: u8 | payload | first 8 bytes of SHA-256 over length, kind, payload |  …
//! ```

use sha2::{Digest as _, Sha256};

/// What a journal begins with.
pub(super) const MAGIC: &[u8] = b"rookery journal 1\n";
/// Bytes of a frame besides its payload.
const OVERHEAD: usize = HEAD + CHECKSUM;
const HEAD: usize = 5;
const CHECKSUM: usize = 8;
/// Longest payload of an entry that is looked for behind a damaged one, so that no large part of a
/// file is summed up again and again. Games are a few kilobytes.
const LONGEST_SOUGHT: u32 = 1 << 20;

/// An entry as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) payload: &'a [u8],
}

fn checksum(head: &[u8], payload: &[u8]) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(head)
        .chain_update(payload)
        .finalize()
        .into();
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&digest[..CHECKSUM]);
    sum
}

/// The bytes of an entry; none if its payload is longer than a frame can say.
pub(super) fn write(kind: u8, payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok()?;
    let mut bytes = Vec::with_capacity(payload.len() + OVERHEAD);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.push(kind);
    let sum = checksum(&bytes, payload);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&sum);
    Some(bytes)
}

/// The entry at the beginning of `bytes` and what follows it; none if there is no whole one.
pub(super) fn read(bytes: &[u8]) -> Option<(Frame<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let length = u32::from_le_bytes(*head.first_chunk()?) as usize;
    let (payload, rest) = rest.split_at_checked(length)?;
    let (sum, rest) = rest.split_at_checked(CHECKSUM)?;
    let kind = head[HEAD - 1];
    (sum == checksum(head, payload)).then_some((Frame { kind, payload }, rest))
}

/// Where the next whole entry begins after a damaged one, whose length may be wrong too; none if
/// there is none.
pub(super) fn resume(bytes: &[u8]) -> Option<&[u8]> {
    let starts_entry = |rest: &[u8]| {
        let length = rest.first_chunk().copied().map(u32::from_le_bytes);
        length.is_some_and(|length| length <= LONGEST_SOUGHT) && read(rest).is_some()
    };
    (1..bytes.len())
        .map(|start| &bytes[start..])
        .find(|rest| starts_entry(rest))
}

/// Whether bytes that are no whole entry are what a write left that did not end, and with them the
/// file: a part of an entry, one whose content did not arrive, or zeros.
pub(super) fn is_torn(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk().copied().map(u32::from_le_bytes);
    let ends = |length: u32| bytes.len() <= (length as usize).saturating_add(OVERHEAD);
    let may_be = length.is_none_or(ends) || bytes.iter().all(|byte| *byte == 0);
    // Behind a write that did not end there is nothing: if there is, the length is damaged.
    may_be && resume(bytes).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back_and_no_part_of_one_is() {
        let mut bytes = write(3, b"payload").unwrap();
        let length = bytes.len();
        bytes.extend(write(4, b"").unwrap());
        let (frame, rest) = read(&bytes).unwrap();
        assert_eq!(
            frame,
            Frame {
                kind: 3,
                payload: b"payload"
            }
        );
        assert_eq!(
            read(rest).unwrap(),
            (
                Frame {
                    kind: 4,
                    payload: b""
                },
                &[][..]
            )
        );
        for end in 0..length {
            assert_eq!(read(&bytes[..end]), None, "{end}");
            assert!(is_torn(&bytes[..end]), "{end}");
        }
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let bytes = write(3, b"payload").unwrap();
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&changed), None, "{bit}");
        }
    }

    #[test]
    fn behind_any_damaged_bit_the_next_entry_is_found() {
        let mut bytes = write(3, b"payload").unwrap();
        let length = bytes.len();
        bytes.extend(write(4, b"next").unwrap());
        for bit in 0..8 * length {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(resume(&changed), Some(&bytes[length..]), "{bit}");
            assert!(!is_torn(&changed), "{bit}");
        }
        assert_eq!(resume(&bytes[length..]), None);
    }

    #[test]
    fn only_the_last_entry_can_be_torn() {
        let mut bytes = write(3, b"payload").unwrap();
        bytes[HEAD] ^= 1;
        assert!(is_torn(&bytes));
        bytes.push(0);
        assert!(!is_torn(&bytes));
        assert!(is_torn(&[0; 100]));
    }
}
