//! Workers that get no jobs, while their contributors' other workers do.

use rookery_common::protocol::trust::WorkerBlock;
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::users;
use crate::db::sql::ledger::{Ledger, transact_principals};
use crate::db::sql::rows::time_text;
use crate::db::types::Actor;

impl Ledger {
    /// Blocks a worker of a contributor: it gets no jobs, and the contributor is told why. Of one that is blocked
    /// already the reason changes.
    pub async fn block_worker(
        &self,
        user: &str,
        worker: &str,
        reason: &str,
        by: Actor,
    ) -> Result<()> {
        let (user, worker, reason) = (user.to_owned(), worker.to_owned(), reason.to_owned());
        transact_principals!(self, "worker_blocks", |conn| {
            let id = users::id_of(conn, &user).await?;
            let known: i64 =
                sqlx::query_scalar("SELECT count(*) FROM workers WHERE user_id = $1 AND name = $2")
                    .bind(id)
                    .bind(&worker)
                    .fetch_one(&mut *conn)
                    .await?;
            if known == 0 {
                return Err(unknown(&user, &worker));
            }
            sqlx::query(
                "INSERT INTO worker_blocks (user_id, worker, reason, actor, at)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (user_id, worker) DO UPDATE
                 SET reason = excluded.reason, actor = excluded.actor, at = excluded.at",
            )
            .bind(id)
            .bind(&worker)
            .bind(&reason)
            .bind(&by.name)
            .bind(by.at.as_millisecond())
            .execute(&mut *conn)
            .await?;
            let detail = format!("worker {worker:?}: {reason}");
            by.note(conn, Action::BlockWorker, &user, &detail).await
        })
    }

    pub async fn unblock_worker(&self, user: &str, worker: &str, by: Actor) -> Result<()> {
        let (user, worker) = (user.to_owned(), worker.to_owned());
        transact_principals!(self, "worker_blocks", |conn| {
            let id = users::id_of(conn, &user).await?;
            let ended = sqlx::query("DELETE FROM worker_blocks WHERE user_id = $1 AND worker = $2")
                .bind(id)
                .bind(&worker)
                .execute(&mut *conn)
                .await?;
            if ended.rows_affected() == 0 {
                return Err(DbError::NotFound(format!(
                    "block of the worker {worker:?} of {user}"
                )));
            }
            let detail = format!("worker {worker:?}");
            by.note(conn, Action::UnblockWorker, &user, &detail).await
        })
    }
}

/// A contributor's blocked workers, by name.
pub(crate) async fn of_user(conn: &mut AnyConnection, user: i64) -> Result<Vec<WorkerBlock>> {
    let rows: Vec<(String, String, String, i64)> = sqlx::query_as(
        "SELECT worker, reason, actor, at FROM worker_blocks WHERE user_id = $1 ORDER BY worker",
    )
    .bind(user)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|(worker, reason, by, at)| {
            Ok(WorkerBlock {
                worker,
                reason,
                by,
                since: time_text(at)?,
            })
        })
        .collect()
}

fn unknown(user: &str, worker: &str) -> DbError {
    DbError::NotFound(format!("worker {worker:?} of {user}"))
}
