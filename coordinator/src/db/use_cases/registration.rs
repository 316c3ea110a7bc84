//! New users: made by an operator, by themselves, or by an invitation.

use jiff::Timestamp;
use rookery_common::ids::UserId;
use rookery_common::protocol::user_name::skeleton;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::{tokens, users};
use crate::db::sql::ledger::{Ledger, transact};
use crate::db::types::{Actor, UserDraft};
use crate::tokens::TokenHash;

impl Ledger {
    /// Creates a user with a first token. The operator log names the actor, unless the user
    /// registers without help and the token may only contribute; so it is with every new token.
    pub async fn create_user(&self, user: UserDraft, by: Actor) -> Result<UserId> {
        transact!(self, "users", |conn| create(conn, user, &by).await)
    }

    /// Creates a user with a first token by an invitation, which then has a use less.
    pub async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId> {
        transact!(self, "invitations", |conn| {
            let terms: Option<Terms> = sqlx::query_as(
                "SELECT i.id, i.uses, i.expires_at, i.revoked_at,
                   (SELECT count(*) FROM invitation_uses u WHERE u.invitation_id = i.id) AS used
                 FROM invitations i WHERE i.hash = $1",
            )
            .bind(&invitation.0[..])
            .fetch_optional(&mut *conn)
            .await?;
            let terms = terms.ok_or(DbError::Invitation("is not known here"))?;
            if terms.revoked_at.is_some() {
                return Err(DbError::Invitation("was revoked"));
            }
            if terms
                .expires_at
                .is_some_and(|at| at <= now.as_millisecond())
            {
                return Err(DbError::Invitation("has expired"));
            }
            if terms.used >= terms.uses {
                return Err(DbError::Invitation("was used as often as it can be"));
            }
            let by = Actor::new(&user.name, now);
            let user = create(conn, user, &by).await?;
            sqlx::query(
                "INSERT INTO invitation_uses (invitation_id, user_id, used_at) VALUES ($1, $2, $3)",
            )
            .bind(terms.id)
            .bind(user.0)
            .bind(now.as_millisecond())
            .execute(conn)
            .await?;
            Ok(user)
        })
    }
}

async fn create(conn: &mut AnyConnection, draft: UserDraft, by: &Actor) -> Result<UserId> {
    let inserted = sqlx::query_scalar(
        "INSERT INTO users (name, skeleton, created_at, block) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING RETURNING id",
    )
    .bind(&draft.name)
    .bind(skeleton(&draft.name))
    .bind(by.at.as_millisecond())
    .bind(draft.block)
    .fetch_optional(&mut *conn)
    .await?;
    let Some(user) = inserted else {
        return Err(users::explain_name_conflict(conn, draft.name).await?);
    };
    let token = tokens::insert(conn, user, &draft.token, by.at).await?;
    let which = format!("token {token}");
    tokens::note(conn, user, &draft.token, &which, Action::CreateUser, by).await?;
    Ok(UserId(user))
}

#[derive(FromRow)]
struct Terms {
    id: i64,
    uses: i64,
    used: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}
