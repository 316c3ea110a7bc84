//! Which ledger this is, and which stores of networks and chunks it took over.

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::operator_log::{self, Act, Action};
use super::rows::unreadable;
use crate::store::error::Result;
use crate::store::model::LedgerId;

/// The identifier that the schema gave the ledger.
pub(super) async fn id(conn: &mut AnyConnection) -> Result<LedgerId> {
    let id: String = sqlx::query_scalar("SELECT id FROM ledger_id")
        .fetch_one(conn)
        .await?;
    id.parse()
        .map_err(|error: uuid::Error| unreadable("identifier", &error))
}

/// Writes what is there already, to see whether anything can be written.
pub(super) async fn touch(conn: &mut AnyConnection) -> Result<()> {
    sqlx::query("UPDATE ledger_id SET id = id")
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes to the operator log that a store was taken over.
pub(super) async fn note_adoption(
    conn: &mut AnyConnection,
    location: String,
    before: String,
    actor: String,
    now: Timestamp,
) -> Result<()> {
    let act = Act {
        actor: &actor,
        action: Action::AdoptStore,
        subject: &location,
        detail: &before,
    };
    operator_log::write(conn, act, now).await
}
