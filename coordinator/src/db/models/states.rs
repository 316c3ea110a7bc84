//! The states of jobs and of audits, under the names that their columns hold.
//!
//! Statements spell the names out: the partial indexes of the schema match only literals.

use rookery_common::names;

names! {
    /// The state of a job: a lease and what came of it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum JobState {
        /// It is leased; whether it has expired, its times say.
        Open = "open",
        /// All its games are counted.
        Done = "done",
        /// The worker gave it back, or its chunks were excluded.
        Returned = "returned",
    }
}

names! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum AuditState {
        /// It waits for opinions.
        Open = "open",
        /// The chunk is what it claims to be.
        Passed = "passed",
        /// It is not.
        Failed = "failed",
        /// It was given up.
        Void = "void",
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::audit::Finding;
    use rookery_common::chess::outcome::{GameResult, Termination};
    use rookery_common::protocol::jobs::WorkKind;
    use rookery_common::protocol::matches::{MatchPurpose, MatchStatus};
    use rookery_common::protocol::networks::{ExportFormat, NetworkStatus};
    use rookery_common::protocol::runs::RunStatus;

    use super::*;
    use crate::db::models::audits::Cause;

    const SCHEMAS: [&str; 2] = [
        include_str!("../../../migrations/sqlite/0100_ledger.sql"),
        include_str!("../../../migrations/postgres/0100_ledger.sql"),
    ];

    /// The words that a CHECK lets into a column.
    fn words<'a>(schema: &'a str, table: &str, column: &str) -> Vec<&'a str> {
        let (_, table) = schema
            .split_once(&format!("CREATE TABLE {table} ("))
            .unwrap();
        let (table, _) = table.split_once("\n)").unwrap();
        let (_, list) = table.split_once(&format!("CHECK ({column} IN (")).unwrap();
        let (list, _) = list.split_once("))").unwrap();
        let words = list.split(',').map(|word| word.trim().trim_matches('\''));
        words.collect()
    }

    #[test]
    fn columns_take_the_words_of_their_enums() {
        let kinds = WorkKind::ALL.map(WorkKind::name).to_vec();
        let columns: [(&str, &str, Vec<&str>); 15] = [
            (
                "runs",
                "status",
                RunStatus::ALL.map(RunStatus::name).to_vec(),
            ),
            (
                "networks",
                "status",
                NetworkStatus::ALL.map(NetworkStatus::name).to_vec(),
            ),
            (
                "network_exports",
                "format",
                ExportFormat::ALL.map(ExportFormat::name).to_vec(),
            ),
            (
                "matches",
                "status",
                MatchStatus::ALL.map(MatchStatus::name).to_vec(),
            ),
            (
                "matches",
                "purpose",
                MatchPurpose::ALL.map(MatchPurpose::name).to_vec(),
            ),
            ("jobs", "kind", kinds.clone()),
            ("jobs", "state", JobState::ALL.map(JobState::name).to_vec()),
            ("chunks", "kind", kinds.clone()),
            ("games", "kind", kinds.clone()),
            (
                "games",
                "result",
                GameResult::ALL.map(GameResult::name).to_vec(),
            ),
            (
                "games",
                "termination",
                Termination::ALL.map(Termination::name).to_vec(),
            ),
            ("workers", "job_kind", kinds),
            ("audits", "cause", Cause::ALL.map(Cause::name).to_vec()),
            (
                "audits",
                "state",
                AuditState::ALL.map(AuditState::name).to_vec(),
            ),
            (
                "audit_opinions",
                "finding",
                Finding::ALL.map(Finding::name).to_vec(),
            ),
        ];
        for schema in SCHEMAS {
            for (table, column, names) in &columns {
                assert_eq!(words(schema, table, column), *names, "{table}.{column}");
            }
        }
    }
}
