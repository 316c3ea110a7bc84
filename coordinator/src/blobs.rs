//! Networks and chunks as files, behind a trait.
//!
//! A blob is named by its kind and the SHA-256 of its bytes (`chunks/ab/ab…`), written once and
//! never changed. The same names serve as keys of an object store.

mod folder;

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use rookery_common::ids::ContentHash;

pub use folder::FolderStore;

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    /// A network's file.
    Network,
    /// A chunk.
    Chunk,
    /// A network in the format of another program.
    Export,
}

impl BlobKind {
    /// The first part of its name.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Network => "networks",
            Self::Chunk => "chunks",
            Self::Export => "exports",
        }
    }
}

/// A blob's name, for example `chunks/ab/abcd…`.
pub fn key(kind: BlobKind, hash: &ContentHash) -> String {
    let name = hash.to_string();
    format!("{}/{}/{name}", kind.folder(), &name[..2])
}

/// How the store of blobs fails.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no such blob.
    #[error("there is no {0} in the store")]
    Missing(String),
    /// The store failed.
    #[error("{tried}: {source}")]
    Io {
        /// What was tried, on what.
        tried: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A blob's bytes as they are read.
pub type ByteStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// Where blobs are kept.
#[async_trait]
pub trait BlobStore: Send + Sync + 'static {
    /// Keeps a blob. When this returns, it survives a power cut. Bytes that are there already are
    /// kept as they are.
    async fn put(&self, kind: BlobKind, hash: &ContentHash, bytes: Bytes) -> Result<(), BlobError>;
    /// A whole blob.
    async fn get(&self, kind: BlobKind, hash: &ContentHash) -> Result<Bytes, BlobError>;
    /// A blob's size in bytes.
    async fn size(&self, kind: BlobKind, hash: &ContentHash) -> Result<u64, BlobError>;
    /// A part of a blob; the range must lie within its size.
    async fn read(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<ByteStream, BlobError>;
    /// Whether the store can be written to.
    async fn ping(&self) -> Result<(), BlobError>;

    /// A whole chunk.
    async fn read_chunk(&self, hash: &ContentHash) -> Result<Bytes, BlobError> {
        self.get(BlobKind::Chunk, hash).await
    }
}

/// A store of blobs that can be shared.
pub type SharedBlobs = Arc<dyn BlobStore>;
