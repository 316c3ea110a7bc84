//! What operators did.

use rookery_common::ids::NetworkNumber;
use rookery_common::names;
use rookery_common::params::RunParams;
use rookery_common::protocol::people::{Change, OperatorAct};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::changes;
use crate::db::error::Result;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{from_json, time_text, to_json};
use crate::db::sql::statement::Statement;
use crate::db::types::{Actor, DELETED, LogFilter};

impl Ledger {
    /// What operators did, newest first.
    pub async fn operator_log(&self, filter: LogFilter) -> Result<Vec<OperatorAct>> {
        read!(self, "operator_log", |conn| async {
            let mut query = Statement::new(
                "SELECT id, at, actor, action, subject, detail FROM operator_log WHERE id < ",
            );
            query.bind(filter.before.unwrap_or(i64::MAX))?;
            if let Some(actor) = &filter.actor {
                query
                    .push(" AND lower(actor) = lower(")
                    .bind(actor.clone())?
                    .push(")");
            }
            if let Some(action) = &filter.action {
                query.push(" AND action = ").bind(action.clone())?;
            }
            if let Some(since) = filter.since {
                query.push(" AND at >= ").bind(since.as_millisecond())?;
            }
            query.push(" ORDER BY id DESC LIMIT ");
            query.bind(i64::from(filter.limit))?;
            let rows: Vec<Row> = query.fetch_all(conn).await?;
            rows.into_iter().map(Row::into_act).collect()
        })
    }
}

names! {
    /// What was done. The log is never edited: a name stays what it is.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Action {
        AddAnchor = "add-anchor",
        AddPuzzles = "add-puzzles",
        AddRunKey = "add-run-key",
        AddToken = "add-token",
        AdoptStore = "adopt-store",
        Archive = "archive",
        BlockUser = "block-user",
        BlockWorker = "block-worker",
        ChangeRun = "change-run",
        ArchiveRun = "archive-run",
        Clear = "clear",
        CreateInvitation = "create-invitation",
        CreateRun = "create-run",
        CreateUser = "create-user",
        DeleteRun = "delete-run",
        DeleteUser = "delete-user",
        Hold = "hold",
        LetGo = "let-go",
        OpenMatch = "open-match",
        Quarantine = "quarantine",
        RejectNetwork = "reject-network",
        RemoveOpenings = "remove-openings",
        RenameUser = "rename-user",
        ReopenLedger = "reopen-ledger",
        RestoreRun = "restore-run",
        RevokeInvitation = "revoke-invitation",
        RevokeToken = "revoke-token",
        RollBack = "roll-back",
        RotateToken = "rotate-token",
        SetAnchor = "set-anchor",
        SetOpenings = "set-openings",
        SweepStore = "sweep-store",
        UnblockUser = "unblock-user",
        UnblockWorker = "unblock-worker",
    }
}

/// What an act was about that is looked up later: nothing is read back out of the sentence.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// Only the text says it.
    Text,
    /// The user who was renamed.
    Renamed(i64),
    Rejected(NetworkNumber),
    /// Best was moved between these.
    Moved {
        /// Best before.
        from: NetworkNumber,
        /// Best afterwards.
        to: NetworkNumber,
    },
}

impl Actor {
    /// Writes into the operator log what the actor did to what (the name or the number of a user, run, token, invitation,
    /// chunk, store or database), and what else is to be known; nothing if that is empty.
    pub(crate) async fn note(
        &self,
        conn: &mut AnyConnection,
        action: Action,
        subject: &str,
        detail: &str,
    ) -> Result<()> {
        self.note_about(conn, action, Subject::Text, subject, detail)
            .await
    }

