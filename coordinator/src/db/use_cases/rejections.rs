//! Candidates that an operator rejects: the way out where a gate match cannot end.

use rookery_common::ids::{MatchId, NetworkNumber, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkStatus;
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::{Action, Subject};
use crate::db::models::runs::{self, Run};
use crate::db::models::{matches, networks};
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::sql::rows::parse;
use crate::db::types::Actor;
use crate::db::use_cases::match_results;

impl Ledger {
    /// Rejects a candidate, whatever its gate match says; the next one's begins. The answer is what
    /// happened.
    pub async fn reject_network(
        &self,
        run: &RunName,
        number: NetworkNumber,
        reason: &str,
        by: Actor,
    ) -> Result<Vec<Event>> {
        let (run, reason) = (run.clone(), reason.to_owned());
        transact!(self, "rejections", |conn| {
            let run = runs::load(conn, &run).await?;
            let gate = gate_of_candidate(conn, &run, number).await?;
            networks::set_status(conn, run.id, number, NetworkStatus::Rejected).await?;
            let mut events = Vec::new();
            if let Some(id) = gate {
                let m = matches::load(conn, id).await?;
                events.push(match_results::reject(conn, &run, m, &reason, by.at).await?);
            }
            let detail = format!("network {number}: {reason}");
            let about = Subject::Rejected(number);
            by.note_about(
                conn,
                Action::RejectNetwork,
                about,
                run.name.as_str(),
                &detail,
            )
            .await?;
            matches::open_next_gate(conn, &run, by.at).await?;
            Ok(events)
        })
    }
}

/// The gate match of a network that may be rejected, none if it waits for one.
async fn gate_of_candidate(
    conn: &mut AnyConnection,
    run: &Run,
    number: NetworkNumber,
) -> Result<Option<MatchId>> {
    let row: Option<(String, Option<i64>)> =
        sqlx::query_as("SELECT status, gate_id FROM networks WHERE run_id = $1 AND number = $2")
            .bind(run.id)
            .bind(i64::from(number.0))
            .fetch_optional(conn)
            .await?;
    let (status, gate) =
        row.ok_or_else(|| DbError::NotFound(format!("network number {number}")))?;
    let status: NetworkStatus = parse("network status", &status)?;
    if status == NetworkStatus::Candidate {
        return Ok(gate.map(MatchId));
    }
    let detail = if run.best == Some(number) {
        format!(
            "network {number} is best, and jobs need one: make an earlier one best again (`run roll-back`), or change \
             the run's gate to `none`, submit a network that takes its place at once, and change the gate back"
        )
    } else {
        let status = status.name();
        format!("network {number} is {status}, and only a candidate can be rejected")
    };
    Err(DbError::Conflict(detail))
}
