//! Numbers in memory where vector instructions like them.

use std::ops::{Deref, DerefMut};

/// The bytes of a cache line and of a register of AVX-512.
const ALIGNMENT: usize = 64;
const ROOM: usize = ALIGNMENT / size_of::<f32>();

/// A slice of numbers that begins at a cache line. It grows and never shrinks.
#[derive(Debug, Default)]
pub(crate) struct AlignedVec {
    numbers: Vec<f32>,
    start: usize,
    length: usize,
}

impl AlignedVec {
    /// Zeros.
    pub(crate) fn zeros(length: usize) -> Self {
        let mut aligned = Self::default();
        aligned.resize(length);
        aligned
    }

    /// Makes it this long; what it holds afterwards is unspecified.
    pub(crate) fn resize(&mut self, length: usize) {
        if self.numbers.len() < length + ROOM {
            self.numbers = vec![0.0; length + ROOM];
            // A platform that cannot say gives `usize::MAX`; then the numbers lie as they do.
            let start = self.numbers.as_ptr().align_offset(ALIGNMENT);
            self.start = if start < ROOM { start } else { 0 };
        }
        self.length = length;
    }
}

impl Deref for AlignedVec {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.numbers[self.start..][..self.length]
    }
}

impl DerefMut for AlignedVec {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers[self.start..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_at_a_cache_line_however_often_they_grow() {
        let mut aligned = AlignedVec::zeros(3);
        assert_eq!(*aligned, [0.0; 3]);
        for length in [1, 17, 5, 4096, 0] {
            aligned.resize(length);
            assert_eq!(aligned.len(), length);
            assert_eq!(aligned.as_ptr().addr() % ALIGNMENT, 0);
        }
    }
}
