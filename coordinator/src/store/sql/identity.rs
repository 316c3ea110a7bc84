//! Which ledger this is.

use sqlx::AnyConnection;

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
