//! Opening books of runs.

use std::collections::HashMap;
use std::sync::Arc;

use rookery_common::ids::RunName;
use rookery_common::openings::OpeningBook;
use rookery_common::text::quantity;

use crate::db::error::{DbError, Result};
use crate::db::models::lease_work::{self, LeaseValue};
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::types::Actor;

impl Ledger {
    /// Gives a run an opening book of its own, in place of the one that it has, and notes it in the operator log under
    /// this name. Jobs that were handed out keep the book that they were made from.
    pub async fn set_book(
        &self,
        run: &RunName,
        name: &str,
        book: OpeningBook,
        by: Actor,
    ) -> Result<()> {
        let (run, hash) = (run.clone(), book.hash());
        let openings = quantity(book.openings().len(), "opening");
        let detail = format!("{name}: {openings}, book {hash}");
        let value = LeaseValue::Book(Arc::new(book));
        transact!(self, "runs", |conn| {
            let id = runs::id_of(conn, &run).await?;
            lease_work::enter(conn, &HashMap::from([(hash, value)])).await?;
            sqlx::query("UPDATE runs SET book = $2 WHERE id = $1")
                .bind(id)
                .bind(&hash.as_bytes()[..])
                .execute(&mut *conn)
                .await?;
            by.note(conn, Action::SetOpenings, run.as_str(), &detail)
                .await
        })
    }

    /// Lets a run use the coordinator's openings again.
    pub async fn remove_book(&self, run: &RunName, by: Actor) -> Result<()> {
        let run = run.clone();
        transact!(self, "runs", |conn| {
            let id = runs::id_of(conn, &run).await?;
            let removed =
                sqlx::query("UPDATE runs SET book = NULL WHERE id = $1 AND book IS NOT NULL")
                    .bind(id)
                    .execute(&mut *conn)
                    .await?;
            if removed.rows_affected() == 0 {
                return Err(DbError::NotFound(format!("opening book of run {run}")));
            }
            by.note(conn, Action::RemoveOpenings, run.as_str(), "")
                .await
        })
    }
}
