//! Event files for TensorBoard.
//!
//! An event file is a sequence of TFRecords, each an `Event` message of TensorFlow's
//! `event.proto`:
//!
//! ```text
//! length u64 | masked CRC-32C of the length u32 | message | masked CRC-32C of the message u32
//! ```
//!
//! Only scalars are written, so the few fields that they need are put together here.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use rookery_common::protocol::runs::MetricPoint;

use super::MetricKind;

/// A file that TensorBoard follows while it grows.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a new file in a folder, which is created if it is missing. TensorBoard reads all the
    /// event files of a folder as one.
    ///
    /// # Errors
    ///
    /// If it cannot be created.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot create event files in {}", folder.display());
        std::fs::create_dir_all(folder).with_context(cannot)?;
        let (now, process) = (now(), std::process::id());
        let name = format!("events.out.tfevents.{:010}.rookery.{process}", now as u64);
        let path = folder.join(name);
        let file = File::options().create(true).append(true).open(&path);
        let mut events = Self {
            file: file.with_context(cannot)?,
            path,
        };
        let mut first = Message::default();
        first.double(1, now);
        first.bytes(3, b"brain.Event:2");
        events.append(&first)?;
        Ok(events)
    }

    /// Adds a point's values, each under the name `kind/value`.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn write(&mut self, kind: MetricKind, point: &MetricPoint) -> anyhow::Result<()> {
        let mut summary = Message::default();
        for (name, number) in &point.values {
            let mut value = Message::default();
            value.bytes(1, format!("{}/{name}", kind.name()).as_bytes());
            value.float(2, *number as f32);
            summary.bytes(1, &value.0);
        }
        let mut event = Message::default();
        event.double(1, now());
        event.integer(2, point.step);
        event.bytes(5, &summary.0);
        self.append(&event)
    }

    fn append(&mut self, event: &Message) -> anyhow::Result<()> {
        let length = (event.0.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(event.0.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked(&length).to_le_bytes());
        record.extend_from_slice(&event.0);
        record.extend_from_slice(&masked(&event.0).to_le_bytes());
        let written = self.file.write_all(&record);
        written.with_context(|| format!("cannot write to {}", self.path.display()))
    }
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// A message of protocol buffers, field after field.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u8, wire_type: u8) {
        self.0.push(field << 3 | wire_type);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn integer(&mut self, field: u8, number: u64) {
        self.key(field, 0);
        self.varint(number);
    }

    fn double(&mut self, field: u8, number: f64) {
        self.key(field, 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, field: u8, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn float(&mut self, field: u8, number: f32) {
        self.key(field, 5);
        self.0.extend_from_slice(&number.to_le_bytes());
    }
}

/// TFRecord's masked CRC.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit: a few kilobytes a minute need no table.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let low = crc & 1;
            crc >>= 1;
            if low == 1 {
                crc ^= 0x82f6_3b78;
            }
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::super::values;
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn records_follow_each_other_and_hold_names_and_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = EventFile::create(&dir.path().join("tb")).unwrap();
        let values = values([("loss", 0.5), ("speed", 300.0)]);
        events
            .write(MetricKind::Train, &MetricPoint { step: 300, values })
            .unwrap();
        let mut bytes = std::fs::read(&events.path).unwrap();
        let mut messages = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            let sum = |range: std::ops::Range<usize>| masked(&bytes[range]).to_le_bytes();
            assert_eq!(bytes[8..12], sum(0..8));
            assert_eq!(bytes[12 + length..16 + length], sum(12..12 + length));
            messages.push(bytes[12..12 + length].to_vec());
            bytes.drain(..16 + length);
        }
        assert_eq!(messages.len(), 2);
        let has = |part: &[u8]| messages[1].windows(part.len()).any(|window| window == part);
        assert!(messages[0].ends_with(b"brain.Event:2"));
        assert!(has(&[0x10, 0xac, 0x02]), "step 300 as a varint");
        assert!(
            has(b"\x0a\x0atrain/loss\x15\0\0\0\x3f"),
            "0.5 under its name"
        );
        assert!(has(b"train/speed"));
    }
}
