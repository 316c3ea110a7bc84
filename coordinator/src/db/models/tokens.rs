//! Tokens: made, listed, revoked.

use jiff::Timestamp;
use rookery_common::ids::UserId;
use rookery_common::protocol::people::Scope;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::conditions::is_audit_token;
use crate::db::models::operator_log::Action;
use crate::db::models::users;
use crate::db::sql::ledger::{Ledger, read, transact, transact_principals};
use crate::db::sql::rows::{parse, time_text, time_text_opt, to_count};
use crate::db::types::{Actor, Principal, TOKENS, TokenCounts, TokenDraft, TokenInfo};

impl Ledger {
    pub async fn add_token(&self, user: &str, token: TokenDraft, by: Actor) -> Result<()> {
        let user = user.to_owned();
        transact!(self, "tokens", |conn| {
            let user = users::id_of(conn, &user).await?;
            enter(conn, user, &token, &by).await.map(drop)
        })
    }

    /// The tokens of a user, as [`tokens_of`](Self::tokens_of) gives them.
    pub async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>> {
        read!(self, "tokens", |conn| async {
            let user = users::id_of(conn, user).await?;
            of_user(conn, user).await
        })
    }

    /// The tokens of a user by number, valid ones first and of these the newest, then revoked ones:
    /// twice as many as may be valid at most.
    pub async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>> {
        read!(self, "tokens", |conn| of_user(conn, user.0))
    }

    /// One token of a user, also a revoked one.
    pub async fn token(&self, user: UserId, token: i64) -> Result<Option<TokenInfo>> {
        read!(self, "tokens", |conn| async {
            let row: Option<TokenRow> = sqlx::query_as(
                "SELECT t.id, u.name, t.machine, t.scopes, t.created_at, t.revoked_at
                 FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.id = $1 AND t.user_id = $2",
            )
            .bind(token)
            .bind(user.0)
            .fetch_optional(conn)
            .await?;
            row.map(TokenRow::into_info).transpose()
        })
    }

    /// How many tokens of a user are valid, and how many were made after a moment.
    pub async fn token_counts(&self, user: UserId, since: Timestamp) -> Result<TokenCounts> {
        read!(self, "tokens", |conn| async {
            let (valid, made): (i64, i64) = sqlx::query_as(
                "SELECT (SELECT count(*) FROM tokens WHERE user_id = $1 AND revoked_at IS NULL),
                   (SELECT count(*) FROM tokens WHERE user_id = $1 AND created_at > $2)",
            )
            .bind(user.0)
            .bind(since.as_millisecond())
            .fetch_one(conn)
            .await?;
            Ok(TokenCounts {
                valid: to_count(valid),
                made: to_count(made),
            })
        })
    }

    /// Gives the user of a token another one; answers with its number.
    /// [`DbError::Revoked`] if the token that asks is not good any more.
    pub async fn issue_token(
        &self,
        by: &Principal,
        token: TokenDraft,
        now: Timestamp,
    ) -> Result<i64> {
        let by = by.clone();
        transact!(self, "tokens", |conn| {
            must_be_good(conn, &by).await?;
            enter(conn, by.user.0, &token, &Actor::new(&by.name, now)).await
        })
    }

    /// Changes a token of the user of another token, or that one itself, for a new one; answers with
    /// its number.
    pub async fn change_token(
        &self,
        by: &Principal,
        old: i64,
        new: TokenDraft,
        now: Timestamp,
    ) -> Result<i64> {
        let by = by.clone();
        transact_principals!(self, "tokens", |conn| {
            must_be_good(conn, &by).await?;
            rotate(conn, old, new, &Actor::new(&by.name, now)).await
        })
    }

    /// Revokes a token and gives its user another; answers with its number.
    pub async fn rotate_token(&self, old: i64, new: TokenDraft, by: Actor) -> Result<i64> {
        transact_principals!(self, "tokens", |conn| rotate(conn, old, new, &by).await)
    }

    pub async fn revoke_token(&self, token: i64, by: Actor) -> Result<()> {
        transact_principals!(self, "tokens", |conn| revoke(conn, token, &by).await)
    }

    pub async fn note_use(&self, token: i64, now: Timestamp) -> Result<()> {
        transact!(self, "tokens", |conn| {
            sqlx::query("UPDATE tokens SET used_at = $2 WHERE id = $1")
                .bind(token)
                .bind(now.as_millisecond())
                .execute(conn)
                .await?;
            Ok(())
        })
    }
}

fn scope_names(scopes: &[Scope]) -> String {
    scopes
        .iter()
        .map(|scope| scope.name())
        .collect::<Vec<_>>()
        .join(" ")
}

pub(crate) fn parse_scopes(names: &str) -> Result<Vec<Scope>> {
    names
        .split_whitespace()
        .map(|name| parse("scope", name))
        .collect()
}

async fn enter(conn: &mut AnyConnection, user: i64, token: &TokenDraft, by: &Actor) -> Result<i64> {
    let id = insert(conn, user, token, by.at).await?;
    let which = format!("token {id}");
    note(conn, user, token, &which, Action::AddToken, by).await?;
    Ok(id)
}

