//! Contributors' records against the audits that were decided.
//!
//! Passes are counted from the last audit that failed, and from the last of the contributor's own opinions
//! that was overruled. Whether one was depends on who was in quarantine at that moment, so that what it may
//! have taken away is left open; and before chunks were counted by their positions, each that passed
//! was a whole pass.

use std::collections::BTreeMap;

use sqlx::AnyConnection;

use crate::store::error::Result;
use crate::store::model::Discrepancy;
use crate::trust::rate::PASS_POSITIONS;

/// Positions of passed audits that a record may have.
#[derive(Default)]
struct Bounds {
    least: i64,
    most: i64,
}

pub(super) async fn check(conn: &mut AnyConnection, found: &mut Vec<Discrepancy>) -> Result<()> {
    let whole = i64::from(PASS_POSITIONS);
    let bounds = bounds(conn).await?;
    let stored: Vec<(i64, i64, i64)> =
        sqlx::query_as("SELECT user_id, passed, part FROM track_records ORDER BY user_id")
            .fetch_all(conn)
            .await?;
    let mut stored: BTreeMap<i64, i64> = stored
        .into_iter()
        .map(|(user, passed, part)| (user, passed.saturating_mul(whole).saturating_add(part)))
        .collect();
    for user in bounds.keys() {
        stored.entry(*user).or_default();
    }
    let none = Bounds::default();
    for (user, positions) in stored {
        let Bounds { least, most } = bounds.get(&user).unwrap_or(&none);
        if !(*least..=*most).contains(&positions) {
            found.push(Discrepancy {
                what: format!("positions of passed audits of contributor {user}"),
                stored: positions.to_string(),
                recomputed: format!("{least} to {most}"),
            });
        }
    }
    Ok(())
}

/// What audits do to a record, in the order in which they were decided.
enum Event {
    Passed { positions: i64 },
    Failed,
    MayBeOverruled,
}

async fn bounds(conn: &mut AnyConnection) -> Result<BTreeMap<i64, Bounds>> {
    let whole = i64::from(PASS_POSITIONS);
    let mut bounds: BTreeMap<i64, Bounds> = BTreeMap::new();
    for (user, event) in events(conn).await? {
        let bounds = bounds.entry(user).or_default();
        match event {
            Event::Passed { positions } => {
                bounds.least += positions.min(whole);
                bounds.most += whole;
            }
            Event::Failed => *bounds = Bounds::default(),
            Event::MayBeOverruled => bounds.least = 0,
        }
    }
    Ok(bounds)
}

async fn events(conn: &mut AnyConnection) -> Result<Vec<(i64, Event)>> {
    let audits: Vec<(i64, i64, String, i64)> = sqlx::query_as(
        "SELECT a.decided_by, a.user_id, a.state, c.positions FROM audits a
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
    let decided = audits
        .into_iter()
        .map(|(when, user, state, positions)| match &*state {
            "failed" => (when, user, Event::Failed),
            _ => (when, user, Event::Passed { positions }),
        });
    let overruled = wrong
        .into_iter()
        .map(|(when, user)| (when, user, Event::MayBeOverruled));
    let mut events: Vec<_> = decided.chain(overruled).collect();
    events.sort_by_key(|(when, ..)| *when);
    let what = events.into_iter().map(|(_, user, event)| (user, event));
    Ok(what.collect())
}
