//! What the last audits of a contributor have found, one opinion after the other.

use std::collections::BTreeSet;

use rookery_common::audit::{Disagreement, Tolerance};
use rookery_common::protocol::jobs::Backend;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::audits::{AuditRow, record_of};
use crate::db::models::conditions::quarantined;
use crate::db::sql::rows::{parse, to_u32};
use crate::trust::pool::Evidence;
use crate::trust::verdict::Auditor;

/// Audits before the one that is decided that are looked at: enough if each has one position.
const AUDITS: i64 = 64;

#[derive(FromRow)]
struct Row {
    audit: i64,
    auditor: i64,
    trusted: i64,
    #[sqlx(flatten)]
    found: Part,
    theirs: String,
    ours: String,
    passed: i64,
    vouched: i64,
}

impl Row {
    fn into_evidence(self) -> Result<Evidence> {
        let weight = if self.trusted != 0 {
            Auditor::Trusted
        } else {
            Auditor::Volunteer.with(record_of(self.passed, self.vouched, 0)?)
        };
        let found = self.found.into_disagreement()?;
        let tolerance = Tolerance::between(backend(&self.theirs)?, backend(&self.ours)?);
        Ok(Evidence {
            auditor: self.auditor,
            weight,
            found,
            tolerance,
        })
    }
}

/// The backend that a chunk names.
pub(crate) fn backend(name: &str) -> Result<Backend> {
    parse("backend", name)
}

/// The opinions on an audit that is about to be decided and on those of the same contributor that
/// were decided since the last one failed, the newest first. Auditors weigh as much as their
/// records do now, and nothing in quarantine. Of audits of which an auditor of the operator's has
/// spoken, only what that one found counts: false accusers are overruled for good.
pub(crate) async fn since_last_failure(
    conn: &mut AnyConnection,
    audit: &AuditRow,
) -> Result<Vec<Evidence>> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        "SELECT a.id AS audit, o.user_id AS auditor, o.trusted, o.plies, o.policy, o.visits, o.value, o.best,
           o.choice, c.backend AS theirs, k.backend AS ours, COALESCE(t.passed, 0) AS passed,
           COALESCE(t.vouched, 0) AS vouched
         FROM (SELECT CAST($2 AS BIGINT) AS id, 0 AS earlier
           UNION ALL SELECT l.id, 1 FROM (SELECT id FROM audits WHERE user_id = $1
             AND decided_by > COALESCE((SELECT max(decided_by) FROM audits
               WHERE user_id = $1 AND state = 'failed'), 0)
             ORDER BY decided_by DESC LIMIT $3) AS l) AS w
         JOIN audits a ON a.id = w.id JOIN chunks c ON c.sequence = a.chunk
         JOIN audit_opinions o ON o.audit_id = a.id
         JOIN chunks k
           ON k.sequence = (SELECT min(p.chunk) FROM audit_parts p WHERE p.job_id = o.job_id)
         LEFT JOIN track_records t ON t.user_id = o.user_id
         WHERE ",
        quarantined!("o.user_id"),
        " = 0
         ORDER BY w.earlier, a.decided_by DESC, o.given_at DESC, o.user_id",
    ))
    .bind(audit.user_id)
    .bind(audit.id)
    .bind(AUDITS)
    .fetch_all(conn)
    .await?;
    let trusted = rows.iter().filter(|row| row.trusted != 0);
    let trusted: BTreeSet<i64> = trusted.map(|row| row.audit).collect();
    rows.into_iter()
        .filter(|row| row.trusted != 0 || !trusted.contains(&row.audit))
        .map(Row::into_evidence)
        .collect()
}

/// How far the searches of a part of an audit are apart, or those of all of it.
#[derive(FromRow)]
pub(crate) struct Part {
    plies: i64,
    policy: f64,
    visits: f64,
    value: f64,
    best: f64,
    choice: f64,
}

impl Part {
    pub(crate) fn into_disagreement(self) -> Result<Disagreement> {
        Ok(Disagreement {
            plies: to_u32("plies", self.plies)?,
            policy: self.policy,
            visits: self.visits,
            value: self.value,
            best: self.best,
            choice: self.choice,
        })
    }
}
