//! Networks that are submitted, and their exports.

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, MatchId, NetworkNumber, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::{ExportReceipt, NetworkReceipt, NetworkStatus};
use rookery_common::rating::gate::GateRule;
use sqlx::AnyConnection;

use crate::db::NetworkSubmitted;
use crate::db::error::{DbError, Result};
use crate::db::models::networks::{after_promotions, by_hash, make_best};
use crate::db::models::operator_log::Action;
use crate::db::models::runs::{self, Run};
use crate::db::models::{anchors, exports, matches, users};
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{count, network, parse, seed_column, to_json};
use crate::db::types::{Actor, AnchorDraft, CANDIDATES, ExportDraft, NetworkDraft};

impl Ledger {
    /// Refuses a network for which a run has no room, as too many of its candidates are not decided
    /// yet. There is room for one that the run has.
    pub async fn must_have_room(&self, run: &RunName, network: &ContentHash) -> Result<()> {
        read!(self, "networks", |conn| async {
            let run = runs::load(conn, run).await?;
            let known = existing(conn, run.id, network).await?.is_some();
            if known || run.params.gate == GateRule::None {
                return Ok(());
            }
            limit_candidates(conn, &run).await
        })
    }

    /// Enters a network: the first becomes best, a later one opens its gate match, waits for the
    /// present one to end, or is promoted at once if the rule says so.
    pub async fn submit_network(
        &self,
        network: NetworkDraft,
        now: Timestamp,
    ) -> Result<NetworkSubmitted> {
        transact!(self, "networks", |conn| submit(conn, network, now).await)
    }

    /// Enters a stored export of a network; another one in its place is a conflict.
    pub async fn add_export(&self, draft: ExportDraft, now: Timestamp) -> Result<ExportReceipt> {
        transact!(self, "exports", |conn| {
            by_hash(conn, &draft.network).await?;
            let present = exports::of_network(conn, &draft.network).await?;
            let present = present.iter().find(|export| export.format == draft.format);
            if let Some(present) = present {
                if present.hash != draft.hash {
                    let name = draft.format.name();
                    let detail = format!("the network has another {name} export, {}", present.hash);
                    return Err(DbError::Conflict(detail));
                }
            } else {
                insert_export(conn, &draft, now).await?;
            }
            Ok(ExportReceipt {
                format: draft.format,
                hash: draft.hash,
                duplicate: present.is_some(),
            })
        })
    }
}

/// Enters a network, unless the run has it: as the first, as an anchor, as a candidate for a gate, or
/// as best where the run has no gate.
async fn submit(
    conn: &mut AnyConnection,
    draft: NetworkDraft,
    now: Timestamp,
) -> Result<NetworkSubmitted> {
    let run = runs::load(conn, &draft.run).await?;
    if let Some(receipt) = existing(conn, run.id, &draft.hash).await? {
        return Ok(NetworkSubmitted {
            receipt,
            events: Vec::new(),
        });
    }
    let status = initial_status(&run, draft.anchor.as_ref())?;
    if status == NetworkStatus::Candidate {
        limit_candidates(conn, &run).await?;
    }
    let now = after_promotions(conn, run.id, now).await?;
    let number = insert(conn, &run, &draft, status, now).await?;
    if let Some(anchor) = &draft.anchor {
        anchors::set_elo(conn, run.id, number, anchor.elo).await?;
        let by = Actor::new(&users::name_of(conn, draft.user.0).await?, now);
        let described = anchors::described(&anchor.name, anchor.elo);
        let detail = format!("network {number}: {described}");
        by.note(conn, Action::AddAnchor, run.name.as_str(), &detail)
            .await?;
    }
    let mut events = vec![Event::Network {
        run: run.name.clone(),
        number,
        hash: draft.hash,
    }];
    let mut gate = None;
    match status {
        NetworkStatus::Initial | NetworkStatus::Promoted => {
            events.push(make_best(conn, &run, number, draft.hash).await?);
        }
        NetworkStatus::Candidate => {
            let opened = matches::open_next_gate(conn, &run, now).await?;
            gate = opened.filter(|(candidate, _)| *candidate == number);
        }
        NetworkStatus::Anchor | NetworkStatus::Rejected | NetworkStatus::Demoted => {}
    }
    Ok(NetworkSubmitted {
        receipt: NetworkReceipt {
            hash: draft.hash,
            number,
            status,
            gate: gate.map(|(_, id)| id),
            duplicate: false,
        },
        events,
    })
}

