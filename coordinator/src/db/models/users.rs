//! Users.

use rookery_common::ids::UserId;
use rookery_common::protocol::user_name::skeleton;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::conditions::quarantined;
use crate::db::models::operator_log::{self, Action, Subject};
use crate::db::sql::ledger::{Ledger, read, transact_principals};
use crate::db::sql::rows::{time_text, time_text_opt, to_count};
use crate::db::types::{Actor, DELETED, Standing, UserChange, UserInfo};

impl Ledger {
    /// Blocks a user, ends the block, or gives the user another name.
    /// If somebody has that name, or one that looks like it, nothing is changed.
    pub async fn change_user(&self, user: &str, change: UserChange, by: Actor) -> Result<()> {
        let user = user.to_owned();
        transact_principals!(self, "users", |conn| {
            let id = id_of(conn, &user).await?;
            if let Some(standing) = change.standing {
                set_standing(conn, (id, &user), standing, &by).await?;
            }
            if let Some(name) = change.name {
                rename(conn, id, name, &by).await?;
            }
            Ok(())
        })
    }

    /// Deletes a user; answers with the number. Games, chunks and credit stay under a name made of the
    /// number; name, tokens and workers are gone, also from the operator log.
    pub async fn delete_user(&self, user: &str, by: Actor) -> Result<UserId> {
        let user = user.to_owned();
        transact_principals!(self, "users", |conn| delete(conn, user, &by).await)
    }

    /// All users, by name.
    pub async fn users(&self) -> Result<Vec<UserInfo>> {
        read!(self, "users", |conn| async {
            let rows: Vec<UserRow> = sqlx::query_as(concat!(
                "SELECT u.name, u.created_at, CAST(u.blocked AS BIGINT) AS blocked,
                   ",
                quarantined!("u.id"),
                " AS quarantined,
                   (SELECT count(*) FROM tokens WHERE user_id = u.id AND revoked_at IS NULL) AS tokens,
                   (SELECT CAST(coalesce(sum(games), 0) AS BIGINT) FROM credits WHERE user_id = u.id) AS games,
                   (SELECT CAST(coalesce(sum(positions), 0) AS BIGINT) FROM credits WHERE user_id = u.id)
                     AS positions,
                   (SELECT CAST(coalesce(sum(audits), 0) AS BIGINT) FROM credits WHERE user_id = u.id) AS audits,
                   (SELECT max(last_seen) FROM workers WHERE user_id = u.id) AS last_seen,
                   (SELECT max(used_at) FROM tokens WHERE user_id = u.id) AS used_at
                 FROM users u ORDER BY u.name",
            ))
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
                    audits: to_count(row.audits),
                    last_seen: time_text_opt(row.last_seen.max(row.used_at))?,
                })
            };
            rows.into_iter().map(info).collect()
        })
    }
}

/// Why nobody can have a name: another has it, or one that looks like it.
pub(crate) async fn explain_name_conflict(
    conn: &mut AnyConnection,
    name: String,
) -> Result<DbError> {
    let like: Option<String> = sqlx::query_scalar(
        "SELECT name FROM users WHERE skeleton = $1 AND lower(name) <> lower($2)",
    )
    .bind(skeleton(&name))
    .bind(&name)
    .fetch_optional(conn)
    .await?;
    Ok(match like {
        Some(like) => DbError::NameAlike { name, like },
        None => DbError::NameTaken(name),
    })
}

pub(crate) async fn id_of(conn: &mut AnyConnection, user: &str) -> Result<i64> {
    sqlx::query_scalar("SELECT id FROM users WHERE lower(name) = lower($1)")
        .bind(user)
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| DbError::NotFound(format!("user {user:?}")))
}

pub(crate) async fn name_of(conn: &mut AnyConnection, user: i64) -> Result<String> {
    let name = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
        .bind(user)
        .fetch_one(conn)
        .await?;
    Ok(name)
}

