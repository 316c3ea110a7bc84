//! Users, tokens, contributors, workers.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::people::{ContributorInfo, Scope};
use sqlx::{AnyConnection, FromRow};

use super::rows::{time_text, time_text_opt, to_count, to_u32, unreadable};
use super::{operator_log, runs};
use crate::store::error::{Result, StoreError};
use crate::store::model::{
    ActiveWorkers, Principal, Pulse, Standing, TOKENS, TokenCounts, TokenDraft, TokenInfo,
    UserDraft, UserInfo, WorkerInfo,
};
use crate::tokens::TokenHash;

/// How long after its last sign of life a worker counts as active.
const ACTIVE: SignedDuration = SignedDuration::from_mins(10);

fn scope_names(scopes: &[Scope]) -> String {
    scopes
        .iter()
        .map(|scope| scope.name())
        .collect::<Vec<_>>()
        .join(" ")
}

fn parse_scopes(names: &str) -> Result<Vec<Scope>> {
    names
        .split_whitespace()
        .map(|name| Scope::from_name(name).ok_or_else(|| unreadable("scope", &name)))
        .collect()
}

pub(super) async fn create(
    conn: &mut AnyConnection,
    draft: UserDraft,
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
    insert_token(conn, user, &draft.token, now).await?;
    Ok(UserId(user))
}

pub(super) async fn add_token(
    conn: &mut AnyConnection,
    user: String,
    token: TokenDraft,
    now: Timestamp,
) -> Result<()> {
    let id = id_of(conn, &user).await?;
    insert_token(conn, id, &token, now).await.map(drop)
}

pub(super) async fn issue(
    conn: &mut AnyConnection,
    user: UserId,
    token: TokenDraft,
    now: Timestamp,
) -> Result<i64> {
    insert_token(conn, user.0, &token, now).await
}