fn initial_status(run: &Run, anchor: Option<&AnchorDraft>) -> Result<NetworkStatus> {
    match (run.best, anchor, run.params.gate) {
        (None, Some(anchor), _) => {
            let detail = format!(
                "run {} has no network yet that could be compared with {}",
                run.name, anchor.name
            );
            Err(DbError::Conflict(detail))
        }
        (None, None, _) => Ok(NetworkStatus::Initial),
        (Some(_), Some(_), _) => Ok(NetworkStatus::Anchor),
        (Some(_), None, GateRule::None) => Ok(NetworkStatus::Promoted),
        (Some(_), None, _) => Ok(NetworkStatus::Candidate),
    }
}

async fn limit_candidates(conn: &mut AnyConnection, run: &Run) -> Result<()> {
    let undecided: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM networks WHERE run_id = $1 AND status = 'candidate'",
    )
    .bind(run.id)
    .fetch_one(conn)
    .await?;
    if undecided < i64::from(CANDIDATES) {
        return Ok(());
    }
    Err(DbError::TooManyCandidates(run.name.to_string()))
}

async fn existing(
    conn: &mut AnyConnection,
    run: i64,
    hash: &ContentHash,
) -> Result<Option<NetworkReceipt>> {
    let row: Option<(i64, String, Option<i64>)> = sqlx::query_as(
        "SELECT number, status, gate_id FROM networks WHERE run_id = $1 AND hash = $2",
    )
    .bind(run)
    .bind(&hash.as_bytes()[..])
    .fetch_optional(conn)
    .await?;
    row.map(|(number, status, gate)| {
        Ok(NetworkReceipt {
            hash: *hash,
            number: network(number)?,
            status: parse("network status", &status)?,
            gate: gate.map(MatchId),
            duplicate: true,
        })
    })
    .transpose()
}

async fn insert(
    conn: &mut AnyConnection,
    run: &Run,
    draft: &NetworkDraft,
    status: NetworkStatus,
    now: Timestamp,
) -> Result<NetworkNumber> {
    let (number, positions): (i64, i64) = sqlx::query_as(
        "UPDATE runs SET networks = networks + 1 WHERE id = $1
         RETURNING networks - 1, training_positions",
    )
    .bind(run.id)
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query(
        "INSERT INTO networks (run_id, number, hash, bytes, spec, status, submitted_by,
           submitted_at, match_seed, name, program, positions)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(run.id)
    .bind(number)
    .bind(&draft.hash.as_bytes()[..])
    .bind(count(draft.bytes))
    .bind(to_json(&draft.spec)?)
    .bind(status.name())
    .bind(draft.user.0)
    .bind(now.as_millisecond())
    .bind(seed_column(draft.match_seed))
    .bind(draft.anchor.as_ref().map(|anchor| anchor.name.to_string()))
    .bind(draft.spec.program().map(|program| program.to_string()))
    .bind(positions)
    .execute(conn)
    .await?;
    network(number)
}

async fn insert_export(
    conn: &mut AnyConnection,
    draft: &ExportDraft,
    now: Timestamp,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO network_exports (network, format, hash, bytes, submitted_by, submitted_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(&draft.network.as_bytes()[..])
    .bind(draft.format.name())
    .bind(&draft.hash.as_bytes()[..])
    .bind(count(draft.bytes))
    .bind(draft.user.0)
    .bind(now.as_millisecond())
    .execute(conn)
    .await?;
    Ok(())
}