/// Refuses a token that was revoked, or whose user was blocked, since the request came: one that
/// makes another is not outlived by it.
async fn must_be_good(conn: &mut AnyConnection, by: &Principal) -> Result<()> {
    let good: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM tokens t JOIN users u ON u.id = t.user_id
         WHERE t.id = $1 AND t.revoked_at IS NULL AND u.blocked = 0",
    )
    .bind(by.token)
    .fetch_one(conn)
    .await?;
    if good == 0 {
        return Err(DbError::Revoked);
    }
    Ok(())
}

/// Whether a token of these scopes may do no more than contribute: anybody may have as many as there are names.
fn are_plain(scopes: &[Scope]) -> bool {
    scopes.iter().all(|scope| *scope == Scope::Contribute)
}

/// Notes a new token in the operator log, unless its owner has made it and it may do no more than
/// contribute: to register, or to add a machine, is no operator's act.
pub(crate) async fn note(
    conn: &mut AnyConnection,
    user: i64,
    token: &TokenDraft,
    which: &str,
    action: Action,
    by: &Actor,
) -> Result<()> {
    let owner = users::name_of(conn, user).await?;
    if by.name == owner && are_plain(&token.scopes) {
        return Ok(());
    }
    let detail = format!("{which}: {}", scope_names(&token.scopes));
    by.note(conn, action, &owner, &detail).await
}

/// Adds a token to those of a user; gives its number.
pub(crate) async fn insert(
    conn: &mut AnyConnection,
    user: i64,
    token: &TokenDraft,
    now: Timestamp,
) -> Result<i64> {
    let id = sqlx::query_scalar(
        "INSERT INTO tokens (user_id, hash, machine, scopes, created_at)
         VALUES ($1, $2, $3, $4, $5) RETURNING id",
    )
    .bind(user)
    .bind(&token.hash.0[..])
    .bind(&token.machine)
    .bind(scope_names(&token.scopes))
    .bind(now.as_millisecond())
    .fetch_one(conn)
    .await?;
    Ok(id)
}

#[derive(FromRow)]
struct TokenRow {
    id: i64,
    name: String,
    machine: String,
    scopes: String,
    created_at: i64,
    revoked_at: Option<i64>,
}

impl TokenRow {
    fn into_info(self) -> Result<TokenInfo> {
        Ok(TokenInfo {
            id: self.id,
            user: self.name,
            machine: self.machine,
            scopes: parse_scopes(&self.scopes)?,
            created_at: time_text(self.created_at)?,
            revoked_at: time_text_opt(self.revoked_at)?,
        })
    }
}

async fn of_user(conn: &mut AnyConnection, user: i64) -> Result<Vec<TokenInfo>> {
    let rows: Vec<TokenRow> = sqlx::query_as(
        "SELECT t.id, u.name, t.machine, t.scopes, t.created_at, t.revoked_at
         FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.user_id = $1
         ORDER BY t.revoked_at IS NOT NULL, t.id DESC LIMIT $2",
    )
    .bind(user)
    .bind(i64::from(2 * TOKENS))
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(TokenRow::into_info).collect()
}

/// Revokes a token. It is noted in the operator log unless its owner does it and it may do no more than contribute.
async fn revoke(conn: &mut AnyConnection, token: i64, by: &Actor) -> Result<()> {
    let revoked: Option<(i64, String)> = sqlx::query_as(
        "UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1
         RETURNING user_id, scopes",
    )
    .bind(token)
    .bind(by.at.as_millisecond())
    .fetch_optional(&mut *conn)
    .await?;
    let (user, scopes) =
        revoked.ok_or_else(|| DbError::NotFound(format!("token number {token}")))?;
    let owner = users::name_of(conn, user).await?;
    if by.name == owner && are_plain(&parse_scopes(&scopes)?) {
        return Ok(());
    }
    by.note(conn, Action::RevokeToken, &token.to_string(), "")
        .await
}

/// Whether a user still has a token with the scope `audit`: the one by which a chunk was sent may have
/// been revoked while it was on its way.
pub(crate) async fn may_audit(conn: &mut AnyConnection, user: UserId) -> Result<bool> {
    let tokens: i64 = sqlx::query_scalar(concat!(
        "SELECT count(*) FROM tokens t JOIN users u ON u.id = t.user_id AND u.blocked = 0
         WHERE t.user_id = $1 AND ",
        is_audit_token!("t"),
    ))
    .bind(user.0)
    .fetch_one(conn)
    .await?;
    Ok(tokens > 0)
}

async fn rotate(conn: &mut AnyConnection, old: i64, new: TokenDraft, by: &Actor) -> Result<i64> {
    let user =
        sqlx::query_scalar("SELECT user_id FROM tokens WHERE id = $1 AND revoked_at IS NULL")
            .bind(old)
            .fetch_optional(&mut *conn)
            .await?;
    let user = user.ok_or_else(|| DbError::Conflict(format!("token {old} is not valid")))?;
    let id = insert(conn, user, &new, by.at).await?;
    revoke(conn, old, by).await?;
    let which = format!("token {id} in place of {old}");
    note(conn, user, &new, &which, Action::RotateToken, by).await?;
    Ok(id)
}
