//! What operators did.

use jiff::Timestamp;
use sqlx::AnyConnection;

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
