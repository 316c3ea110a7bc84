//! What operators did: the table `audit`, which has nothing to do with `audits`.

use jiff::Timestamp;
use rookery_common::protocol::people::OperatorAct;
use sqlx::{AnyConnection, FromRow};

use super::rows::time_text;
use crate::store::error::Result;

/// What was done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    AddAnchor,
    AddPuzzles,
    AddRunKey,
    AddToken,
    AdoptStore,
    Archive,
    BlockUser,
    ChangeRun,
    Clear,
    CreateInvitation,
    CreateRun,
    CreateUser,
    Hold,
    LetGo,
    OpenMatch,
    Quarantine,
    RejectNetwork,
    ReopenLedger,
    RevokeInvitation,
    RevokeToken,
    RollBack,
    RotateToken,
    SetAnchor,
    SweepStore,
    UnblockUser,
}

impl Action {
    /// The name in the log, which is never edited: it stays what it is.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AddAnchor => "add-anchor",
            Self::AddPuzzles => "add-puzzles",
            Self::AddRunKey => "add-run-key",
            Self::AddToken => "add-token",
            Self::AdoptStore => "adopt-store",
            Self::Archive => "archive",
            Self::BlockUser => "block-user",
            Self::ChangeRun => "change-run",
            Self::Clear => "clear",
            Self::CreateInvitation => "create-invitation",
            Self::CreateRun => "create-run",
            Self::CreateUser => "create-user",
            Self::Hold => "hold",
            Self::LetGo => "let-go",
            Self::OpenMatch => "open-match",
            Self::Quarantine => "quarantine",
            Self::RejectNetwork => "reject-network",
            Self::ReopenLedger => "reopen-ledger",
            Self::RevokeInvitation => "revoke-invitation",
            Self::RevokeToken => "revoke-token",
            Self::RollBack => "roll-back",
            Self::RotateToken => "rotate-token",
            Self::SetAnchor => "set-anchor",
            Self::SweepStore => "sweep-store",
            Self::UnblockUser => "unblock-user",
        }
    }
}

/// An act to be noted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Act<'a> {
    pub(super) actor: &'a str,
    pub(super) action: Action,
    /// On what: the name or the number of a user, run, token, invitation, chunk, store or
    /// database.
    pub(super) subject: &'a str,
    /// What else is to be known; nothing if empty.
    pub(super) detail: &'a str,
}

pub(super) async fn write(conn: &mut AnyConnection, act: Act<'_>, now: Timestamp) -> Result<()> {
    sqlx::query(
        "INSERT INTO audit (at, actor, action, subject, detail) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(now.as_millisecond())
    .bind(act.actor)
    .bind(act.action.name())
    .bind(act.subject)
    .bind(act.detail)
    .execute(conn)
    .await?;
    Ok(())
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

/// Entries before one, newest first.
pub(super) async fn page(
    conn: &mut AnyConnection,
    before: Option<i64>,
    limit: u32,
) -> Result<Vec<OperatorAct>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT id, at, actor, action, subject, detail FROM audit
         WHERE id < $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(before.unwrap_or(i64::MAX))
    .bind(i64::from(limit))
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(OperatorAct {
                id: row.id,
                at: time_text(row.at)?,
                actor: row.actor,
                action: row.action,
                subject: row.subject,
                detail: row.detail,
            })
        })
        .collect()
}
