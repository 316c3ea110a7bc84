//! Invitations: made, listed and revoked by operators.

use jiff::Timestamp;
use rookery_common::text::quantity;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{time_text, time_text_opt, to_u32};
use crate::db::types::{Actor, InvitationDraft, InvitationInfo};

impl Ledger {
    /// Keeps an invitation; answers with its number.
    pub async fn create_invitation(&self, draft: InvitationDraft, by: Actor) -> Result<i64> {
        transact!(self, "invitations", |conn| {
            let id: i64 = sqlx::query_scalar(
                "INSERT INTO invitations (hash, note, uses, created_by, created_at, expires_at)
                 VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
            )
            .bind(&draft.hash.0[..])
            .bind(&draft.note)
            .bind(i64::from(draft.uses))
            .bind(&by.name)
            .bind(by.at.as_millisecond())
            .bind(draft.expires_at.map(Timestamp::as_millisecond))
            .fetch_one(&mut *conn)
            .await?;
            let uses = quantity(draft.uses, "use");
            let detail = if draft.note.is_empty() {
                uses
            } else {
                format!("{uses}: {}", draft.note)
            };
            by.note(conn, Action::CreateInvitation, &id.to_string(), &detail)
                .await?;
            Ok(id)
        })
    }

    /// All invitations, oldest first.
    pub async fn invitations(&self) -> Result<Vec<InvitationInfo>> {
        read!(self, "invitations", |conn| async {
            let rows: Vec<Row> = sqlx::query_as(
                "SELECT i.id, i.note, i.uses, i.created_by, i.created_at, i.expires_at, i.revoked_at,
                   (SELECT count(*) FROM invitation_uses u WHERE u.invitation_id = i.id) AS used
                 FROM invitations i ORDER BY i.id",
            )
            .fetch_all(conn)
            .await?;
            rows.into_iter()
                .map(|row| {
                    Ok(InvitationInfo {
                        id: row.id,
                        note: row.note,
                        uses: to_u32("uses", row.uses)?,
                        used: to_u32("uses", row.used)?,
                        created_by: row.created_by,
                        created_at: time_text(row.created_at)?,
                        expires_at: time_text_opt(row.expires_at)?,
                        revoked_at: time_text_opt(row.revoked_at)?,
                    })
                })
                .collect()
        })
    }

    pub async fn revoke_invitation(&self, invitation: i64, by: Actor) -> Result<()> {
        transact!(self, "invitations", |conn| {
            let done = sqlx::query(
                "UPDATE invitations SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1",
            )
            .bind(invitation)
            .bind(by.at.as_millisecond())
            .execute(&mut *conn)
            .await?;
            if done.rows_affected() == 0 {
                let missing = format!("invitation number {invitation}");
                return Err(DbError::NotFound(missing));
            }
            by.note(conn, Action::RevokeInvitation, &invitation.to_string(), "")
                .await
        })
    }
}

#[derive(FromRow)]
struct Row {
    id: i64,
    note: String,
    uses: i64,
    used: i64,
    created_by: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}
