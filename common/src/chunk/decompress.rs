//! Decompression of one zstd frame, in memory that the thread used for the chunk before.
//!
//! A decompressor is a quarter of a megabyte with its window. To ask the system for one twice for each chunk was 8 %
//! of the time of a coordinator under load.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::mem;

use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

/// Largest window that is accepted, as a power of two: what the encoder uses, with room.
const WINDOW_LOG_MAX: u32 = 23;

thread_local! {
    static IDLE: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Reads the content of the first frame of some bytes.
pub(super) struct Decompressor<'a> {
    /// There is one until it is dropped.
    context: Option<DCtx<'static>>,
    input: InBuffer<'a>,
    ended: bool,
}

fn failed(code: usize) -> io::Error {
    io::Error::other(get_error_name(code))
}

impl<'a> Decompressor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> io::Result<Self> {
        let idle = IDLE.take().or_else(DCtx::try_create);
        let mut context = idle.ok_or(ErrorKind::OutOfMemory)?;
        context
            .reset(ResetDirective::SessionAndParameters)
            .map_err(failed)?;
        let window = DParameter::WindowLogMax(WINDOW_LOG_MAX);
        context.set_parameter(window).map_err(failed)?;
        Ok(Self {
            context: Some(context),
            input: InBuffer::around(bytes),
            ended: false,
        })
    }

    /// How many bytes follow what has been read of the frame.
    pub(super) fn rest(&self) -> usize {
        self.input.src.len() - self.input.pos()
    }
}

impl Read for Decompressor<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(context) = self.context.as_mut() else {
            return Ok(0);
        };
        let mut output = OutBuffer::around(buffer);
        while !self.ended && output.pos() == 0 && output.capacity() > 0 {
            let wanted = context.decompress_stream(&mut output, &mut self.input);
            self.ended = wanted.map_err(failed)? == 0;
            if !self.ended && output.pos() == 0 && self.input.pos() == self.input.src.len() {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "incomplete frame"));
            }
        }
        Ok(output.pos())
    }
}

impl Drop for Decompressor<'_> {
    fn drop(&mut self) {
        IDLE.set(mem::take(&mut self.context));
    }
}
