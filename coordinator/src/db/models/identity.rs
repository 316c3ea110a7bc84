//! Which ledger this is, what was done to its stores of networks and chunks, and where it goes on if
//! not here.

use jiff::Timestamp;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::operator_log::Action;
use crate::db::models::users;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{parse, unreadable};
use crate::db::types::{Actor, LedgerId, Moved};

impl Ledger {
    pub async fn ledger_id(&self) -> Result<LedgerId> {
        read!(self, "identity", |conn| async {
            let id: String = sqlx::query_scalar("SELECT id FROM ledger_id")
                .fetch_one(conn)
                .await?;
            parse("identifier", &id)
        })
    }

    /// Notes in the operator log what is done outside of the ledger.
    pub(crate) async fn note(
        &self,
        action: Action,
        subject: &str,
        detail: &str,
        by: Actor,
    ) -> Result<()> {
        let (subject, detail) = (subject.to_owned(), detail.to_owned());
        transact!(self, "identity", |conn| by
            .note(conn, action, &subject, &detail)
            .await)
    }

    /// Where this ledger goes on, if it was copied into another database.
    pub async fn moved(&self) -> Result<Option<Moved>> {
        read!(self, "identity", |conn| moved(conn))
    }

    /// Takes a ledger that was copied into another database back into service, and notes that in the
    /// operator log; where it had gone on, if it had.
    pub async fn reopen(&self, by: Actor) -> Result<Option<Moved>> {
        transact!(self, "identity", |conn| {
            let Some(moved) = moved(conn).await? else {
                return Ok(None);
            };
            sqlx::query("DELETE FROM moved").execute(&mut *conn).await?;
            let when = format!("it was copied there at {}", moved.at);
            by.note(conn, Action::ReopenLedger, &moved.to, &when)
                .await?;
            Ok(Some(moved))
        })
    }

    /// Whether the database answers, and whether it can be written to if it could not lately.
    pub async fn ping(&self) -> Result<()> {
        read!(self, "users", |conn| users::ping(conn))?;
        // Whoever is sent no more requests has none that would show that it can write again.
        if self.writer()?.is_failing() {
            transact!(self, "identity", |conn| {
                sqlx::query("UPDATE ledger_id SET id = id")
                    .execute(conn)
                    .await?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Where the ledger goes on, if it was copied into another database.
pub(crate) async fn moved(conn: &mut AnyConnection) -> Result<Option<Moved>> {
    let row: Option<(String, i64)> = sqlx::query_as("SELECT target, at FROM moved")
        .fetch_optional(conn)
        .await?;
    row.map(|(to, at)| {
        let at = Timestamp::from_millisecond(at).map_err(|error| unreadable("time", &error))?;
        Ok(Moved { to, at })
    })
    .transpose()
}

/// Marks the ledger, which is not marked, as one that goes on elsewhere.
pub(crate) async fn mark_moved(conn: &mut AnyConnection, moved: &Moved) -> Result<()> {
    sqlx::query("INSERT INTO moved (one, target, at) VALUES (1, $1, $2)")
        .bind(moved.to.as_str())
        .bind(moved.at.as_millisecond())
        .execute(conn)
        .await?;
    Ok(())
}
