//! Who audits, and how much: what operators are told of it.

use jiff::Timestamp;
use rookery_common::protocol::people::Span;

use crate::db::error::Result;
use crate::db::models::audit_draws;
use crate::db::models::spans::{DAY, Since};
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::to_count;
use crate::db::types::AuditorActivity;

impl Ledger {
    /// Who audits, and how much was audited within a day.
    pub async fn auditor_activity(&self, now: Timestamp) -> Result<AuditorActivity> {
        read!(self, "auditor_activity", |conn| async {
            let named = audit_draws::is_auditor_named(conn).await?;
            let searched: Vec<(i64, i64)> = sqlx::query_as(
                "SELECT trusted, CAST(sum(plies) AS BIGINT) FROM audit_opinions WHERE given_at >= $1
                 GROUP BY trusted",
            )
            .bind(now.as_millisecond() - DAY)
            .fetch_all(&mut *conn)
            .await?;
            let by = |trusted: bool| -> u64 {
                let rows = searched.iter().filter(|(word, _)| (*word != 0) == trusted);
                rows.map(|(_, plies)| to_count(*plies)).sum()
            };
            let mut positions = 0;
            if let Some(Since { length, begins }) = Since::of(Span::Day, now) {
                positions = sqlx::query_scalar(
                    "SELECT CAST(coalesce(sum(s.positions), 0) AS BIGINT)
                     FROM runs r CROSS JOIN credit_spans s
                     WHERE s.run_id = r.id AND s.length = $1 AND s.begins >= $2",
                )
                .bind(length)
                .bind(begins)
                .fetch_one(conn)
                .await?;
            }
            let (by_auditors, by_contributors) = (by(true), by(false));
            Ok(AuditorActivity {
                named,
                by_auditors,
                by_contributors,
                // Audits are credited, too.
                positions: to_count(positions).saturating_sub(by_auditors + by_contributors),
            })
        })
    }
}
