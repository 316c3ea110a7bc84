//! Rows that nothing refers to any more: jobs of which nothing came, workers of long ago.

use jiff::Timestamp;

use crate::db::error::Result;
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::statement::Statement;
use crate::db::types::{JobCursor, JobsForgotten};

/// Jobs that are looked at in one operation.
const JOBS: usize = 256;
/// Workers that are removed by one.
const WORKERS: i64 = 1000;

impl Ledger {
    /// Removes some of the workers that were not heard since `before`, and tells how many: 0 if there
    /// are no more. Of each contributor the one that was heard last stays.
    pub async fn forget_workers(&self, before: Timestamp) -> Result<u64> {
        transact!(self, "forgotten", |conn| {
            // Who was heard last of a contributor stays: it is when the contributor was.
            let done = sqlx::query(
                "DELETE FROM workers WHERE (user_id, name) IN (
                       SELECT w.user_id, w.name FROM workers w JOIN (
                         SELECT user_id, max(last_seen) AS heard FROM workers GROUP BY user_id
                       ) AS newest ON newest.user_id = w.user_id
                       WHERE w.last_seen < $1 AND w.last_seen < newest.heard LIMIT $2)",
            )
            .bind(before.as_millisecond())
            .bind(WORKERS)
            .execute(conn)
            .await?;
            Ok(done.rows_affected())
        })
    }

    /// Looks at some jobs whose leases ended before a moment and of which nothing came, from a place
    /// on, and removes those that nothing refers to: a match still names who has its pairs.
    pub async fn forget_jobs(
        &self,
        before: Timestamp,
        after: Option<JobCursor>,
    ) -> Result<JobsForgotten> {
        transact!(self, "forgotten", |conn| {
            let JobCursor { ended, id } = after.unwrap_or_default();
            let mut rows: Vec<(Vec<u8>, i64)> = sqlx::query_as(
                "SELECT id, expires_at FROM jobs
                 WHERE games_counted = 0 AND expires_at < $1 AND expires_at >= $2
                   AND (expires_at > $2 OR id > $3)
                 ORDER BY expires_at, id LIMIT $4",
            )
            .bind(before.as_millisecond())
            .bind(ended)
            .bind(id)
            .bind(JOBS as i64)
            .fetch_all(&mut *conn)
            .await?;
            if rows.is_empty() {
                return Ok(JobsForgotten::default());
            }
            let ids: Vec<Vec<u8>> = rows.iter().map(|(id, _)| id.clone()).collect();
            let mut remove = Statement::new("DELETE FROM jobs WHERE id IN (");
            remove.bind_all(&ids)?.push(
                ") AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.job_id = jobs.id)
                 AND NOT EXISTS (SELECT 1 FROM match_pairs p WHERE p.job_id = jobs.id)",
            );
            let removed = remove.affected(conn).await?;
            let full = rows.len() == JOBS;
            let last = rows.pop().filter(|_| full);
            Ok(JobsForgotten {
                removed,
                last: last.map(|(id, ended)| JobCursor { ended, id }),
            })
        })
    }
}
