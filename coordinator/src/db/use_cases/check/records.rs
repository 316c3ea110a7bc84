//! Contributors' records against the audits that were decided.
//!
//! Passes are counted from the last audit that failed, and from the last of the contributor's own opinions
//! that was overruled. Whether one was depends on who was in quarantine at that moment, so that what it may
//! have taken away is left open; and before chunks were counted by their positions, each that passed
//! was a whole pass.
//!
//! Passes for which somebody has vouched follow from the records of those who did, as these were then. The
//! schema's step 31 believed all passes of a ledger in which an auditor of the operator's had spoken, so that those
//! before its first word may be either.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::states::AuditState;
use crate::db::sql::rows::parse;
use crate::db::types::Discrepancy;
use crate::trust::rate::{PASS_POSITIONS, PROBATION};

/// Positions of passed audits that a record may have, and passes that were vouched for.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    least: i64,
    most: i64,
    least_vouched: i64,
    most_vouched: i64,
}

#[derive(Default)]
struct Stored {
    positions: i64,
    vouched: i64,
}

pub(super) async fn check(conn: &mut AnyConnection, found: &mut Vec<Discrepancy>) -> Result<()> {
    let whole = i64::from(PASS_POSITIONS);
    let bounds = bounds(conn).await?;
    let rows: Vec<(i64, i64, i64, i64)> =
        sqlx::query_as("SELECT user_id, passed, part, vouched FROM track_records")
            .fetch_all(conn)
            .await?;
    let mut stored: BTreeMap<i64, Stored> = BTreeMap::new();
    for (user, passed, part, vouched) in rows {
        let positions = passed.saturating_mul(whole).saturating_add(part);
        stored.insert(user, Stored { positions, vouched });
    }
    for user in bounds.keys() {
        stored.entry(*user).or_default();
    }
    for (user, Stored { positions, vouched }) in stored {
        let bounds = bounds.get(&user).copied().unwrap_or_default();
        let mut compare = |what: &str, stored: i64, least: i64, most: i64| {
            if !(least..=most).contains(&stored) {
                found.push(Discrepancy {
                    what: format!("{what} of contributor {user}"),
                    stored: stored.to_string(),
                    recomputed: format!("{least} to {most}"),
                });
            }
        };
        compare(
            "positions of passed audits",
            positions,
            bounds.least,
            bounds.most,
        );
        compare(
            "vouched passes",
            vouched,
            bounds.least_vouched,
            bounds.most_vouched,
        );
    }
    Ok(())
}

/// What audits do to a record.
enum Event {
    Passed { audit: i64, positions: i64 },
    Failed,
    MayBeOverruled,
}

/// Somebody who agreed with a chunk.
struct Voucher {
    user: i64,
    trusted: bool,
}

/// Whether a pass was vouched for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Vouched {
    No,
    Maybe,
    Certainly,
}

async fn bounds(conn: &mut AnyConnection) -> Result<BTreeMap<i64, Bounds>> {
    let whole = i64::from(PASS_POSITIONS);
    let vouchers = vouchers(conn).await?;
    let first_word: Option<i64> = sqlx::query_scalar(
        "SELECT min(a.decided_by) FROM audit_opinions o JOIN audits a ON a.id = o.audit_id
         WHERE o.trusted <> 0",
    )
    .fetch_one(&mut *conn)
    .await?;
    // What somebody in quarantine says counts for nothing: when exactly is left open.
    let quarantined: Vec<i64> = sqlx::query_scalar("SELECT DISTINCT user_id FROM quarantines")
        .fetch_all(&mut *conn)
        .await?;
    let quarantined: BTreeSet<i64> = quarantined.into_iter().collect();
    let mut all: BTreeMap<i64, Bounds> = BTreeMap::new();
    for (when, user, event) in events(conn).await? {
        let Event::Passed { audit, positions } = event else {
            let bounds = all.entry(user).or_default();
            match event {
                Event::MayBeOverruled => (bounds.least, bounds.least_vouched) = (0, 0),
                _ => *bounds = Bounds::default(),
            }
            continue;
        };
        let words = vouchers.get(&audit).into_iter().flatten();
        let words = words.map(|voucher| voucher.weight(&all, &quarantined));
        let early = first_word.is_some_and(|first| when < first);
        let migrated = if early { Vouched::Maybe } else { Vouched::No };
        let vouched = words.fold(migrated, Ord::max);
        let bounds = all.entry(user).or_default();
        bounds.least += positions.min(whole);
        bounds.most += whole;
        // Of smaller chunks several make a pass.
        let is_whole = positions >= whole;
        bounds.least_vouched += i64::from(vouched == Vouched::Certainly && is_whole);
        bounds.most_vouched += i64::from(vouched != Vouched::No);
    }
    Ok(all)
}