async fn insert_token(
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

pub(super) async fn id_of(conn: &mut AnyConnection, user: &str) -> Result<i64> {
    sqlx::query_scalar("SELECT id FROM users WHERE lower(name) = lower($1)")
        .bind(user)
        .fetch_optional(conn)
        .await?
        .ok_or_else(|| StoreError::NotFound(format!("user {user:?}")))
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

pub(super) async fn tokens(conn: &mut AnyConnection, user: &str) -> Result<Vec<TokenInfo>> {
    let user = id_of(conn, user).await?;
    tokens_of(conn, user).await
}

pub(super) async fn tokens_of(conn: &mut AnyConnection, user: i64) -> Result<Vec<TokenInfo>> {
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

pub(super) async fn token(
    conn: &mut AnyConnection,
    user: UserId,
    token: i64,
) -> Result<Option<TokenInfo>> {
    let row: Option<TokenRow> = sqlx::query_as(
        "SELECT t.id, u.name, t.machine, t.scopes, t.created_at, t.revoked_at
         FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.id = $1 AND t.user_id = $2",
    )
    .bind(token)
    .bind(user.0)
    .fetch_optional(conn)
    .await?;
    row.map(TokenRow::into_info).transpose()
}

pub(super) async fn token_counts(
    conn: &mut AnyConnection,
    user: UserId,
    since: Timestamp,
) -> Result<TokenCounts> {
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
}

pub(super) async fn revoke(
    conn: &mut AnyConnection,
    token: i64,
    actor: String,
    now: Timestamp,
) -> Result<()> {
    let done = sqlx::query("UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1")
        .bind(token)
        .bind(now.as_millisecond())
        .execute(&mut *conn)
        .await?;
    if done.rows_affected() == 0 {
        return Err(StoreError::NotFound(format!("token number {token}")));
    }
    operator_log::write(conn, &actor, "revoke-token", &token.to_string(), "", now).await
}

pub(super) async fn rotate(
    conn: &mut AnyConnection,
    old: i64,
    new: TokenDraft,
    actor: String,
    now: Timestamp,
) -> Result<i64> {
    let user =
        sqlx::query_scalar("SELECT user_id FROM tokens WHERE id = $1 AND revoked_at IS NULL")
            .bind(old)
            .fetch_optional(&mut *conn)
            .await?;
    let user = user.ok_or_else(|| StoreError::Conflict(format!("token {old} is not valid")))?;
    let id = insert_token(conn, user, &new, now).await?;
    revoke(conn, old, actor, now).await?;
    Ok(id)
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
        Standing::Good => "unblock-user",
        Standing::Blocked => "block-user",
    };
    operator_log::write(conn, &actor, action, &user, "", now).await
}

/// Whether the database answers.
pub(super) async fn ping(conn: &mut AnyConnection) -> Result<()> {
    sqlx::query("SELECT 1 FROM users LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}

#[derive(FromRow)]
struct PrincipalRow {
    id: i64,
    hash: Vec<u8>,
    user_id: i64,
    name: String,
    scopes: String,
    blocked: i64,
}

pub(super) async fn principal(
    conn: &mut AnyConnection,
    token: &TokenHash,
) -> Result<Option<Principal>> {
    let row: Option<PrincipalRow> = sqlx::query_as(
        "SELECT t.id, t.hash, t.user_id, u.name, t.scopes, u.blocked
         FROM tokens t JOIN users u ON u.id = t.user_id
         WHERE t.hash = $1 AND t.revoked_at IS NULL",
    )
    .bind(&token.0[..])
    .fetch_optional(conn)
    .await?;
    // The index has found it; what it found is compared in a time that tells nothing.
    let same = |row: &PrincipalRow| {
        <[u8; 32]>::try_from(&row.hash[..]).is_ok_and(|hash| TokenHash(hash) == *token)
    };
    row.filter(same)
        .map(|row| {
            let standing = if row.blocked != 0 {
                Standing::Blocked
            } else {
                Standing::Good
            };
            let scopes = parse_scopes(&row.scopes)?;
            Ok(Principal {
                user: UserId(row.user_id),
                name: row.name,
                token: row.id,
                scopes,
                standing,
            })
        })
        .transpose()
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

#[derive(FromRow)]
struct ContributorRow {
    name: String,
    games: i64,
    positions: i64,
    active_workers: i64,
    last_seen: Option<i64>,
    created_at: i64,
}

pub(super) async fn contributors(
    conn: &mut AnyConnection,
    run: Option<&RunName>,
    now: Timestamp,
) -> Result<Vec<ContributorInfo>> {
    let run = match run {
        Some(run) => Some(runs::id_of(conn, run).await?),
        None => None,
    };
    let rows: Vec<ContributorRow> = sqlx::query_as(
        "SELECT u.name, u.created_at, CAST(sum(c.games) AS BIGINT) AS games,
           CAST(sum(c.positions) AS BIGINT) AS positions,
           (SELECT count(*) FROM workers w WHERE w.user_id = u.id AND w.last_seen >= $2)
             AS active_workers,
           (SELECT max(last_seen) FROM workers w WHERE w.user_id = u.id) AS last_seen
         FROM credits c JOIN users u ON u.id = c.user_id
         WHERE $1 IS NULL OR c.run_id = $1
         GROUP BY u.id ORDER BY sum(c.positions) DESC, u.name",
    )
    .bind(run)
    .bind((now - ACTIVE).as_millisecond())
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ContributorInfo {
                name: row.name,
                games: to_count(row.games),
                positions: to_count(row.positions),
                active_workers: to_u32("number of workers", row.active_workers)?,
                last_seen: time_text_opt(row.last_seen)?,
                joined_at: time_text(row.created_at)?,
            })
        })
        .collect()
}

pub(super) async fn pulse(conn: &mut AnyConnection, now: Timestamp) -> Result<Pulse> {
    let open_leases: i64 =
        sqlx::query_scalar("SELECT count(*) FROM jobs WHERE state = 'open' AND expires_at > $1")
            .bind(now.as_millisecond())
            .fetch_one(&mut *conn)
            .await?;
    let (open_audits, quarantined, pairs_wanted): (i64, i64, i64) = sqlx::query_as(
        "SELECT
             (SELECT count(*) FROM audits WHERE state = 'open'),
             (SELECT count(*) FROM quarantines q WHERE quarantined <> 0 AND id =
                 (SELECT max(id) FROM quarantines WHERE user_id = q.user_id)),
             (SELECT CAST(coalesce(sum(pair_limit - pairs_0 - pairs_1 - pairs_2 - pairs_3 - pairs_4), 0) AS BIGINT)
                 FROM matches WHERE status = 'open')",
    )
    .fetch_one(&mut *conn)
    .await?;
    let workers: Vec<(String, i64)> = sqlx::query_as(
        "SELECT backend, count(*) FROM workers WHERE last_seen >= $1 GROUP BY backend",
    )
    .bind((now - ACTIVE).as_millisecond())
    .fetch_all(conn)
    .await?;
    Ok(Pulse {
        open_leases: to_count(open_leases),
        workers: workers
            .into_iter()
            .map(|(backend, count)| (backend, to_count(count)))
            .collect(),
        open_audits: to_count(open_audits),
        quarantined: to_count(quarantined),
        pairs_wanted: to_count(pairs_wanted),
    })
}

#[derive(FromRow)]
struct WorkerRow {
    contributor: String,
    name: String,
    backend: String,
    version: String,
    evals_per_second: f64,
    job_kind: Option<String>,
    last_seen: i64,
}

pub(super) async fn workers(
    conn: &mut AnyConnection,
    since: Timestamp,
    limit: u32,
) -> Result<ActiveWorkers> {
    let (all, evals_per_second): (i64, f64) = sqlx::query_as(
        "SELECT count(*), CAST(coalesce(sum(evals_per_second), 0) AS DOUBLE PRECISION)
         FROM workers WHERE last_seen >= $1",
    )
    .bind(since.as_millisecond())
    .fetch_one(&mut *conn)
    .await?;
    let last_heard = last_heard(conn, since, limit).await?;
    Ok(ActiveWorkers {
        all: to_count(all),
        evals_per_second,
        last_heard,
    })
}

async fn last_heard(
    conn: &mut AnyConnection,
    since: Timestamp,
    limit: u32,
) -> Result<Vec<WorkerInfo>> {
    let rows: Vec<WorkerRow> = sqlx::query_as(
        "SELECT u.name AS contributor, w.name, w.backend, w.version, w.evals_per_second,
           w.job_kind, w.last_seen
         FROM workers w JOIN users u ON u.id = w.user_id
         WHERE w.last_seen >= $1 ORDER BY w.last_seen DESC, w.name LIMIT $2",
    )
    .bind(since.as_millisecond())
    .bind(i64::from(limit))
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(WorkerInfo {
                contributor: row.contributor,
                name: row.name,
                backend: row.backend,
                version: row.version,
                evals_per_second: row.evals_per_second as f32,
                job_kind: row
                    .job_kind
                    .and_then(|kind| rookery_common::protocol::jobs::WorkKind::from_name(&kind)),
                last_seen: time_text(row.last_seen)?,
            })
        })
        .collect()
}
