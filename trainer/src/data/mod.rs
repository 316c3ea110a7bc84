//! Games on disk: what the coordinator's ledger says, the chunks that were fetched, and how both
//! become the replay buffer.
//!
//! [`ledger`] is the local copy of the ledger, [`excluded_chunks`] what of it may not be trained on, [`chunks`] the
//! folder of verified chunk files, [`decode`] reads one, [`chunk_ingest`] keeps its games and adds them to the buffer
//! for training or validation, [`ledger_sync`] fetches what is new. Everything here can be rebuilt from the coordinator;
//! nothing in it is ever edited.

pub mod chunk_ingest;
pub mod chunks;
pub mod decode;
pub mod excluded_chunks;
pub mod ledger;
pub mod ledger_sync;

pub use chunk_ingest::{ChunkGames, ChunkIngest, HeldOut};
pub use chunks::ChunkFolder;
pub use decode::DecodedChunk;
pub use excluded_chunks::ExcludedChunks;
pub use ledger::Ledger;