impl Voucher {
    /// Whether the voucher could be believed, by the records of that moment.
    fn weight(&self, records: &BTreeMap<i64, Bounds>, quarantined: &BTreeSet<i64>) -> Vouched {
        let record = records.get(&self.user).copied().unwrap_or_default();
        let passes = i64::from(PROBATION);
        let is_proven = |positions: i64, vouched: i64| {
            positions / i64::from(PASS_POSITIONS) >= passes && vouched >= passes
        };
        let certain = self.trusted || is_proven(record.least, record.least_vouched);
        if certain && !quarantined.contains(&self.user) {
            Vouched::Certainly
        } else if certain || is_proven(record.most, record.most_vouched) {
            Vouched::Maybe
        } else {
            Vouched::No
        }
    }
}

/// Who agreed with the chunks of audits that passed.
async fn vouchers(conn: &mut AnyConnection) -> Result<HashMap<i64, Vec<Voucher>>> {
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as(
        "SELECT o.audit_id, o.user_id, o.trusted FROM audit_opinions o
         JOIN audits a ON a.id = o.audit_id WHERE a.state = 'passed' AND o.finding = 'agrees'",
    )
    .fetch_all(conn)
    .await?;
    let mut vouchers: HashMap<i64, Vec<Voucher>> = HashMap::new();
    for (audit, user, trusted) in rows {
        let trusted = trusted != 0;
        let voucher = Voucher { user, trusted };
        vouchers.entry(audit).or_default().push(voucher);
    }
    Ok(vouchers)
}

/// What happened to whose record, in the order in which audits were decided.
async fn events(conn: &mut AnyConnection) -> Result<Vec<(i64, i64, Event)>> {
    let audits: Vec<(i64, i64, i64, String, i64)> = sqlx::query_as(
        "SELECT a.decided_by, a.id, a.user_id, a.state, c.positions FROM audits a
         JOIN chunks c ON c.sequence = a.chunk
         WHERE a.decided_by IS NOT NULL AND a.state IN ('passed', 'failed')",
    )
    .fetch_all(&mut *conn)
    .await?;
    let wrong: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT a.decided_by, o.user_id FROM audit_opinions o JOIN audits a ON a.id = o.audit_id
         WHERE a.decided_by IS NOT NULL AND ((a.state = 'passed' AND o.finding = 'differs')
           OR (a.state = 'failed' AND o.finding = 'agrees'))",
    )
    .fetch_all(conn)
    .await?;
    let mut events = Vec::with_capacity(audits.len() + wrong.len());
    for (when, audit, user, state, positions) in audits {
        let event = match parse("state of an audit", &state)? {
            AuditState::Failed => Event::Failed,
            _ => Event::Passed { audit, positions },
        };
        events.push((when, user, event));
    }
    let overruled = wrong
        .into_iter()
        .map(|(when, user)| (when, user, Event::MayBeOverruled));
    events.extend(overruled);
    events.sort_by_key(|(when, ..)| *when);
    Ok(events)
}
