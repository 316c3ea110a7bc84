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

use std::collections::HashSet;
use std::io::Read as _;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::jobs::ChunkRow;
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

use crate::blobs::{BlobEntry, BlobError, BlobKind, BlobStore};
use crate::db::{Actor, ArchiveDraft, Database, DbError};

/// Bytes of a tar header.
const HEADER: u64 = 512;
/// The name of an archive's first file.
const MANIFEST: &str = "manifest.json";

/// Why a chunk could not be read or archived.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Database(#[from] DbError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A blob is not what its name says.
    #[error("{0} is damaged in the store: its bytes have another SHA-256")]
    Damaged(String),
    /// An archive could not be written or read.
    #[error("an archive could not be written or read: {0}")]
    Io(#[from] std::io::Error),
    /// A bug ended the work on a chunk.
    #[error("reading a chunk was cut short: {0}")]
    Cut(#[from] JoinError),
}

/// What an archive says of itself.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    format: &'static str,
    run: &'a RunName,
    chunks: &'a [ChunkRow],
}

/// What has to be known of a manifest to find chunks without the ledger.
#[derive(Debug, Deserialize)]
struct Contents {
    chunks: Vec<Named>,
}

/// A chunk of a manifest.
#[derive(Debug, Deserialize)]
struct Named {
    hash: ContentHash,
}

/// The bytes of a chunk, wherever they are.
pub async fn read_chunk(
    db: &Database,
    blobs: &dyn BlobStore,
    hash: &ContentHash,
) -> Result<Bytes, ArchiveError> {
    let missing = match blobs.get(BlobKind::Chunk, hash).await {
        Err(error @ BlobError::Missing(_)) => error,
        found => return Ok(found?),
    };
    let Some(part) = db.archived(hash).await? else {
        return Err(missing.into());
    };
    let range = part.begins..part.begins + part.bytes;
    let bytes = read_part(blobs, &part.archive, range).await?;
    if ContentHash::of(&bytes) != *hash {
        return Err(ArchiveError::Damaged(format!("chunk {hash}")));
    }
    Ok(bytes)
}

async fn read_part(
    blobs: &dyn BlobStore,
    archive: &ContentHash,
    range: Range<u64>,
) -> Result<Bytes, ArchiveError> {
    let stream = blobs.read(BlobKind::Archive, archive, range).await?;
    let bytes: BytesMut = stream.try_collect().await?;
    Ok(bytes.freeze())
}

/// The chunks that an archive says it holds, without the ledger: only its manifest is read.
pub async fn contents(
    blobs: &dyn BlobStore,
    archive: &BlobEntry,
) -> Result<Vec<ContentHash>, ArchiveError> {
    let header = read_part(blobs, &archive.hash, 0..HEADER.min(archive.bytes)).await?;
    let end = HEADER.saturating_add(manifest_bytes(&header)?);
    if end > archive.bytes {
        return Err(std::io::Error::other("it ends within its manifest").into());
    }
    let manifest = read_part(blobs, &archive.hash, HEADER..end).await?;
    let contents: Contents = serde_json::from_slice(&manifest).map_err(std::io::Error::other)?;
    Ok(contents
        .chunks
        .into_iter()
        .map(|named| named.hash)
        .collect())
}

/// Bytes of the manifest, as the header at the beginning of an archive says.
fn manifest_bytes(header: &[u8]) -> std::io::Result<u64> {
    let mut tar = tar::Archive::new(header);
    let Some(first) = tar.entries()?.next() else {
        return Err(std::io::Error::other("it is empty"));
    };
    let first = first?;
    if *first.path_bytes() != *MANIFEST.as_bytes() {
        return Err(std::io::Error::other("it does not begin with a manifest"));
    }
    Ok(first.size())
}

/// Those chunks in an archive's bytes that are wanted; without those that are damaged.
pub fn unpack(
    archive: &[u8],
    wanted: &HashSet<ContentHash>,
) -> std::io::Result<Vec<(ContentHash, Bytes)>> {
    let mut tar = tar::Archive::new(archive);
    let mut chunks = Vec::new();
    for entry in tar.entries()? {
        let mut entry = entry?;
        let Some(hash) = chunk_named(&entry.path_bytes()) else {
            continue;
        };
        if !wanted.contains(&hash) {
            continue;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if ContentHash::of(&bytes) == hash {
            chunks.push((hash, bytes.into()));
        }
    }
    Ok(chunks)
}

/// The chunk that a file of an archive is, by its name.
fn chunk_named(path: &[u8]) -> Option<ContentHash> {
    let name = std::str::from_utf8(path).ok()?.strip_prefix("chunks/")?;
    name.parse().ok()
}

/// Packs chunks of a run, given in ledger order, into one archive, enters it into the ledger and its
/// operator log, and removes the chunks. Returns the archive's hash and size in bytes.
/// If a chunk is damaged, or ledger or store fail, nothing is lost.
pub async fn archive(
    db: &Database,
    blobs: &dyn BlobStore,
    run: &RunName,
    rows: &[ChunkRow],
    by: Actor,
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
    db.add_archive(draft, by).await?;
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
    append(&mut tar, MANIFEST, &manifest)?;
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
