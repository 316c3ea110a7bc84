//! Audits as jobs: who is given which one.

use rookery_common::ids::MatchId;
use rookery_common::protocol::jobs::{NetworkRef, Work};
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::conditions::{gates_first, is_audit_token, is_unassigned, plays_no_program};
use crate::db::models::runs::Run;
use crate::db::models::{matches, networks};
use crate::db::sql::rows::{from_json, job_bytes, network};
use crate::db::types::AuditPlan;
use crate::db::types::LeaseRequest;
use crate::trust::verdict::Auditor;

#[derive(FromRow)]
struct WaitingRow {
    id: i64,
    plan: String,
    network: i64,
    match_id: Option<i64>,
}

/// The audit for which who asks was drawn; for an auditor whom the operator trusts the oldest that nobody is
/// at work on, or only a volunteer. Audits that open gates wait for come first.
pub(crate) async fn work(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    now: i64,
) -> Result<Option<(Work, Vec<NetworkRef>)>> {
    let row = match request.auditor {
        Auditor::Trusted => match waiting(conn, run, request, Assignee::Nobody, now).await? {
            None => waiting(conn, run, request, Assignee::Volunteer, now).await?,
            row => row,
        },
        Auditor::Volunteer | Auditor::Newcomer => find_drawn(conn, run, request, now).await?,
    };
    let Some(row) = row else {
        return Ok(None);
    };
    let plan: AuditPlan = from_json("audit", &row.plan)?;
    // The run may have stopped to ask for the solver since these games were played.
    if plan.rules.search().solver && !request.request.solver {
        return Ok(None);
    }
    let numbers = match row.match_id {
        Some(id) => {
            let m = matches::load(conn, MatchId(id)).await?;
            vec![m.candidate, m.opponent]
        }
        None => vec![network(row.network)?],
    };
    let mut needed = Vec::new();
    for number in numbers {
        needed.push(networks::reference(conn, run.id, number).await?);
    }
    sqlx::query(
        "UPDATE audits SET job_id = $2, drawn_for = NULL, drawn_until = NULL WHERE id = $1",
    )
    .bind(row.id)
    .bind(job_bytes(request.chances.job))
    .execute(conn)
    .await?;
    let work = Work::Audit {
        rules: plan.rules,
        tasks: plan.tasks,
    };
    Ok(Some((work, needed)))
}

/// Who may be at work on an audit that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assignee {
    Nobody,
    /// Or somebody without a token of the scope `audit`.
    Volunteer,
}

/// The oldest audit that an auditor of the operator's may be given, and whose worker plays all that it needs.
async fn waiting(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    assignee: Assignee,
    now: i64,
) -> Result<Option<WaitingRow>> {
    // Who had it before a long pause may be forgotten by now. Whether the user of a token is blocked is not asked here: then
    // nobody renews the lease, and it is soon over.
    let row = sqlx::query_as(concat!(
        "SELECT a.id, a.plan, c.network, j.match_id FROM audits a
         JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
         LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.run_id = $1 AND a.state = 'open' AND a.plan IS NOT NULL AND a.user_id <> $2
           AND (",
        is_unassigned!("h", "$3"),
        "
             OR ($4 = 1 AND NOT EXISTS (SELECT 1 FROM tokens t WHERE t.user_id = h.user_id
               AND ",
        is_audit_token!("t"),
        ")))
           AND NOT EXISTS (SELECT 1 FROM audit_opinions o
             WHERE o.audit_id = a.id AND o.user_id = $2)
           AND ($5 = 1 OR ",
        plays_no_program!("j"),
        ")
         ORDER BY ",
        gates_first!("a", "$1"),
        ", a.id LIMIT 1"
    ))
    .bind(run.id)
    .bind(request.user.0)
    .bind(now)
    .bind(i64::from(assignee == Assignee::Volunteer))
    .bind(i64::from(request.request.programs))
    .fetch_optional(conn)
    .await?;
    Ok(row)
}

/// The oldest audit for which a contributor was [drawn](crate::db::models::audit_draws), and whose worker plays all that it needs.
async fn find_drawn(
    conn: &mut AnyConnection,
    run: &Run,
    request: &LeaseRequest,
    now: i64,
) -> Result<Option<WaitingRow>> {
    let row = sqlx::query_as(concat!(
        "SELECT a.id, a.plan, c.network, j.match_id FROM audits a
         JOIN chunks c ON c.sequence = a.chunk JOIN jobs j ON j.id = c.job_id
         LEFT JOIN jobs h ON h.id = a.job_id
         WHERE a.drawn_for = $2 AND a.drawn_until >= $3 AND a.state = 'open' AND a.run_id = $1
           AND a.plan IS NOT NULL
           AND ",
        is_unassigned!("h", "$3"),
        "
           AND ($4 = 1 OR ",
        plays_no_program!("j"),
        ")
         ORDER BY ",
        gates_first!("a", "$1"),
        ", a.id LIMIT 1"
    ))
    .bind(run.id)
    .bind(request.user.0)
    .bind(now)
    .bind(i64::from(request.request.programs))
    .fetch_optional(conn)
    .await?;
    Ok(row)
}
