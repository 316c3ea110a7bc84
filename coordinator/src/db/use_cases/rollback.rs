//! Best moves back to an earlier network.

use rookery_common::ids::{NetworkNumber, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkStatus;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::conditions::best_since;
use crate::db::models::operator_log::{Action, Subject};
use crate::db::models::{networks, runs};
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::rows::network;
use crate::db::types::{Actor, Rollback};

impl Ledger {
    /// Makes an earlier network best again, unless best is another by now or the earlier one was never
    /// promoted; the networks promoted after it are demoted. The answer is what happened, if anything.
    pub async fn roll_back(
        &self,
        run: &RunName,
        rollback: Rollback,
        by: Actor,
    ) -> Result<Vec<Event>> {
        let run = run.clone();
        transact!(self, "rollback", |conn| {
            let run = runs::load(conn, &run).await?;
            let Rollback { from, to, reason } = rollback;
            let line = promoted(conn, run.id).await?;
            let target = line.iter().position(|number| *number == to);
            let (Some(target), Some(last)) = (target, line.last()) else {
                return Ok(Vec::new());
            };
            if run.best != Some(from) || *last != from || to == from {
                return Ok(Vec::new());
            }
            for number in &line[target + 1..] {
                networks::set_status(conn, run.id, *number, NetworkStatus::Demoted).await?;
            }
            let hash = networks::reference(conn, run.id, to).await?.hash;
            networks::make_best(conn, &run, to, hash).await?;
            let detail = format!("best from network {from} to network {to}, {reason}");
            let about = Subject::Moved { from, to };
            by.note_about(conn, Action::RollBack, about, run.name.as_str(), &detail)
                .await?;
            Ok(vec![Event::Rollback {
                run: run.name.clone(),
                number: to,
                hash,
            }])
        })
    }
}

/// The networks that were best and were not demoted since, in the order in which they became it.
async fn promoted(conn: &mut AnyConnection, run: i64) -> Result<Vec<NetworkNumber>> {
    let numbers: Vec<i64> = sqlx::query_scalar(concat!(
        "SELECT n.number FROM networks n LEFT JOIN matches m ON m.id = n.gate_id
         WHERE n.run_id = $1 AND n.status IN ('initial', 'promoted')
         ORDER BY ",
        best_since!(),
        ", n.number",
    ))
    .bind(run)
    .fetch_all(conn)
    .await?;
    numbers.into_iter().map(network).collect()
}
