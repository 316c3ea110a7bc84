//! The Elo that operators give anchors.

use rookery_common::ids::{AnchorName, NetworkNumber, RunName};
use rookery_common::rating::AnchorElo;
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::rows::{network, unreadable};
use crate::db::sql::statement::Statement;
use crate::db::types::Actor;

impl Ledger {
    /// Gives an anchor another Elo, or none. The ratings are to be fitted again then.
    pub async fn set_anchor_elo(
        &self,
        run: &RunName,
        number: NetworkNumber,
        elo: Option<AnchorElo>,
        by: Actor,
    ) -> Result<()> {
        let run = run.clone();
        transact!(self, "anchors", |conn| {
            let id = runs::id_of(conn, &run).await?;
            let name = name_of(conn, id, number).await?;
            set_elo(conn, id, number, elo).await?;
            // Should the fit that is to follow fail, the next game brings one.
            runs::make_stale(conn, id).await?;
            let elo = elo.map_or_else(|| "no Elo".to_owned(), |elo| format!("{elo} Elo"));
            let detail = format!("network {number}: {name}, {elo}");
            by.note(conn, Action::SetAnchor, run.as_str(), &detail)
                .await
        })
    }
}

pub(crate) fn elo(column: Option<f64>) -> Result<Option<AnchorElo>> {
    column.map(read).transpose()
}

fn read(column: f64) -> Result<AnchorElo> {
    AnchorElo::new(column).map_err(|error| unreadable("anchor's Elo", &error))
}

/// The anchors of a run whose Elo is given, in ascending order.
pub(crate) async fn list_given(
    conn: &mut AnyConnection,
    run: i64,
) -> Result<Vec<(NetworkNumber, AnchorElo)>> {
    let rows: Vec<(i64, f64)> = sqlx::query_as(
        "SELECT number, anchor_elo FROM networks
         WHERE run_id = $1 AND anchor_elo IS NOT NULL ORDER BY number",
    )
    .bind(run)
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|(number, elo)| Ok((network(number)?, read(elo)?)))
        .collect()
}

/// An anchor as the operator log writes it.
pub(crate) fn described(name: &AnchorName, elo: Option<AnchorElo>) -> String {
    match elo {
        Some(elo) => format!("{name}, {elo} Elo"),
        None => name.to_string(),
    }
}

/// Gives an anchor this Elo, or none. (A missing number has another type than a number in PostgreSQL, and a statement is
/// prepared for one of the two: so none is bound.)
pub(crate) async fn set_elo(
    conn: &mut AnyConnection,
    run: i64,
    number: NetworkNumber,
    elo: Option<AnchorElo>,
) -> Result<()> {
    let mut query = Statement::new("UPDATE networks SET anchor_elo = ");
    match elo {
        Some(elo) => query.bind(elo.get())?,
        None => query.push("NULL"),
    };
    query.push(" WHERE run_id = ").bind(run)?;
    query.push(" AND number = ").bind(i64::from(number.0))?;
    query.execute(conn).await
}

/// The name of a network that must be an anchor.
async fn name_of(conn: &mut AnyConnection, run: i64, number: NetworkNumber) -> Result<String> {
    let name: Option<Option<String>> =
        sqlx::query_scalar("SELECT name FROM networks WHERE run_id = $1 AND number = $2")
            .bind(run)
            .bind(i64::from(number.0))
            .fetch_optional(conn)
            .await?;
    let name = name.ok_or_else(|| DbError::NotFound(format!("network number {number}")))?;
    name.ok_or_else(|| {
        let detail = format!("network {number} is no anchor, and only an anchor is given an Elo");
        DbError::Conflict(detail)
    })
}