async fn set_standing(
    conn: &mut AnyConnection,
    (id, user): (i64, &str),
    standing: Standing,
    by: &Actor,
) -> Result<()> {
    sqlx::query("UPDATE users SET blocked = $2 WHERE id = $1")
        .bind(id)
        .bind(i64::from(standing == Standing::Blocked))
        .execute(&mut *conn)
        .await?;
    let action = match standing {
        Standing::Good => Action::UnblockUser,
        Standing::Blocked => Action::BlockUser,
    };
    by.note(conn, action, user, "").await
}

async fn rename(conn: &mut AnyConnection, id: i64, name: String, by: &Actor) -> Result<()> {
    let before = name_of(conn, id).await?;
    let other: Option<String> = sqlx::query_scalar(
        "SELECT name FROM users WHERE (skeleton = $1 OR lower(name) = lower($2)) AND id <> $3",
    )
    .bind(skeleton(&name))
    .bind(&name)
    .bind(id)
    .fetch_optional(&mut *conn)
    .await?;
    if other.is_some() {
        return Err(explain_name_conflict(conn, name).await?);
    }
    set_name(conn, id, &name).await?;
    let detail = format!("user {id} is now {name:?}");
    by.note_about(
        conn,
        Action::RenameUser,
        Subject::Renamed(id),
        &before,
        &detail,
    )
    .await
}

async fn set_name(conn: &mut AnyConnection, user: i64, name: &str) -> Result<()> {
    sqlx::query("UPDATE users SET name = $2, skeleton = $3 WHERE id = $1")
        .bind(user)
        .bind(name)
        .bind(skeleton(name))
        .execute(conn)
        .await?;
    Ok(())
}

/// What is emptied and removed of a user who is deleted: all that may name a person or a machine.
const FORGET: [&str; 6] = [
    "UPDATE users SET blocked = 1, block = NULL WHERE id = $1",
    "UPDATE tokens SET machine = '' WHERE user_id = $1",
    "UPDATE jobs SET worker = '' WHERE user_id = $1 AND worker <> ''",
    "DELETE FROM workers WHERE user_id = $1",
    "DELETE FROM worker_blocks WHERE user_id = $1",
    "DELETE FROM drift_findings WHERE user_id = $1",
];
/// Where the name of an operator stands as text.
const ACTORS: [&str; 3] = [
    "UPDATE quarantines SET actor = $2 WHERE lower(actor) = lower($1)",
    "UPDATE worker_blocks SET actor = $2 WHERE lower(actor) = lower($1)",
    "UPDATE invitations SET created_by = $2 WHERE lower(created_by) = lower($1)",
];

/// Deletes a user: games and what follows from them stay, by number.
async fn delete(conn: &mut AnyConnection, user: String, by: &Actor) -> Result<UserId> {
    let id = id_of(conn, &user).await?;
    let name = name_of(conn, id).await?;
    let number = format!("{DELETED}{id}");
    if name == number {
        return Err(DbError::Conflict(format!("user {id} is deleted already")));
    }
    if by.name == name {
        let detail = "a token cannot delete its own account: let another operator do it";
        return Err(DbError::Conflict(detail.to_owned()));
    }
    for statement in FORGET {
        sqlx::query(statement).bind(id).execute(&mut *conn).await?;
    }
    for statement in ACTORS {
        sqlx::query(statement)
            .bind(&name)
            .bind(&number)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query("UPDATE tokens SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(by.at.as_millisecond())
        .execute(&mut *conn)
        .await?;
    operator_log::remove_name(conn, id, &name).await?;
    set_name(conn, id, &number).await?;
    by.note(conn, Action::DeleteUser, &number, "").await?;
    Ok(UserId(id))
}

pub(crate) async fn ping(conn: &mut AnyConnection) -> Result<()> {
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
    audits: i64,
    last_seen: Option<i64>,
    used_at: Option<i64>,
}
