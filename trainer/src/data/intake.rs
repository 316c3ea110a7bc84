//! From chunks to the two buffers: what is trained on, and a small share held out to measure on.

use rookery_common::ids::ContentHash;

use super::decode::DecodedChunk;
use crate::buffer::{ReplayBuffer, Window};

/// Positions that validation keeps at most.
const HELD_OUT_CAPACITY: u64 = 20_000;

/// Which chunks are held out: a share of them, chosen by their hashes, so that a chunk is always
/// on the same side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOut {
    share: f64,
}

impl HeldOut {
    /// Holds this share of the chunks out, 0 to 1.
    pub const fn share(share: f64) -> Self {
        Self { share }
    }

    /// Whether a chunk is held out.
    pub fn includes(self, hash: ContentHash) -> bool {
        let bytes = hash.as_bytes();
        let place = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        f64::from(place) < self.share * 2_f64.powi(32)
    }
}

/// The buffers.
#[derive(Debug)]
pub struct Intake {
    held_out: HeldOut,
    training: ReplayBuffer,
    validation: ReplayBuffer,
    /// Chunks that could not be decoded.
    skipped: u64,
}

impl Intake {
    /// Empty buffers; `capacity` positions are kept for training.
    pub const fn new(capacity: u64, held_out: HeldOut) -> Self {
        Self {
            held_out,
            training: ReplayBuffer::new(capacity),
            validation: ReplayBuffer::new(HELD_OUT_CAPACITY),
            skipped: 0,
        }
    }

    /// Decodes a chunk. One that cannot be decoded is skipped with a message: the others are still
    /// good.
    pub fn decode(&mut self, hash: ContentHash, bytes: &[u8]) -> Option<DecodedChunk> {
        let decoded = DecodedChunk::read(hash, bytes);
        decoded
            .inspect_err(|error| {
                self.skipped += 1;
                tracing::warn!("chunk {hash} cannot be used and is skipped: {error}");
            })
            .ok()
    }

    /// Adds a chunk's games.
    pub fn add(&mut self, chunk: DecodedChunk) {
        let held_out = self.held_out.includes(chunk.hash);
        let buffer = if held_out {
            &mut self.validation
        } else {
            &mut self.training
        };
        chunk.games.into_iter().for_each(|game| buffer.add(game));
    }

    /// Whether a chunk's positions are trained on.
    pub fn trains_on(&self, hash: ContentHash) -> bool {
        !self.held_out.includes(hash)
    }

    /// The buffer for training.
    pub const fn training(&self) -> &ReplayBuffer {
        &self.training
    }

    /// Changes how many positions are kept for training.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.training.set_capacity(capacity);
    }

    /// All positions held out.
    pub fn validation(&self) -> Window {
        self.validation.window(HELD_OUT_CAPACITY)
    }

    /// Chunks that could not be decoded.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_same_share_of_chunks_is_always_held_out() {
        let hashes: Vec<_> = (0..2000_u32)
            .map(|n| ContentHash::of(&n.to_le_bytes()))
            .collect();
        let held_out = HeldOut::share(0.1);
        let count = hashes
            .iter()
            .filter(|hash| held_out.includes(**hash))
            .count();
        assert!((150..250).contains(&count), "{count}");
        assert!(
            !hashes
                .iter()
                .any(|hash| HeldOut::share(0.0).includes(*hash))
        );
    }

    #[test]
    fn a_corrupt_chunk_is_skipped_and_the_next_is_used() {
        let (hash, good) = testing::chunk(1, 3);
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 0xff;
        let mut intake = Intake::new(1000, HeldOut::share(0.0));
        assert!(intake.decode(ContentHash::of(&bad), &bad).is_none());
        assert_eq!(intake.skipped(), 1);
        let decoded = intake.decode(hash, &good).unwrap();
        intake.add(decoded);
        assert!(intake.training().positions() > 0);
    }
}
