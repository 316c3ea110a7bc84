//! Who is drawn for audits: what the draw has to know, and what comes of it. It is read beside the writer, now
//! and then, so that a request for a job only looks whether an audit waits for who asks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use rookery_common::ids::UserId;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::audits::{VOID_AFTER_MS, record_of};
use crate::db::models::conditions::{gates_first, is_audit_token, is_unassigned, quarantined};
use crate::db::models::spans::Since;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::to_count;
use crate::db::sql::statement::{LISTED, Statement};
use crate::db::types::ACTIVE;
use crate::trust::draw::{Candidate, Circle, DRAWN_FOR, DrawBoard, Person, WaitingAudit};
use crate::trust::rate::PROBATION;

/// Until then an audit waits for an auditor whom the operator trusts.
const VOLUNTEERS_AFTER_MS: i64 = 20_000;
/// Audits of a run for which somebody is drawn at once.
const AUDITS: i64 = 256;

impl Ledger {
    /// Audits of open runs for which somebody is to be drawn, and who could make them.
    pub async fn draw_boards(&self, now: Timestamp) -> Result<Vec<DrawBoard>> {
        read!(self, "audit_draws", |conn| async {
            let runs: Vec<i64> = sqlx::query_scalar("SELECT id FROM runs WHERE status = 'open'")
                .fetch_all(&mut *conn)
                .await?;
            let mut boards = Vec::new();
            for run in runs {
                let waiting = waiting(conn, run, now.as_millisecond()).await?;
                if !waiting.is_empty() {
                    boards.push(board(conn, run, waiting, now).await?);
                }
            }
            Ok(boards)
        })
    }

    /// Lets audits, by their numbers, wait for who was drawn. Another coordinator may have drawn somebody meanwhile, who
    /// stays.
    pub async fn enter_draws(&self, drawn: Vec<(i64, UserId)>, now: Timestamp) -> Result<()> {
        transact!(self, "audit_draws", |conn| {
            for (audit, user) in drawn {
                sqlx::query(
                    "UPDATE audits SET drawn_for = $2, drawn_until = $3
                     WHERE id = $1 AND state = 'open' AND (drawn_until IS NULL OR drawn_until < $4)",
                )
                .bind(audit)
                .bind(user.0)
                .bind((now + DRAWN_FOR).as_millisecond())
                .bind(now.as_millisecond())
                .execute(&mut *conn)
                .await?;
            }
            Ok(())
        })
    }
}

