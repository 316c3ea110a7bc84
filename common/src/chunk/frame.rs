//! From compressed bytes to messages, one at a time, under caps.

use std::io::{self, BufReader, Read};

use super::Caps;
use super::decompress::Decompressor;
use super::error::{ChunkError, ChunkErrorCode};

/// A top-level field of the `Chunk` message.
pub(super) enum Field<'a> {
    /// Field 1.
    Header(&'a [u8]),
    /// Field 2.
    Game(&'a [u8]),
}

/// Reads a chunk's top-level fields from its zstd frame.
pub(super) struct Frame<'a> {
    input: BufReader<io::Take<Decompressor<'a>>>,
    caps: Caps,
    message: Vec<u8>,
}

fn too_large(what: &str, bytes: usize, cap: usize) -> ChunkError {
    ChunkError::new(
        ChunkErrorCode::TooLarge,
        format!("{what} is {bytes} bytes, allowed are {cap}"),
    )
}

fn bad_compression(detail: impl Into<String>) -> ChunkError {
    ChunkError::new(ChunkErrorCode::BadCompression, detail)
}

fn bad_schema(detail: impl Into<String>) -> ChunkError {
    ChunkError::new(ChunkErrorCode::BadSchema, detail)
}

impl<'a> Frame<'a> {
    pub(super) fn open(bytes: &'a [u8], caps: &Caps) -> Result<Self, ChunkError> {
        if bytes.len() > caps.compressed_bytes {
            return Err(too_large("the chunk", bytes.len(), caps.compressed_bytes));
        }
        let decompressor =
            Decompressor::new(bytes).map_err(|error| bad_compression(error.to_string()))?;
        let limited = decompressor.take(caps.decompressed_bytes as u64 + 1);
        Ok(Self {
            input: BufReader::new(limited),
            caps: *caps,
            message: Vec::new(),
        })
    }

    /// Decompressed bytes read so far.
    pub(super) fn bytes_read(&self) -> usize {
        self.caps.decompressed_bytes + 1 - self.input.get_ref().limit() as usize
    }

    /// The next field, or none at the end of a whole frame.
    pub(super) fn next_field(&mut self) -> Result<Option<Field<'_>>, ChunkError> {
        let Some(tag) = self.varint_or_end()? else {
            return self.finish().map(|()| None);
        };
        let number = tag >> 3;
        if tag & 7 != 2 || !(1..=2).contains(&number) {
            return Err(bad_schema(format!("unexpected tag {tag} between messages")));
        }
        let length = self
            .varint_or_end()?
            .ok_or_else(|| bad_schema("the content ends in the middle of a message"))?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.caps.game_bytes {
            return Err(too_large("a game", length, self.caps.game_bytes));
        }
        self.read_message(length)?;
        Ok(Some(if number == 1 {
            Field::Header(&self.message)
        } else {
            Field::Game(&self.message)
        }))
    }

    /// Reads without trusting `length`: memory grows with what really arrives.
    fn read_message(&mut self, length: usize) -> Result<(), ChunkError> {
        self.message.clear();
        let mut part = (&mut self.input).take(length as u64);
        part.read_to_end(&mut self.message)
            .map_err(|error| bad_compression(error.to_string()))?;
        self.check_size()?;
        if self.message.len() < length {
            return Err(bad_schema("the content ends in the middle of a message"));
        }
        Ok(())
    }

    fn varint_or_end(&mut self) -> Result<Option<u64>, ChunkError> {
        let mut n = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.byte()? else {
                let middle = || bad_schema("the content ends in the middle of a number");
                return if shift == 0 { Ok(None) } else { Err(middle()) };
            };
            n |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(Some(n));
            }
        }
        Err(bad_schema("a number is longer than 64 bits"))
    }

    fn byte(&mut self) -> Result<Option<u8>, ChunkError> {
        let mut byte = [0];
        match self
            .input
            .read(&mut byte)
            .map_err(|error| bad_compression(error.to_string()))?
        {
            0 => self.check_size().map(|()| None),
            _ => Ok(Some(byte[0])),
        }
    }

    /// The reader stops one byte past the cap, so running dry there means too large.
    fn check_size(&self) -> Result<(), ChunkError> {
        let cap = self.caps.decompressed_bytes;
        if self.input.get_ref().limit() == 0 && self.input.buffer().is_empty() {
            return Err(too_large("the decompressed chunk", cap + 1, cap));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChunkError> {
        let rest = self.input.get_ref().get_ref().rest();
        if rest > 0 {
            return Err(bad_compression(format!(
                "{rest} bytes follow the zstd frame"
            )));
        }
        Ok(())
    }
}
