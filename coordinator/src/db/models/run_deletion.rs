//! Runs that are deleted, and what they leave.

use rookery_common::ids::RunName;
use rookery_common::text::quantity;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::types::{Actor, DELETED};

/// What is removed of deleted runs, a part at a time.
const REMOVED: [&str; 9] = [
    "DELETE FROM games WHERE id IN (SELECT id FROM games
       WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL) LIMIT 2000)",
    "DELETE FROM puzzles WHERE (run_id, ordinal) IN (SELECT run_id, ordinal FROM puzzles
       WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL) LIMIT 2000)",
    "DELETE FROM metrics WHERE (run_id, step) IN (SELECT run_id, step FROM metrics
       WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL) LIMIT 2000)",
    "DELETE FROM puzzle_scores WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL)",
    "DELETE FROM ratings WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL)",
    "DELETE FROM network_exports WHERE network IN (SELECT n.hash FROM networks n
       JOIN runs r ON r.id = n.run_id AND r.deleted_at IS NOT NULL)
     AND network NOT IN (SELECT n.hash FROM networks n
       JOIN runs r ON r.id = n.run_id AND r.deleted_at IS NULL)",
    "DELETE FROM networks WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL)",
    "DELETE FROM network_signatures
     WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL)",
    "DELETE FROM run_keys WHERE run_id IN (SELECT id FROM runs WHERE deleted_at IS NOT NULL)",
];

impl Ledger {
    /// Deletes an archived run; what it leaves is removed by [`remove_deleted`](Self::remove_deleted), and its
    /// blobs are needed by nothing any more. Its chunks' rows stay, as audits of them say how far their contributors are
    /// trusted.
    pub async fn delete_run(&self, run: &RunName, by: Actor) -> Result<()> {
        let run = run.clone();
        transact!(self, "runs", |conn| {
            let (id, before) = (
                runs::id_of(conn, &run).await?,
                runs::info(conn, &run).await?,
            );
            if before.archived_at.is_none() {
                return Err(DbError::Conflict(format!(
                    "run {run} is not archived; only an archived run can be deleted (`run archive {run}`)"
                )));
            }
            sqlx::query(
                "UPDATE runs SET deleted_at = $2, name = $3, status = 'paused', description = '', title = NULL,
                   contact = NULL, links = '[]' WHERE id = $1",
            )
            .bind(id)
            .bind(by.at.as_millisecond())
            .bind(format!("{DELETED}{id}"))
            .execute(&mut *conn)
            .await?;
            let (networks, games) = (before.networks, before.games);
            let (networks, games) = (quantity(networks, "network"), quantity(games, "game"));
            let detail = format!("run {id}: {networks}, {games}");
            by.note(conn, Action::DeleteRun, run.as_str(), &detail)
                .await
        })
    }

    /// Removes some of what deleted runs have left, and tells how many rows; 0 when nothing is left.
    pub async fn remove_deleted(&self) -> Result<u64> {
        transact!(self, "runs", |conn| {
            let mut removed = 0;
            for statement in REMOVED {
                let done = sqlx::query(statement).execute(&mut *conn).await?;
                removed += done.rows_affected();
            }
            Ok(removed)
        })
    }
}