    /// The same with what it was about. (A column that is missing is not bound, as PostgreSQL wants to know its type.)
    pub(crate) async fn note_about(
        &self,
        conn: &mut AnyConnection,
        action: Action,
        about: Subject,
        subject: &str,
        detail: &str,
    ) -> Result<()> {
        let (columns, numbers) = match about {
            Subject::Text => ("", vec![]),
            Subject::Renamed(user) => (", user_id", vec![user]),
            Subject::Rejected(network) => (", network", vec![network.0.into()]),
            Subject::Moved { from, to } => {
                (", network, from_network", vec![to.0.into(), from.0.into()])
            }
        };
        let mut query =
            Statement::new("INSERT INTO operator_log (at, actor, action, subject, detail");
        query.push(columns).push(")");
        query.rows(&[numbers], |row, numbers| {
            row.bind(self.at.as_millisecond())?
                .bind(self.name.clone())?
                .bind(action.name())?
                .bind(subject.to_owned())?
                .bind(detail.to_owned())?;
            for number in numbers {
                row.bind(*number)?;
            }
            Ok(())
        })?;
        query.execute(conn).await
    }
}

/// How the log keeps what is other than before.
#[derive(Serialize, Deserialize)]
struct Changes {
    changes: Vec<Change>,
}

/// The detail of an act that changes something from one state to another.
pub(crate) fn changes(before: &Value, after: &Value) -> Result<String> {
    let changes = changes::between(before, after);
    to_json(&Changes { changes })
}

#[derive(FromRow)]
struct Row {
    id: i64,
    at: i64,
    actor: String,
    action: String,
    subject: String,
    detail: String,
}

impl Row {
    /// The entry as people read it.
    fn into_act(self) -> Result<OperatorAct> {
        let changes = self.changes()?;
        let detail = match &changes {
            None => self.detail,
            Some(changes) if changes.is_empty() => "nothing is other than before".to_owned(),
            Some(changes) => {
                let told: Vec<String> = changes.iter().map(Change::to_string).collect();
                told.join("; ")
            }
        };
        Ok(OperatorAct {
            id: self.id,
            at: time_text(self.at)?,
            actor: self.actor,
            action: self.action,
            subject: self.subject,
            detail,
            changes: changes.unwrap_or_default(),
        })
    }

    /// What is other than before, if the entry tells that. A run begins with the default parameters.
    fn changes(&self) -> Result<Option<Vec<Change>>> {
        if self.action == Action::CreateRun.name() {
            let before = as_value(&RunParams::default())?;
            let after = serde_json::from_str(&self.detail).ok();
            return Ok(after.map(|after| changes::between(&before, &after)));
        }
        let known: Option<Changes> = match self.action == Action::ChangeRun.name() {
            true => serde_json::from_str(&self.detail).ok(),
            false => None,
        };
        Ok(known.map(|known| known.changes))
    }
}

/// A value as its JSON text has it: straight, a number of 32 bits would get digits that nobody wrote.
pub(crate) fn as_value<T: Serialize>(value: &T) -> Result<Value> {
    from_json("entry", &to_json(value)?)
}

/// Takes the name of a user who is deleted out of the log: what it says is of the number then. A user who
/// was renamed is found under the earlier names, up to the moment of the change.
pub(crate) async fn remove_name(conn: &mut AnyConnection, user: i64, name: &str) -> Result<()> {
    let earlier: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, subject FROM operator_log WHERE user_id = $1 ORDER BY id")
            .bind(user)
            .fetch_all(&mut *conn)
            .await?;
    let number = format!("{DELETED}{user}");
    let now = (i64::MAX, name.to_owned());
    for (until, name) in earlier.into_iter().chain([now]) {
        sqlx::query(
            "UPDATE operator_log SET actor = $1 WHERE lower(actor) = lower($2) AND id <= $3",
        )
        .bind(&number)
        .bind(&name)
        .bind(until)
        .execute(&mut *conn)
        .await?;
        sqlx::query(
            "UPDATE operator_log SET subject = $1 WHERE lower(subject) = lower($2) AND id <= $3
               AND action IN ('add-token', 'block-user', 'block-worker', 'clear', 'create-user',
                 'delete-user', 'quarantine', 'rename-user', 'rotate-token', 'unblock-user',
                 'unblock-worker')",
        )
        .bind(&number)
        .bind(&name)
        .bind(until)
        .execute(&mut *conn)
        .await?;
    }
    sqlx::query("UPDATE operator_log SET detail = $2 WHERE user_id = $1")
        .bind(user)
        .bind(format!("user {user}"))
        .execute(conn)
        .await?;
    Ok(())
}
