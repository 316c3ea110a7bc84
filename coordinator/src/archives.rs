//! Old chunks packed into larger immutable files, and read from there.
//!
//! ```text
//! chunks older than the window ─> tar: manifest.json, chunks/HASH … ─> store, read back ─> ledger
//!                                                                       then the chunks go
//! ```
//!
//! An archive is a plain tar file that anyone can unpack; the ledger knows at which byte each
//! chunk begins. A chunk's address stays what it was. The order makes it safe to be killed at any
//! moment: until the ledger knows the archive, the chunks are where they were; after that, what is
//! left of them is removed by the next [`sweep`](crate::sweep).

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::jobs::ChunkRow;
use serde::Serialize;

use crate::blobs::{BlobError, BlobKind, BlobStore};
use crate::store::{ArchiveDraft, Store, StoreError};

/// Bytes of a tar header.
const HEADER: u64 = 512;

/// Why a chunk could not be read or archived.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The ledger failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store of blobs failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A blob is not what its name says.
    #[error("{0} is damaged in the store: its bytes have another SHA-256")]
    Damaged(String),
    /// An archive could not be written or read.
    #[error("an archive could not be written or read: {0}")]
    Io(#[from] std::io::Error),
}

/// What an archive says of itself.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    format: &'static str,
    run: &'a RunName,
    chunks: &'a [ChunkRow],
}

/// The bytes of a chunk, wherever they are.
///
/// # Errors
///
/// If it is nowhere, or ledger or store fail.
pub async fn read_chunk(
    store: &dyn Store,
    blobs: &dyn BlobStore,
    hash: &ContentHash,
) -> Result<Bytes, ArchiveError> {
    let missing = match blobs.get(BlobKind::Chunk, hash).await {
        Err(error @ BlobError::Missing(_)) => error,
        found => return Ok(found?),
    };
    let Some(part) = store.archived(hash).await? else {
        return Err(missing.into());
    };
    let range = part.begins..part.begins + part.bytes;
    let stream = blobs.read(BlobKind::Archive, &part.archive, range).await?;
    let bytes: BytesMut = stream.try_collect().await?;
    let bytes = bytes.freeze();
    if ContentHash::of(&bytes) != *hash {
        return Err(ArchiveError::Damaged(format!("chunk {hash}")));
    }
    Ok(bytes)
}

/// Packs chunks of a run, given in ledger order, into one archive, enters it into the ledger and
/// removes the chunks. Returns the archive's hash and size in bytes.
///
/// # Errors
///
/// If a chunk is damaged, or ledger or store fail; nothing is lost then.
pub async fn archive(
    store: &dyn Store,
    blobs: &dyn BlobStore,
    run: &RunName,
    rows: &[ChunkRow],
    now: jiff::Timestamp,
) -> Result<(ContentHash, u64), ArchiveError> {
    let (bytes, chunks) = pack(blobs, run, rows).await?;
    let (hash, size) = (ContentHash::of(&bytes), bytes.len() as u64);
    blobs.put(BlobKind::Archive, &hash, bytes).await?;
    let stored = blobs.get(BlobKind::Archive, &hash).await?;
    if ContentHash::of(&stored) != hash {
        return Err(ArchiveError::Damaged(format!("archive {hash}")));
    }
    let draft = ArchiveDraft {
        run: run.clone(),
        hash,
        bytes: size,
        chunks,
    };
    store.add_archive(draft, now).await?;
    for row in rows {
        blobs.remove(BlobKind::Chunk, &row.hash).await?;
    }
    Ok((hash, size))
}

/// A tar file of these chunks, and at which byte each begins. The same chunks give the same bytes.
async fn pack(
    blobs: &dyn BlobStore,
    run: &RunName,
    rows: &[ChunkRow],
) -> Result<(Bytes, Vec<(i64, u64)>), ArchiveError> {
    let mut tar = tar::Builder::new(Vec::new());
    let manifest = Manifest {
        format: "rookery-archive-1",
        run,
        chunks: rows,
    };
    let manifest = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::other)?;
    append(&mut tar, "manifest.json", &manifest)?;
    let mut places = Vec::with_capacity(rows.len());
    for row in rows {
        let bytes = blobs.get(BlobKind::Chunk, &row.hash).await?;
        if ContentHash::of(&bytes) != row.hash {
            return Err(ArchiveError::Damaged(format!("chunk {}", row.hash)));
        }
        places.push((row.sequence, tar.get_ref().len() as u64 + HEADER));
        append(&mut tar, &format!("chunks/{}", row.hash), &bytes)?;
    }
    Ok((tar.into_inner()?.into(), places))
}

fn append(tar: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    tar.append_data(&mut header, name, bytes)
}
