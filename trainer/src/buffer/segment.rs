//! Memory that games lie in: a file that is mapped, or memory of the process.
//!
//! A mapped file has its full length from the beginning, is written from front to back while it is
//! mapped, and never written twice at one place.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::{MmapOptions, MmapRaw};

/// A stretch of memory, as long as anyone has games in it.
#[derive(Debug)]
pub struct Segment {
    memory: Memory,
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum Memory {
    Process(Vec<u8>),
    Mapped(MmapRaw),
}

impl Segment {
    /// Memory of the process.
    pub const fn of_process(bytes: Vec<u8>) -> Self {
        Self {
            memory: Memory::Process(bytes),
            path: None,
        }
    }

    /// Maps a file.
    ///
    /// # Errors
    ///
    /// The system's error; an empty file cannot be mapped.
    pub fn map(file: &File, path: &Path) -> io::Result<Self> {
        Ok(Self {
            memory: Memory::Mapped(MmapOptions::new().map_raw_read_only(file)?),
            path: Some(path.to_owned()),
        })
    }

    /// The mapped file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes of the segment, used and not.
    pub fn bytes(&self) -> usize {
        match &self.memory {
            Memory::Process(bytes) => bytes.len(),
            Memory::Mapped(map) => map.len(),
        }
    }

    /// The bytes at a place that has been written; none if it is not inside.
    pub fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match &self.memory {
            Memory::Process(bytes) => bytes.get(range),
            Memory::Mapped(map) => mapped(map, range),
        }
    }
}

/// The range lies inside the map, which lives as long as the answer. Whoever asks for it has found
/// it written: nothing in the program writes there again, and the folder's lock keeps other trainers
/// away.
#[expect(unsafe_code, reason = "a slice of mapped memory, bounds checked")]
fn mapped(map: &MmapRaw, range: Range<usize>) -> Option<&[u8]> {
    let inside = range.start <= range.end && range.end <= map.len();
    // SAFETY: see above; the pointer is that of a map of `len` readable bytes.
    inside.then(|| unsafe {
        std::slice::from_raw_parts(map.as_ptr().add(range.start), range.end - range.start)
    })
}
