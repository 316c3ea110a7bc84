//! Archives of old chunks, and which blobs the ledger names.

use futures_util::TryStreamExt as _;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::jobs::ChunkRow;
use rookery_common::text::quantity;
use sqlx::AnyConnection;

use crate::blobs::BlobKind;
use crate::db::error::{DbError, Result};
use crate::db::models::chunks::StoredChunk;
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{count, hash, to_count};
use crate::db::types::{Actor, Archivable, ArchiveDraft, ArchivedChunk};

impl Ledger {
    /// Chunks of a run that may go into an archive and are in none, in ledger order.
    pub async fn archivable(&self, run: &RunName, asked: Archivable) -> Result<Vec<ChunkRow>> {
        read!(self, "archives", |conn| archivable(conn, run, asked))
    }

    /// Enters a stored archive, and notes it in the operator log; a chunk that is in another already is a
    /// conflict.
    pub async fn add_archive(&self, archive: ArchiveDraft, by: Actor) -> Result<()> {
        transact!(self, "archives", |conn| add(conn, archive, &by).await)
    }

    /// Where a chunk's bytes are if it is in an archive.
    pub async fn archived(&self, chunk: &ContentHash) -> Result<Option<ArchivedChunk>> {
        read!(self, "archives", |conn| async {
            let row: Option<(Vec<u8>, i64, i64)> = sqlx::query_as(
                "SELECT r.hash, a.begins, c.bytes FROM chunks c
                 JOIN archived_chunks a ON a.chunk = c.sequence JOIN archives r ON r.id = a.archive_id
                 WHERE c.hash = $1",
            )
            .bind(&chunk.as_bytes()[..])
            .fetch_optional(conn)
            .await?;
            row.map(|(archive, begins, bytes)| {
                Ok(ArchivedChunk {
                    archive: hash(&archive)?,
                    begins: to_count(begins),
                    bytes: to_count(bytes),
                })
            })
            .transpose()
        })
    }

    /// All blobs of a kind that must be in the store, in no order.
    pub async fn blobs_needed(&self, kind: BlobKind) -> Result<Vec<ContentHash>> {
        read!(self, "archives", |conn| async {
            let query = match kind {
                BlobKind::Network => {
                    "SELECT DISTINCT n.hash FROM networks n
                     JOIN runs r ON r.id = n.run_id AND r.deleted_at IS NULL"
                }
                BlobKind::Export => {
                    "SELECT DISTINCT e.hash FROM network_exports e JOIN networks n ON n.hash = e.network
                     JOIN runs r ON r.id = n.run_id AND r.deleted_at IS NULL"
                }
                BlobKind::Archive => {
                    "SELECT a.hash FROM archives a JOIN runs r ON r.id = a.run_id AND r.deleted_at IS NULL"
                }
                BlobKind::Chunk => {
                    "SELECT c.hash FROM chunks c JOIN runs r ON r.id = c.run_id AND r.deleted_at IS NULL
                     LEFT JOIN archived_chunks a ON a.chunk = c.sequence WHERE a.chunk IS NULL"
                }
            };
            let mut rows = sqlx::query_scalar::<_, Vec<u8>>(query).fetch(conn);
            let mut hashes = Vec::new();
            while let Some(bytes) = rows.try_next().await? {
                hashes.push(hash(&bytes)?);
            }
            Ok(hashes)
        })
    }
}

/// Chunks of a run that are in no archive, are older than `before` and than the newest `window`
/// training positions, in ledger order.
async fn archivable(
    conn: &mut AnyConnection,
    run: &RunName,
    asked: Archivable,
) -> Result<Vec<rookery_common::protocol::jobs::ChunkRow>> {
    let run = runs::id_of(conn, run).await?;
    // The newest chunk with which the ones after it make the window.
    let oldest: Option<i64> = sqlx::query_scalar(
        "SELECT max(sequence) FROM (
           SELECT sequence, sum(positions) OVER (ORDER BY sequence DESC) AS newest
           FROM chunks WHERE run_id = $1 AND kind NOT IN ('match', 'audit')) AS counted
         WHERE newest >= $2",
    )
    .bind(run)
    .bind(count(asked.window))
    .fetch_one(&mut *conn)
    .await?;
    let Some(oldest) = oldest else {
        return Ok(Vec::new());
    };
    let rows: Vec<StoredChunk> = sqlx::query_as(
        "SELECT c.sequence, c.hash, c.kind, c.network, c.bytes, c.games, c.positions,
           c.accepted_at, c.held
         FROM chunks c LEFT JOIN archived_chunks a ON a.chunk = c.sequence
         WHERE c.run_id = $1 AND a.chunk IS NULL AND c.sequence < $2 AND c.accepted_at < $3
         ORDER BY c.sequence LIMIT $4",
    )
    .bind(run)
    .bind(oldest)
    .bind(asked.before.as_millisecond())
    .bind(i64::from(asked.limit))
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(StoredChunk::into_chunk).collect()
}

/// Enters a stored archive: from now on its chunks are parts of it.
async fn add(conn: &mut AnyConnection, archive: ArchiveDraft, by: &Actor) -> Result<()> {
    let run = runs::id_of(conn, &archive.run).await?;
    let detail = format!(
        "{} went into archive {}, {}",
        quantity(archive.chunks.len(), "chunk"),
        archive.hash,
        quantity(archive.bytes, "byte")
    );
    by.note(conn, Action::Archive, archive.run.as_str(), &detail)
        .await?;
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO archives (run_id, hash, bytes, archived_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (hash) DO UPDATE SET bytes = excluded.bytes RETURNING id",
    )
    .bind(run)
    .bind(&archive.hash.as_bytes()[..])
    .bind(count(archive.bytes))
    .bind(by.at.as_millisecond())
    .fetch_one(&mut *conn)
    .await?;
    for (sequence, begins) in archive.chunks {
        let entered = sqlx::query(
            "INSERT INTO archived_chunks (chunk, archive_id, begins) VALUES ($1, $2, $3)
             ON CONFLICT (chunk) DO NOTHING",
        )
        .bind(sequence)
        .bind(id)
        .bind(count(begins))
        .execute(&mut *conn)
        .await?;
        if entered.rows_affected() == 0 {
            let detail = format!("chunk number {sequence} is in another archive already");
            return Err(DbError::Conflict(detail));
        }
    }
    Ok(())
}