/// Audits that nobody makes or was drawn for: the audit, and whose chunk it is. Those that open gates wait for come first.
async fn waiting(conn: &mut AnyConnection, run: i64, now: i64) -> Result<Vec<(i64, i64)>> {
    let rows = sqlx::query_as(concat!(
        "SELECT a.id, a.user_id FROM audits a LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.run_id = $1 AND a.state = 'open' AND a.plan IS NOT NULL AND a.opened_at <= $2
           AND ",
        is_unassigned!("h", "$3"),
        "
           AND (a.drawn_until IS NULL OR a.drawn_until < $3)
         ORDER BY ",
        gates_first!("a", "$1"),
        ", a.id LIMIT $4"
    ))
    .bind(run)
    .bind(now - VOLUNTEERS_AFTER_MS)
    .bind(now)
    .bind(AUDITS)
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

async fn board(
    conn: &mut AnyConnection,
    run: i64,
    waiting: Vec<(i64, i64)>,
    now: Timestamp,
) -> Result<DrawBoard> {
    let at_work: Vec<i64> = sqlx::query_scalar(concat!(
        "SELECT u.id FROM users u WHERE u.blocked = 0
           AND EXISTS (SELECT 1 FROM workers w WHERE w.user_id = u.id AND w.last_seen >= $1)
           AND ",
        quarantined!("u.id"),
        " = 0",
    ))
    .bind((now - ACTIVE).as_millisecond())
    .fetch_all(&mut *conn)
    .await?;
    let authors = waiting.iter().map(|(_, author)| *author);
    let everybody: BTreeSet<i64> = at_work.iter().copied().chain(authors).collect();
    let people = people(conn, &everybody).await?;
    let asked = load_opinion_givers(conn, &waiting).await?;
    let positions = positions(conn, run, now).await?;
    let candidates = at_work.iter().filter_map(|user| {
        Some(Candidate {
            person: people.get(user)?.clone(),
            positions: to_count(positions.get(user).copied().unwrap_or_default()),
        })
    });
    let candidates = candidates.collect();
    let audits = waiting.into_iter().filter_map(|(id, author)| {
        Some(WaitingAudit {
            id,
            author: people.get(&author)?.clone(),
            asked: asked.get(&id).cloned().unwrap_or_default(),
        })
    });
    Ok(DrawBoard {
        audits: audits.collect(),
        candidates,
        named: is_auditor_named(conn).await?,
        vouched_for: vouched_for(conn, now.as_millisecond()).await?,
    })
}

#[derive(FromRow)]
struct PersonRow {
    id: i64,
    created_at: i64,
    block: Option<i64>,
    passed: i64,
    vouched: i64,
    failed: i64,
}

async fn people(conn: &mut AnyConnection, users: &BTreeSet<i64>) -> Result<BTreeMap<i64, Person>> {
    let users: Vec<i64> = users.iter().copied().collect();
    let mut people = BTreeMap::new();
    for part in users.chunks(LISTED) {
        let mut query = Statement::new(
            "SELECT u.id, u.created_at, u.block, COALESCE(t.passed, 0) AS passed,
               COALESCE(t.vouched, 0) AS vouched, COALESCE(t.failed, 0) AS failed
             FROM users u LEFT JOIN track_records t ON t.user_id = u.id WHERE u.id IN (",
        );
        query.bind_all(part)?.push(")");
        let rows: Vec<PersonRow> = query.fetch_all(&mut *conn).await?;
        for row in rows {
            let person = Person {
                user: UserId(row.id),
                record: record_of(row.passed, row.vouched, row.failed)?,
                circle: Circle {
                    registered_at: row.block.map(|_| row.created_at),
                    blocks: row.block.into_iter().collect(),
                },
            };
            people.insert(row.id, person);
        }
        let mut query = Statement::new(
            "SELECT DISTINCT user_id, block FROM workers WHERE block IS NOT NULL AND user_id IN (",
        );
        query.bind_all(part)?.push(")");
        let blocks: Vec<(i64, i64)> = query.fetch_all(&mut *conn).await?;
        for (user, block) in blocks {
            if let Some(person) = people.get_mut(&user) {
                person.circle.blocks.insert(block);
            }
        }
    }
    Ok(people)
}

async fn load_opinion_givers(
    conn: &mut AnyConnection,
    waiting: &[(i64, i64)],
) -> Result<HashMap<i64, Vec<UserId>>> {
    let mut asked = HashMap::<_, Vec<_>>::new();
    for part in waiting.chunks(LISTED) {
        let audits: Vec<i64> = part.iter().map(|(audit, _)| *audit).collect();
        let mut query =
            Statement::new("SELECT audit_id, user_id FROM audit_opinions WHERE audit_id IN (");
        query.bind_all(&audits)?.push(")");
        let rows: Vec<(i64, i64)> = query.fetch_all(&mut *conn).await?;
        for (audit, user) in rows {
            asked.entry(audit).or_default().push(UserId(user));
        }
    }
    Ok(asked)
}

/// Positions of games of a run that came in within a day, by contributor. Audits do not count: who makes them quickly
/// would be drawn for more.
async fn positions(
    conn: &mut AnyConnection,
    run: i64,
    now: Timestamp,
) -> Result<HashMap<i64, i64>> {
    let Some(Since { length, begins }) =
        Since::of(rookery_common::protocol::people::Span::Day, now)
    else {
        return Ok(HashMap::new());
    };
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT user_id, CAST(sum(positions - audit_positions) AS BIGINT) FROM credit_spans
         WHERE run_id = $1 AND length = $2 AND begins >= $3 GROUP BY user_id",
    )
    .bind(run)
    .bind(length)
    .bind(begins)
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}

/// How many contributors are vouched for, were heard of within a day and are not in quarantine.
async fn vouched_for(conn: &mut AnyConnection, now: i64) -> Result<i64> {
    let count = sqlx::query_scalar(concat!(
        "SELECT count(*) FROM track_records t WHERE t.vouched >= $1
           AND EXISTS (SELECT 1 FROM workers w WHERE w.user_id = t.user_id AND w.last_seen >= $2)
           AND ",
        quarantined!("t.user_id"),
        " = 0",
    ))
    .bind(i64::from(PROBATION))
    .bind(now - VOID_AFTER_MS)
    .fetch_one(conn)
    .await?;
    Ok(count)
}

pub(crate) async fn is_auditor_named(conn: &mut AnyConnection) -> Result<bool> {
    let tokens: i64 = sqlx::query_scalar(concat!(
        "SELECT count(*) FROM tokens t JOIN users u ON u.id = t.user_id AND u.blocked = 0
         WHERE ",
        is_audit_token!("t"),
    ))
    .fetch_one(conn)
    .await?;
    Ok(tokens > 0)
}

/// Two auditors of the operator's that were heard since a time. The index `tokens_of_auditors` leads to them.
const AUDITORS_AT_WORK: &str = concat!(
    "SELECT DISTINCT t.user_id FROM tokens t WHERE ",
    is_audit_token!("t"),
    " AND EXISTS (SELECT 1 FROM users u WHERE u.id = t.user_id AND u.blocked = 0)
     AND EXISTS (SELECT 1 FROM workers w WHERE w.user_id = t.user_id AND w.last_seen >= $1)
     LIMIT 2",
);

/// Auditors of the operator's at work: at most two, which is enough to know whether there is one besides a contributor.
pub(crate) async fn auditors_at_work(conn: &mut AnyConnection, now: Timestamp) -> Result<Vec<i64>> {
    let auditors = sqlx::query_scalar(AUDITORS_AT_WORK)
        .bind((now - ACTIVE).as_millisecond())
        .fetch_all(conn)
        .await?;
    Ok(auditors)
}

/// Whether an auditor of the operator's is at work, other than this contributor.
pub(crate) async fn is_auditor_at_work(
    conn: &mut AnyConnection,
    except: i64,
    now: Timestamp,
) -> Result<bool> {
    let auditors = auditors_at_work(conn, now).await?;
    Ok(auditors.into_iter().any(|auditor| auditor != except))
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _};

    use super::*;
    use crate::db::sql::dialect::Dialect;

    /// Thousands of contributors have tokens, and batches of jobs look for auditors.
    #[tokio::test]
    async fn auditors_are_found_by_their_index() {
        sqlx::any::install_default_drivers();
        let mut conn = AnyConnection::connect("sqlite::memory:").await.unwrap();
        Dialect::Sqlite.schema().run(&mut conn).await.unwrap();
        let plan = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {AUDITORS_AT_WORK}"));
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(plan)
            .bind(0_i64)
            .fetch_all(&mut conn)
            .await
            .unwrap();
        let (.., first) = &steps[0];
        assert!(first.contains("INDEX tokens_of_auditors"), "{steps:?}");
    }
}
