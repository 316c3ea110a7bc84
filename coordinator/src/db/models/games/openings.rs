//! Openings of games. A game gets its opening when it is accepted; those from before that was so get it later.

use std::sync::Arc;

use rookery_common::ids::ContentHash;

use crate::db::error::Result;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::hash;
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::ChunkPlace;
use crate::openings::Opening;

/// The column `eco`: empty where no name is known. It is missing until that was looked for.
pub(super) fn code(opening: Option<Opening>) -> &'static str {
    opening.map_or("", |opening| opening.code)
}

impl Ledger {
    /// The newest chunk with games whose opening was not looked for, or the newest before one.
    pub async fn next_unnamed(
        &self,
        before: Option<ChunkPlace>,
    ) -> Result<Option<(ChunkPlace, ContentHash)>> {
        read!(self, "games", |conn| async {
            let row: Option<(i64, Vec<u8>)> = sqlx::query_as(
                "SELECT c.sequence, c.hash FROM chunks c
                 WHERE c.sequence = (SELECT max(g.chunk) FROM games g
                   WHERE g.eco IS NULL AND g.kind <> 'audit' AND g.chunk < $1)",
            )
            .bind(before.map_or(i64::MAX, |place| place.0))
            .fetch_optional(conn)
            .await?;
            row.map(|(sequence, bytes)| Ok((ChunkPlace(sequence), hash(&bytes)?)))
                .transpose()
        })
    }

    /// Enters the openings of a chunk's games, in their order, where they are missing.
    pub async fn set_openings(
        &self,
        chunk: ChunkPlace,
        openings: Arc<[Option<Opening>]>,
    ) -> Result<()> {
        transact!(self, "openings", |conn| {
            let openings: Vec<_> = (0_i64..).zip(openings.iter().copied()).collect();
            for part in parts(&openings) {
                let mut query = Statement::new("");
                for (number, (place, opening)) in part.iter().enumerate() {
                    if number > 0 {
                        query.next("");
                    }
                    query.push("UPDATE games SET eco = ").bind(code(*opening))?;
                    query.push(", opening = ");
                    query.bind(opening.map(|opening| opening.family()))?;
                    query.push(" WHERE eco IS NULL AND kind <> 'audit' AND chunk = ");
                    query.bind(chunk.0)?.push(" AND place = ").bind(*place)?;
                }
                query.execute(&mut *conn).await?;
            }
            Ok(())
        })
    }
}
