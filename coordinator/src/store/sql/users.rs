//! Users.

use jiff::Timestamp;
use rookery_common::ids::UserId;
use sqlx::{AnyConnection, FromRow};

use super::operator_log::{self, Act, Action};
use super::rows::{time_text, time_text_opt, to_count};
use super::tokens;
use crate::store::error::{Result, StoreError};
use crate::store::model::{Standing, UserDraft, UserInfo};

pub(super) async fn create(
    conn: &mut AnyConnection,
    draft: UserDraft,
    actor: String,
    now: Timestamp,
) -> Result<UserId> {
    let inserted = sqlx::query_scalar(
        "INSERT INTO users (name, created_at) VALUES ($1, $2)
         ON CONFLICT DO NOTHING RETURNING id",
    )
    .bind(&draft.name)
    .bind(now.as_millisecond())
    .fetch_optional(&mut *conn)
    .await?;
    let user = inserted.ok_or(StoreError::NameTaken(draft.name))?;
    let token = tokens::insert(conn, user, &draft.token, now).await?;
    let which = format!("token {token}");
    let made = (&*actor, Action::CreateUser);
    tokens::note(conn, user, &draft.token, &which, made, now).await?;
    Ok(UserId(user))
}

pub(super) async fn id_of(conn: &mut AnyConnection, user: &str) -> Result<i64> {
    sqlx::query_scalar("SELECT id FROM users WHERE lower(name) = lower($1)")
        .bind(user)
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| StoreError::NotFound(format!("user {user:?}")))
}

pub(super) async fn name_of(conn: &mut AnyConnection, user: i64) -> Result<String> {
    let name = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
        .bind(user)
        .fetch_one(conn)
        .await?;
    Ok(name)
}

pub(super) async fn set_standing(
    conn: &mut AnyConnection,
    user: String,
    standing: Standing,
    actor: String,
    now: Timestamp,
) -> Result<()> {
    let id = id_of(conn, &user).await?;
    sqlx::query("UPDATE users SET blocked = $2 WHERE id = $1")
        .bind(id)
        .bind(i64::from(standing == Standing::Blocked))
        .execute(&mut *conn)
        .await?;
    let action = match standing {
        Standing::Good => Action::UnblockUser,
        Standing::Blocked => Action::BlockUser,
    };
    let act = Act {
        actor: &actor,
        action,
        subject: &user,
        detail: "",
    };
    operator_log::write(conn, act, now).await
}

/// Whether the database answers.
pub(super) async fn ping(conn: &mut AnyConnection) -> Result<()> {
    sqlx::query("SELECT 1 FROM users LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}

#[derive(FromRow)]
struct UserRow {
    name: String,
    created_at: i64,
    blocked: i64,
    quarantined: i64,
    tokens: i64,
    games: i64,
    positions: i64,
    last_seen: Option<i64>,
}

pub(super) async fn list(conn: &mut AnyConnection) -> Result<Vec<UserInfo>> {
    let rows: Vec<UserRow> = sqlx::query_as(
        "SELECT u.name, u.created_at, CAST(u.blocked AS BIGINT) AS blocked,
           coalesce((SELECT CAST(quarantined AS BIGINT) FROM quarantines WHERE user_id = u.id
             ORDER BY id DESC LIMIT 1), 0) AS quarantined,
           (SELECT count(*) FROM tokens WHERE user_id = u.id AND revoked_at IS NULL) AS tokens,
           (SELECT CAST(coalesce(sum(games), 0) AS BIGINT) FROM credits WHERE user_id = u.id) AS games,
           (SELECT CAST(coalesce(sum(positions), 0) AS BIGINT) FROM credits WHERE user_id = u.id)
             AS positions,
           (SELECT max(last_seen) FROM workers WHERE user_id = u.id) AS last_seen
         FROM users u ORDER BY u.name",
    )
    .fetch_all(conn)
    .await?;
    let info = |row: UserRow| {
        Ok(UserInfo {
            name: row.name,
            created_at: time_text(row.created_at)?,
            blocked: row.blocked != 0,
            quarantined: row.quarantined != 0,
            tokens: to_count(row.tokens),
            games: to_count(row.games),
            positions: to_count(row.positions),
            last_seen: time_text_opt(row.last_seen)?,
        })
    };
    rows.into_iter().map(info).collect()
}
