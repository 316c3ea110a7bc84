//! What operators did: the table `audit`, which has nothing to do with `audits`.

use jiff::Timestamp;
use rookery_common::protocol::people::OperatorAct;
use sqlx::{AnyConnection, FromRow};

use super::rows::time_text;
use crate::store::error::Result;

pub(super) async fn write(
    conn: &mut AnyConnection,
    actor: &str,
    action: &str,
    subject: &str,
    detail: &str,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(now.as_millisecond())
    .bind(actor)
    .bind(action)
    .bind(subject)
    .bind(detail)
    .execute(conn)
    .await?;
    Ok(())
}

#[derive(FromRow)]
struct Row {
    id: i64,
    at: i64,
    actor: String,
    action: String,
    subject: String,
    detail: String,
}

/// Entries before one, newest first.
pub(super) async fn page(
    conn: &mut AnyConnection,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<OperatorAct>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, at, actor, action, subject, detail FROM audit
         WHERE id < $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(before.unwrap_or(i64::MAX))
    .bind(i64::from(limit))
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(OperatorAct {
                id: row.id,
                at: time_text(row.at)?,
                actor: row.actor,
                action: row.action,
                subject: row.subject,
                detail: row.detail,
            })
        })
        .collect()
}
