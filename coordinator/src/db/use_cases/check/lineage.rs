//! What became of a run's networks: by their gates, and by what operators and rollbacks did.

use std::collections::{BTreeMap, BTreeSet};

use rookery_common::ids::RunName;
use rookery_common::protocol::matches::MatchStatus;
use rookery_common::protocol::networks::NetworkStatus;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use super::compare::compare;
use crate::db::error::Result;
use crate::db::models::conditions::{best_since, is_training};
use crate::db::models::operator_log::Action;
use crate::db::sql::rows::{parse, to_u32};
use crate::db::types::Discrepancy;

/// What the operators' log says of a run's networks.
pub(super) struct Acts {
    /// Rejected, whatever their games said.
    rejected: BTreeSet<u32>,
    /// Best moved from one network to an earlier one.
    rollbacks: Vec<(u32, u32)>,
}

impl Acts {
    pub(super) async fn on(conn: &mut AnyConnection, run: &RunName) -> Result<Self> {
        let rejected: Vec<i64> = sqlx::query_scalar(
            "SELECT network FROM operator_log
             WHERE subject = $1 AND action = $2 AND network IS NOT NULL",
        )
        .bind(run.as_str())
        .bind(Action::RejectNetwork.name())
        .fetch_all(&mut *conn)
        .await?;
        let rollbacks: Vec<(i64, i64)> = sqlx::query_as(
            "SELECT from_network, network FROM operator_log
             WHERE subject = $1 AND action = $2 AND from_network IS NOT NULL ORDER BY id",
        )
        .bind(run.as_str())
        .bind(Action::RollBack.name())
        .fetch_all(conn)
        .await?;
        let number = |number| to_u32("network", number);
        Ok(Self {
            rejected: rejected.into_iter().map(number).collect::<Result<_>>()?,
            rollbacks: rollbacks
                .into_iter()
                .map(|(from, to)| Ok((number(from)?, number(to)?)))
                .collect::<Result<_>>()?,
        })
    }

    /// Whether an operator rejected this network.
    pub(super) fn rejected(&self, number: u32) -> bool {
        self.rejected.contains(&number)
    }
}

#[derive(FromRow)]
struct Row {
    number: i64,
    status: String,
    name: Option<String>,
    gate: Option<String>,
    since: i64,
    positions: Option<i64>,
}

/// A network as its row and its gate's tell it.
struct Entry {
    number: u32,
    status: NetworkStatus,
    is_anchor: bool,
    gate: Option<MatchStatus>,
    /// Since when it was best, if ever it was.
    since: i64,
    positions: Option<i64>,
}

impl Row {
    fn into_entry(self) -> Result<Entry> {
        let gate = self.gate.map(|status| parse("match status", &status));
        Ok(Entry {
            number: to_u32("network", self.number)?,
            status: parse("network status", &self.status)?,
            is_anchor: self.name.is_some(),
            gate: gate.transpose()?,
            since: self.since,
            positions: self.positions,
        })
    }
}

pub(super) async fn check(
    conn: &mut AnyConnection,
    run: i64,
    acts: &Acts,
    found: &mut Vec<Discrepancy>,
) -> Result<()> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        "SELECT n.number, n.status, n.name, m.status AS gate,
           ",
        best_since!(),
        " AS since, n.positions
         FROM networks n LEFT JOIN matches m ON m.id = n.gate_id
         WHERE n.run_id = $1 ORDER BY n.number",
    ))
    .bind(run)
    .fetch_all(&mut *conn)
    .await?;
    let entries = rows
        .into_iter()
        .map(Row::into_entry)
        .collect::<Result<Vec<_>>>()?;
    let undone = Undone::of(acts, &entries);
    for entry in &entries {
        let what = format!("status of network {}", entry.number);
        let facts = status_of(entry, acts, &undone);
        compare(found, what, &entry.status, &facts);
    }
    check_positions(conn, run, &entries, found).await
}

