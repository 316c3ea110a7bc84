//! Chunks: files of finished games of one job.
//!
//! A chunk is one protobuf message (`proto/chunk.proto`) in one zstd frame, named by the SHA-256
//! of the compressed bytes. Planes are never stored: they follow from the moves.
//!
//! ```text
//! GameRecord --encode--> bytes --frame--> header, game, game, …   (streaming, under caps)
//!                                  |
//!                                  +--decode--> GameRecord        (every move replayed)
//!                                  +--verify--> GameSummary       (and compared with the lease)
//! ```
//!
//! [`record`] is a game in memory, [`mod@encode`] writes, [`decode`](mod@decode) reads and
//! replays, [`mod@verify`] compares with what was leased, [`error`] names what can be wrong,
//! [`played_on`] measures resigning, [`searches`] sums up what contributors are compared by,
//! [`export`] writes other formats.

mod columns;
pub mod decode;
mod decompress;
pub mod encode;
mod ending;
pub mod error;
pub mod export;
mod fingerprint;
mod frame;
pub mod played_on;
pub mod record;
mod replay;
pub mod searches;
pub mod verify;
pub mod wire;

pub use decode::{ChunkHeader, ChunkReader, read};
pub use encode::{EncodeError, encode};
pub use error::{ChunkError, ChunkErrorCode};
pub use played_on::PlayedOn;
pub use record::{Effort, GameKind, GameRecord, GameStart, PlyRecord, Side};
pub use searches::{SearchSums, ValueSums};
pub use verify::{GameSummary, Lease, VerifiedChunk, verify};

/// The version of the chunk format that this build writes.
pub const FORMAT_VERSION: u32 = 1;

/// Limits under which chunks are read; they bound the memory that a hostile chunk can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Compressed size of a chunk, in bytes.
    pub compressed_bytes: usize,
    /// Decompressed size of a chunk, in bytes; only one game of it is ever in memory.
    pub decompressed_bytes: usize,
    /// Decompressed size of one game, in bytes.
    pub game_bytes: usize,
    /// Games of a chunk.
    pub games: u32,
    /// Plies of a game, given and searched.
    pub plies: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            compressed_bytes: 16 << 20,
            decompressed_bytes: 256 << 20,
            game_bytes: 1 << 20,
            games: 4096,
            plies: 2048,
        }
    }
}

#[cfg(test)]
mod schema;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
