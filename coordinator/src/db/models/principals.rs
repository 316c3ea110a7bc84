//! Who tokens belong to, and what their bearers may do.

use jiff::Timestamp;
use rookery_common::ids::UserId;
use rookery_common::protocol::trust::QuarantineInfo;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::tokens::parse_scopes;
use crate::db::models::worker_blocks;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::time_text;
use crate::db::types::{Principal, Restrictions, Standing};
use crate::tokens::TokenHash;

impl Ledger {
    /// Who a token belongs to, unless it is unknown or revoked. What another process has changed in
    /// the last two seconds may be missing.
    pub async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>> {
        match self.principals.get(token) {
            Some(principal) => Ok(Some(principal)),
            None => self.principal_now(token).await,
        }
    }

    /// The same as it stands in the ledger now.
    pub async fn principal_now(&self, token: &TokenHash) -> Result<Option<Principal>> {
        let asked = self.principals.invalidate_one(token);
        let principal = read!(self, "tokens", |conn| principal(conn, token))?;
        if let Some(principal) = &principal {
            self.principals.store(token, principal, asked);
        }
        Ok(principal)
    }
}

#[derive(FromRow)]
struct PrincipalRow {
    id: i64,
    hash: Vec<u8>,
    user_id: i64,
    name: String,
    scopes: String,
    used_at: Option<i64>,
    blocked: i64,
    quarantine_reason: Option<String>,
    quarantine_actor: Option<String>,
    quarantined_at: Option<i64>,
    held: i64,
    blocked_workers: i64,
}

impl PrincipalRow {
    fn quarantine(&mut self) -> Result<Option<QuarantineInfo>> {
        let (reason, actor) = (self.quarantine_reason.take(), self.quarantine_actor.take());
        let Some(((reason, by), at)) = reason.zip(actor).zip(self.quarantined_at) else {
            return Ok(None);
        };
        let since = time_text(at)?;
        Ok(Some(QuarantineInfo { reason, by, since }))
    }
}

async fn principal(conn: &mut AnyConnection, token: &TokenHash) -> Result<Option<Principal>> {
    let row: Option<PrincipalRow> = sqlx::query_as(
        "SELECT t.id, t.hash, t.user_id, u.name, t.scopes, t.used_at, u.blocked,
           q.reason AS quarantine_reason, q.actor AS quarantine_actor, q.at AS quarantined_at,
           (SELECT count(*) FROM (SELECT 1 FROM chunks c WHERE c.user_id = t.user_id
             AND c.held <> 0 LIMIT 1) AS any_held) AS held,
           (SELECT count(*) FROM worker_blocks b WHERE b.user_id = t.user_id) AS blocked_workers
         FROM tokens t JOIN users u ON u.id = t.user_id
           LEFT JOIN quarantines q ON q.quarantined <> 0
             AND q.id = (SELECT max(l.id) FROM quarantines l WHERE l.user_id = t.user_id)
         WHERE t.hash = $1 AND t.revoked_at IS NULL",
    )
    .bind(&token.0[..])
    .fetch_optional(&mut *conn)
    .await?;
    // The index has found it; what it found is compared in a time that tells nothing.
    let same = |row: &PrincipalRow| {
        <[u8; 32]>::try_from(&row.hash[..]).is_ok_and(|hash| TokenHash(hash) == *token)
    };
    let Some(mut row) = row.filter(same) else {
        return Ok(None);
    };
    let standing = if row.blocked != 0 {
        Standing::Blocked
    } else {
        Standing::Good
    };
    let mut restrictions = Restrictions {
        quarantine: row.quarantine()?,
        has_held_chunks: row.held > 0,
        workers: Vec::new(),
    };
    if row.blocked_workers > 0 {
        restrictions.workers = worker_blocks::of_user(conn, row.user_id).await?;
    }
    Ok(Some(Principal {
        user: UserId(row.user_id),
        token: row.id,
        scopes: parse_scopes(&row.scopes)?,
        used_at: row
            .used_at
            .and_then(|at| Timestamp::from_millisecond(at).ok()),
        standing,
        restrictions,
        name: row.name,
    }))
}