/// What the facts make of a network. Whether one without a gate match was to have one, they do not say.
fn status_of(entry: &Entry, acts: &Acts, undone: &Undone) -> NetworkStatus {
    if entry.is_anchor {
        return NetworkStatus::Anchor;
    }
    if acts.rejected(entry.number) {
        return NetworkStatus::Rejected;
    }
    match entry.gate {
        Some(MatchStatus::Rejected) => NetworkStatus::Rejected,
        Some(MatchStatus::Open | MatchStatus::Finished) => NetworkStatus::Candidate,
        None if entry.number == 0 => NetworkStatus::Initial,
        None if entry.status == NetworkStatus::Candidate => NetworkStatus::Candidate,
        Some(MatchStatus::Promoted) | None => undone.status_of(entry),
    }
}

/// Promotions that rollbacks have undone: what became best after the network to which best went back.
struct Undone(Vec<Span>);

/// From after one network to another one, both by when they became best and by their numbers.
struct Span {
    after: (i64, u32),
    until: (i64, u32),
}

impl Undone {
    fn of(acts: &Acts, entries: &[Entry]) -> Self {
        let since: BTreeMap<u32, i64> = entries.iter().map(|one| (one.number, one.since)).collect();
        let span = |(from, to): &(u32, u32)| {
            Some(Span {
                after: (*since.get(to)?, *to),
                until: (*since.get(from)?, *from),
            })
        };
        Self(acts.rollbacks.iter().filter_map(span).collect())
    }

    /// What has become of a network that was promoted. A clock that was set back since may give a later
    /// promotion a time within a span, but seldom a number as well.
    fn status_of(&self, entry: &Entry) -> NetworkStatus {
        let number = entry.number;
        let time = (entry.since, number);
        let mut within = self
            .0
            .iter()
            .filter(|span| span.after < time && time <= span.until);
        let is_undone = match entry.status {
            NetworkStatus::Demoted => within.next().is_some(),
            _ => within.any(|span| span.after.1 < number && number <= span.until.1),
        };
        if is_undone {
            NetworkStatus::Demoted
        } else {
            NetworkStatus::Promoted
        }
    }
}

/// The training positions that a run had when a network came are a note of that moment. They are no
/// more than there were before the first chunk for which it, or a later one, was needed; and where
/// nothing was ever held, no fewer than an earlier network found.
async fn check_positions(
    conn: &mut AnyConnection,
    run: i64,
    entries: &[Entry],
    found: &mut Vec<Discrepancy>,
) -> Result<()> {
    let most = most_positions(conn, run, entries.len()).await?;
    let holds: i64 = sqlx::query_scalar("SELECT count(*) FROM holds WHERE run_id = $1")
        .bind(run)
        .fetch_one(conn)
        .await?;
    let mut least = 0;
    for (entry, most) in entries.iter().zip(most) {
        let Some(positions) = entry.positions else {
            continue;
        };
        if !(least..=most).contains(&positions) {
            found.push(Discrepancy {
                what: format!("training positions before network {}", entry.number),
                stored: positions.to_string(),
                recomputed: format!("{least} to {most}"),
            });
        } else if holds == 0 {
            least = positions;
        }
    }
    Ok(())
}

/// For each network, the training positions of all chunks before the first that is by it or by a later one.
async fn most_positions(conn: &mut AnyConnection, run: i64, networks: usize) -> Result<Vec<i64>> {
    let chunks: Vec<(i64, i64)> = sqlx::query_as(concat!(
        "SELECT network, CASE WHEN ",
        is_training!("kind"),
        " THEN positions ELSE 0 END
         FROM chunks WHERE run_id = $1 ORDER BY sequence",
    ))
    .bind(run)
    .fetch_all(conn)
    .await?;
    let (mut most, mut total) = (Vec::with_capacity(networks), 0);
    for (network, positions) in chunks {
        while most.len() < networks && most.len() as i64 <= network {
            most.push(total);
        }
        total += positions;
    }
    most.resize(networks, total);
    Ok(most)
}
