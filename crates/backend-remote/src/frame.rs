//! Frames on a socket: a length, a kind, a payload. The length is checked before memory is taken for it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rookery_common::text::{is_plain, printable};

use crate::error::ConnectionError;
use crate::stream::ReadHalf;

/// Most bytes of a frame before both sides know each other.
pub(crate) const MAX_GREETING: usize = 256;
/// Most bytes of a client's frame.
pub(crate) const MAX_REQUEST: usize = 2 << 20;
/// Most bytes of a server's frame: a logit has twice the bytes of its move.
pub(crate) const MAX_REPLY: usize = 5 << 20;
/// Most bytes of a text.
pub(crate) const MAX_TEXT: usize = 1000;

/// How a client begins that speaks TLS, in all its versions. As a length it is larger than any that is allowed then.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];

/// A frame of this kind, whose payload `write` appends.
pub(crate) fn frame(kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, kind];
    write(&mut bytes);
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Reads frames from a socket.
#[derive(Debug)]
pub(crate) struct FrameReader {
    stream: ReadHalf,
    body: Vec<u8>,
    /// How long a frame may take from its first byte to its last.
    frame_time: Duration,
}

impl FrameReader {
    pub(crate) const fn new(stream: ReadHalf, frame_time: Duration) -> Self {
        Self {
            stream,
            body: Vec::new(),
            frame_time,
        }
    }

    /// The next frame's kind and payload. Waits for its beginning for `idle`, or for ever.
    pub(crate) fn next(
        &mut self,
        idle: Option<Duration>,
        most: usize,
    ) -> Result<(u8, &[u8]), ConnectionError> {
        let mut head = [0; 4];
        let deadline = idle.map(|idle| Instant::now() + idle);
        let first = match self.stream.read(&mut head, deadline) {
            Ok(0) => return Err(ConnectionError::Closed),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                return Err(ConnectionError::Silent(idle.unwrap_or_default()));
            }
            read => read?,
        };
        let deadline = Instant::now() + self.frame_time;
        self.fill(&mut head[first..], deadline)?;
        let length = u32::from_le_bytes(head) as usize;
        if !(1..=most).contains(&length) {
            let what = if head.starts_with(&TLS_HANDSHAKE) {
                "it speaks TLS, and this side does not".to_owned()
            } else {
                format!("a frame of {length} bytes, allowed is 1 to {most}")
            };
            return Err(ConnectionError::protocol(what));
        }
        let mut body = std::mem::take(&mut self.body);
        body.resize(length, 0);
        self.fill(&mut body, deadline)?;
        self.body = body;
        let (kind, payload) = (self.body[0], &self.body[1..]);
        Ok((kind, payload))
    }

    fn fill(&mut self, mut rest: &mut [u8], deadline: Instant) -> Result<(), ConnectionError> {
        while !rest.is_empty() {
            match self.stream.read(rest, Some(deadline)) {
                Ok(0) => {
                    return Err(ConnectionError::protocol(
                        "it ended in the middle of a frame",
                    ));
                }
                Ok(count) => rest = &mut rest[count..],
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(ConnectionError::Stalled(self.frame_time));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The fields of a payload, from first to last.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ConnectionError> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, ConnectionError> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(ConnectionError::protocol(format!("{other} is no flag"))),
        }
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ConnectionError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ConnectionError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ConnectionError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ConnectionError> {
        let (first, rest) = self.0.split_at_checked(count).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(first)
    }

    /// A text, which terminals and logs may show as it is.
    pub(crate) fn text(&mut self) -> Result<String, ConnectionError> {
        let length = usize::from(self.u16()?);
        if length > MAX_TEXT {
            return Err(ConnectionError::protocol(format!(
                "a text of {length} bytes"
            )));
        }
        let text = std::str::from_utf8(self.bytes(length)?);
        let text = text.map_err(|_| ConnectionError::protocol("a text that is not UTF-8"))?;
        if !is_plain(text, MAX_TEXT) {
            let why = "a text with characters that move what stands around it";
            return Err(ConnectionError::protocol(why));
        }
        Ok(text.to_owned())
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(&self) -> Result<(), ConnectionError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(ConnectionError::protocol(format!("{left} bytes too many"))),
        }
    }
}

/// Appends a text, cut off where it is too long, without characters that the other side does not take.
pub(crate) fn write_text(text: &str, bytes: &mut Vec<u8>) {
    let text = printable(text, MAX_TEXT);
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn too_short() -> ConnectionError {
    ConnectionError::protocol("a frame that is too short")
}
