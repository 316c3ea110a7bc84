//! How far contributors are trusted, and what of them is held: for operators and for themselves.

use jiff::Timestamp;
use rookery_common::ids::UserId;
use rookery_common::protocol::trust::{ContributorTrust, HeldChunk, TrustInfo, TrustLevel};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::{audits, drift, unreturned_games, users, worker_blocks};
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{hash, parse, time_text, to_count, to_u32};
use crate::db::use_cases::quarantine;
use crate::trust::rate::{PROBATION, full_audit_share};

/// Held chunks that are told one by one, the newest.
const HELD: i64 = 20;

impl Ledger {
    /// What audits have shown of a contributor.
    pub async fn trust(&self, user: &str) -> Result<TrustInfo> {
        read!(self, "standings", |conn| async {
            let user = UserId(users::id_of(conn, user).await?);
            load_trust(conn, user).await
        })
    }

    /// The same of all who have sent something, with who stands out and how many games did not come:
    /// those with held chunks first, then those who drift, then those who failed audits.
    pub async fn suspects(&self, limit: u32, now: Timestamp) -> Result<Vec<ContributorTrust>> {
        read!(self, "standings", |conn| async {
            let users: Vec<i64> = sqlx::query_scalar(
                "SELECT u.id FROM users u LEFT JOIN track_records t ON t.user_id = u.id
                 WHERE EXISTS (SELECT 1 FROM chunks c WHERE c.user_id = u.id)
                   OR EXISTS (SELECT 1 FROM quarantines q WHERE q.user_id = u.id)
                 ORDER BY (SELECT count(*) FROM chunks c WHERE c.user_id = u.id AND c.held <> 0) DESC,
                   (SELECT count(*) FROM drift_findings d WHERE d.user_id = u.id) DESC,
                   coalesce(t.failed, 0) DESC, lower(u.name)
                 LIMIT $1",
            )
            .bind(i64::from(limit))
            .fetch_all(&mut *conn)
            .await?;
            let mut found = Vec::with_capacity(users.len());
            for user in users.into_iter().map(UserId) {
                let given = unreturned_games::count_unreturned(conn, user, now).await?;
                found.push(ContributorTrust {
                    trust: load_trust(conn, user).await?,
                    drift: drift::findings(conn, user).await?,
                    training_games: given.came,
                    missing_games: given.missing,
                });
            }
            Ok(found)
        })
    }
}

async fn load_trust(conn: &mut AnyConnection, user: UserId) -> Result<TrustInfo> {
    let (name, open, positions, held_chunks): (String, i64, i64, i64) = sqlx::query_as(
        "SELECT u.name,
           (SELECT count(*) FROM audits a WHERE a.user_id = u.id AND a.state = 'open') AS open,
           (SELECT CAST(coalesce(sum(o.plies), 0) AS BIGINT) FROM audit_opinions o
             JOIN audits a ON a.id = o.audit_id WHERE a.user_id = u.id) AS positions,
           (SELECT count(*) FROM chunks c WHERE c.user_id = u.id AND c.held <> 0) AS held
         FROM users u WHERE u.id = $1",
    )
    .bind(user.0)
    .fetch_one(&mut *conn)
    .await?;
    let record = audits::track_record(conn, user.0).await?;
    let quarantine = quarantine::standing(conn, user).await?;
    let level = match &quarantine {
        Some(_) => TrustLevel::Quarantined,
        None if record.passed < PROBATION => TrustLevel::Probation,
        None => TrustLevel::Trusted,
    };
    Ok(TrustInfo {
        name,
        level,
        audits_passed: record.passed,
        audits_failed: record.failed,
        audits_open: to_u32("number of audits", open)?,
        audit_rate: full_audit_share(record),
        audited_positions: to_count(positions),
        held_chunks: to_u32("number of chunks", held_chunks)?,
        quarantine,
        blocked_workers: worker_blocks::of_user(conn, user.0).await?,
        held: match held_chunks {
            0 => Vec::new(),
            _ => held(conn, user).await?,
        },
    })
}

#[derive(FromRow)]
struct HeldRow {
    hash: Vec<u8>,
    run: String,
    kind: String,
    games: i64,
    positions: i64,
    reason: String,
    at: i64,
}

/// The newest held chunks of a contributor, and why each is held.
async fn held(conn: &mut AnyConnection, user: UserId) -> Result<Vec<HeldChunk>> {
    let rows: Vec<HeldRow> = sqlx::query_as(
        "SELECT c.hash, r.name AS run, c.kind, c.games, c.positions, h.reason, h.at
         FROM chunks c JOIN runs r ON r.id = c.run_id
         JOIN holds h ON h.id = (SELECT max(last.id) FROM holds last WHERE last.chunk = c.sequence)
         WHERE c.user_id = $1 AND c.held <> 0 ORDER BY c.sequence DESC LIMIT $2",
    )
    .bind(user.0)
    .bind(HELD)
    .fetch_all(conn)
    .await?;
    let chunk = |row: HeldRow| {
        Ok(HeldChunk {
            chunk: hash(&row.hash)?,
            run: row.run,
            kind: parse("kind of chunk", &row.kind)?,
            games: to_u32("number of games", row.games)?,
            positions: to_u32("number of positions", row.positions)?,
            reason: row.reason,
            since: time_text(row.at)?,
        })
    };
    rows.into_iter().map(chunk).collect()
}
