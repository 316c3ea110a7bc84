//! Networks and chunks as files, behind a trait.
//!
//! A blob is named by its kind and the SHA-256 of its bytes (`chunks/ab/ab…`), written once and
//! never changed. The same names serve as keys of an object store. Clients may get blobs from the
//! store itself, or from a web server in front of it ([`Downloads`]).
//!
//! Beside the blobs lies one mark ([`MARK`]), which says whose the store is.

mod folder;
mod object;

use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use jiff::Timestamp;
use rookery_common::ids::ContentHash;
use rookery_common::text::without_secrets;

pub use folder::FolderStore;
pub use object::ObjectBlobs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobKind {
    Network,
    Chunk,
    /// A network in the format of another program.
    Export,
    /// Old chunks packed together.
    Archive,
}

impl BlobKind {
    pub const ALL: [Self; 4] = [Self::Network, Self::Chunk, Self::Export, Self::Archive];

    /// The first part of its name.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Network => "networks",
            Self::Chunk => "chunks",
            Self::Export => "exports",
            Self::Archive => "archives",
        }
    }
}

/// The name of the mark, which says whose the store is. No blob has a name of one part.
pub const MARK: &str = "ledger";

/// Whether a mark may take the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Only where there is none; one that is there stays, and that is no error.
    First,
    /// Whatever is there.
    Over,
}

/// A blob's name, for example `chunks/ab/abcd…`.
pub fn key(kind: BlobKind, hash: &ContentHash) -> String {
    let name = hash.to_string();
    format!("{}/{}/{name}", kind.folder(), &name[..2])
}

/// How clients get files.
#[derive(Debug, Clone, Default)]
pub struct Downloads {
    /// Where anyone can get networks by their keys: a CDN or a web server in front of the store.
    pub public: Option<String>,
    /// Whether clients are sent to the store itself, by addresses that it signs.
    pub direct: bool,
}

impl Downloads {
    /// The public address of a blob. Chunks have none: a run's data may not be public.
    pub fn public_address(&self, kind: BlobKind, hash: &ContentHash) -> Option<String> {
        let base = self.public.as_deref()?.trim_end_matches('/');
        match kind {
            BlobKind::Network | BlobKind::Export => Some(format!("{base}/{}", key(kind, hash))),
            BlobKind::Chunk | BlobKind::Archive => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store's address or settings cannot be used.
    #[error("{0}")]
    Address(String),
    #[error("there is no {0} in the store")]
    Missing(String),
    #[error("{tried}: {source}")]
    Io {
        /// What was tried, on what.
        tried: String,
        source: std::io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobEntry {
    pub hash: ContentHash,
    pub bytes: u64,
    pub modified: Timestamp,
}

/// A blob's bytes as they are read.
pub type ByteStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

#[async_trait]
pub trait BlobStore: Send + Sync + 'static {
    /// Keeps a blob. When this returns, it survives a power cut. Bytes that are there already stay
    /// and count as written now.
    async fn put(&self, kind: BlobKind, hash: &ContentHash, bytes: Bytes) -> Result<(), BlobError>;
    /// A whole blob.
    async fn get(&self, kind: BlobKind, hash: &ContentHash) -> Result<Bytes, BlobError>;
    /// What the store knows of a blob.
    async fn entry(&self, kind: BlobKind, hash: &ContentHash) -> Result<BlobEntry, BlobError>;
    /// All blobs of a kind, in no order.
    async fn list(&self, kind: BlobKind) -> Result<Vec<BlobEntry>, BlobError>;
    /// Removes a blob; one that is not there is no error.
    async fn remove(&self, kind: BlobKind, hash: &ContentHash) -> Result<(), BlobError>;
    /// A part of a blob; the range must lie within its size.
    async fn read(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
        range: Range<u64>,
    ) -> Result<ByteStream, BlobError>;
    /// Where clients get the blob without the coordinator, if they can.
    async fn address(
        &self,
        kind: BlobKind,
        hash: &ContentHash,
    ) -> Result<Option<String>, BlobError>;
    /// What the store is marked with, if it is.
    async fn mark(&self) -> Result<Option<Bytes>, BlobError>;
    /// Marks the store. Where two do so at the same moment, some stores keep the later mark: who
    /// must know which one stayed reads it afterwards.
    async fn set_mark(&self, text: Bytes, marking: Marking) -> Result<(), BlobError>;
    /// Whether the store can be written to, or could be a few minutes ago and still answers.
    async fn ping(&self) -> Result<(), BlobError>;
}

pub type SharedBlobs = Arc<dyn BlobStore>;

/// Opens the store at a location: a folder by its path or as `file://…`, or an object store by its
/// URL.
pub fn open(location: &str, downloads: Downloads) -> Result<SharedBlobs, BlobError> {
    let Some(folder) = folder_at(location) else {
        let settings = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        return Ok(Arc::new(ObjectBlobs::open(location, settings, downloads)?));
    };
    if !location.contains("://") {
        refuse_half_url(location)?;
    }
    let store = FolderStore::open(folder)?;
    Ok(Arc::new(store.with_downloads(downloads)))
}

/// The folder of a store that is one.
pub fn folder_at(location: &str) -> Option<&Path> {
    match location.split_once("://") {
        None => Some(Path::new(location)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    }
}

/// A URL without its slashes would be a folder of that name in the working directory.
fn refuse_half_url(location: &str) -> Result<(), BlobError> {
    let Some((scheme, rest)) = location.split_once(':') else {
        return Ok(());
    };
    let rest = rest.trim_start_matches('/');
    let advice = match scheme {
        "file" => format!("file:///{rest}, or the folder's path alone"),
        "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" => format!("{scheme}://{rest}"),
        _ => return Ok(()),
    };
    Err(BlobError::Address(format!(
        "{} is no URL of a store; write {}",
        without_secrets(location),
        without_secrets(&advice)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_its_slashes_is_no_folder() {
        for (location, advice) in [
            ("file:/srv/blobs", "file:///srv/blobs"),
            ("s3:bucket/prefix", "s3://bucket/prefix"),
        ] {
            let refused = open(location, Downloads::default()).map(drop);
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(advice), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}", folder.path().join("blobs").display());
        assert!(open(&url, Downloads::default()).is_ok());
        assert!(folder.path().join("blobs").is_dir());
    }
}
