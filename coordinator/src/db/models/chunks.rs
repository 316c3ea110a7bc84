//! Chunks of the ledger: found and listed.

use rookery_common::ids::{ContentHash, RunName, UserId};
use rookery_common::protocol::jobs::{ChunkPage, ChunkReceipt, ChunkRow};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{hash, network, parse, time_text, to_count, to_u32};
use crate::db::sql::statement::Statement;
use crate::db::types::ChunkStatus;

impl Ledger {
    /// The receipt of a chunk that is in the ledger, and who sent it.
    pub async fn receipt(&self, hash: &ContentHash) -> Result<Option<(UserId, ChunkReceipt)>> {
        read!(self, "chunks", |conn| receipt(conn, hash))
    }

    /// Chunks of a run after the cursor, in ledger order.
    pub async fn chunks(&self, run: &RunName, after: i64, limit: u32) -> Result<ChunkPage> {
        read!(self, "chunks", |conn| async {
            let rows: Vec<StoredChunk> = sqlx::query_as(
                "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at, held
                 FROM chunks WHERE run_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
            )
            .bind(runs::id_of(conn, run).await?)
            .bind(after)
            .bind(i64::from(limit) + 1)
            .fetch_all(conn)
            .await?;
            let more = rows.len() > limit as usize;
            let chunks = rows
                .into_iter()
                .take(limit as usize)
                .map(StoredChunk::into_chunk)
                .collect::<Result<Vec<_>>>()?;
            let next = chunks.last().map_or(after, |chunk| chunk.sequence);
            Ok(ChunkPage { chunks, next, more })
        })
    }

    pub async fn chunk(&self, hash: &ContentHash) -> Result<(RunName, ChunkRow)> {
        read!(self, "chunks", |conn| async {
            let unknown = || DbError::NotFound(format!("chunk {hash}"));
            let row: StoredChunk = sqlx::query_as(
                "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at, held
                 FROM chunks
                 WHERE hash = $1 AND run_id IN (SELECT id FROM runs WHERE deleted_at IS NULL)",
            )
            .bind(&hash.as_bytes()[..])
            .fetch_optional(&mut *conn)
            .await?
            .ok_or_else(unknown)?;
            let run: String = sqlx::query_scalar(
                "SELECT r.name FROM chunks c JOIN runs r ON r.id = c.run_id WHERE c.sequence = $1",
            )
            .bind(row.sequence)
            .fetch_one(conn)
            .await?;
            Ok((parse("run", &run)?, row.into_chunk()?))
        })
    }
}

pub(crate) async fn receipt(
    conn: &mut AnyConnection,
    hash: &ContentHash,
) -> Result<Option<(UserId, ChunkReceipt)>> {
    let row: Option<(i64, i64, i64, i64)> =
        sqlx::query_as("SELECT user_id, sequence, games, positions FROM chunks WHERE hash = $1")
            .bind(&hash.as_bytes()[..])
            .fetch_optional(conn)
            .await?;
    row.map(|(user, sequence, games, positions)| {
        let receipt = ChunkReceipt {
            hash: *hash,
            sequence,
            games: to_u32("number of games", games)?,
            positions: to_u32("number of positions", positions)?,
            duplicate: true,
        };
        Ok((UserId(user), receipt))
    })
    .transpose()
}

#[derive(FromRow)]
pub(crate) struct StoredChunk {
    sequence: i64,
    hash: Vec<u8>,
    kind: String,
    network: i64,
    bytes: i64,
    games: i64,
    positions: i64,
    accepted_at: i64,
    held: i64,
}

impl StoredChunk {
    pub(crate) fn into_chunk(self) -> Result<ChunkRow> {
        Ok(ChunkRow {
            sequence: self.sequence,
            hash: hash(&self.hash)?,
            kind: parse("kind of chunk", &self.kind)?,
            network: network(self.network)?,
            bytes: to_count(self.bytes),
            games: to_u32("number of games", self.games)?,
            positions: to_u32("number of positions", self.positions)?,
            accepted_at: time_text(self.accepted_at)?,
            held: self.held != 0,
        })
    }
}

/// Chunks that an order is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChunkSelection {
    One(i64),
    /// All of a contributor but audits, which stay.
    Of(UserId),
}

impl ChunkSelection {
    /// Completes a statement with the condition that chunk `c` is one of them and not yet so.
    pub(crate) fn write(self, statement: &mut Statement, state: ChunkStatus) -> Result<()> {
        match self {
            Self::One(sequence) => statement.push("c.sequence = ").bind(sequence)?,
            Self::Of(user) => statement
                .push("c.kind <> 'audit' AND c.user_id = ")
                .bind(user.0)?,
        };
        statement.push(" AND c.held <> ").bind(state.column())?;
        Ok(())
    }
}

/// The number of the newest chunk of the ledger; 0 without one.
pub(crate) async fn last(conn: &mut AnyConnection) -> Result<i64> {
    let last = sqlx::query_scalar("SELECT coalesce(max(sequence), 0) FROM chunks")
        .fetch_one(conn)
        .await?;
    Ok(last)
}
