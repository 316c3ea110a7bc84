//! Contributors put into quarantine and cleared.

use std::collections::HashSet;

use rookery_common::ids::{Seed, UserId};
use rookery_common::protocol::trust::QuarantineInfo;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::Result;
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::operator_log::Action;
use crate::db::models::{audits, extra_audits, users};
use crate::db::sql::ledger::{Ledger, read, transact_principals};
use crate::db::sql::rows::time_text;
use crate::db::sql::statement::Statement;
use crate::db::types::{Actor, ChunkStatus, ExclusionEffects, ExclusionOrder};
use crate::db::use_cases::exclusions;

/// Who quarantines when no operator does.
pub(crate) const AUDITS: &str = "audits";
/// Contributors in quarantine that operators are told of, the latest.
const TOLD: i64 = 1_000;

impl Ledger {
    /// Contributors whom audits have put into quarantine, each with the reason.
    pub async fn quarantines_by_audits(&self) -> Result<Vec<(String, String)>> {
        read!(self, "quarantine", |conn| async {
            Ok(sqlx::query_as(
                "SELECT u.name, q.reason FROM quarantines q JOIN users u ON u.id = q.user_id
                 WHERE q.quarantined <> 0 AND q.actor = $1 AND q.id =
                   (SELECT max(id) FROM quarantines WHERE user_id = q.user_id)
                 ORDER BY q.id DESC LIMIT $2",
            )
            .bind(AUDITS)
            .bind(TOLD)
            .fetch_all(conn)
            .await?)
        })
    }

    /// Quarantines a contributor, all of whose chunks are then held, or clears one; `None`, which is not
    /// noted, if there is nothing to clear. Of somebody who is cleared audits go on where the quarantine
    /// has ended them, and `chance` draws some of the chunks that came in meanwhile.
    pub async fn quarantine(
        &self,
        user: &str,
        order: ExclusionOrder,
        chance: Seed,
        by: Actor,
    ) -> Result<Option<ExclusionEffects>> {
        let user = user.to_owned();
        transact_principals!(self, "quarantine", |conn| {
            let id = UserId(users::id_of(conn, &user).await?);
            if order.state == ChunkStatus::Counted && !is_held(conn, id).await? {
                return Ok(None);
            }
            let action = match order.state {
                ChunkStatus::Excluded => Action::Quarantine,
                ChunkStatus::Counted => Action::Clear,
            };
            by.note(conn, action, &user, &order.reason).await?;
            let standing = last_order(conn, id).await?;
            if let Some(ended) = standing.filter(|order| order.quarantined != 0)
                && order.state == ChunkStatus::Counted
            {
                audits::reopen(conn, id, ended.at, by.at).await?;
                extra_audits::sample_since(conn, id, ended.at, chance, by.at).await?;
            }
            self::order(conn, id, order, &by).await.map(Some)
        })
    }
}

/// Whether the last order on this contributor was a quarantine.
async fn is_quarantined(conn: &mut AnyConnection, user: UserId) -> Result<bool> {
    Ok(last_order(conn, user)
        .await?
        .is_some_and(|order| order.quarantined != 0))
}

/// Those of the contributors on whom the last order was a quarantine.
pub(crate) async fn list_quarantined(
    conn: &mut AnyConnection,
    users: &[i64],
) -> Result<HashSet<i64>> {
    if users.is_empty() {
        return Ok(HashSet::new());
    }
    let mut query = Statement::new(
        "SELECT q.user_id FROM quarantines q
         JOIN (SELECT max(id) AS id FROM quarantines WHERE user_id IN (",
    );
    query
        .bind_all(users)?
        .push(") GROUP BY user_id) AS last ON last.id = q.id WHERE q.quarantined <> 0");
    let users: Vec<(i64,)> = query.fetch_all(conn).await?;
    Ok(users.into_iter().map(|(user,)| user).collect())
}

#[derive(FromRow)]
struct OrderRow {
    quarantined: i64,
    reason: String,
    actor: String,
    at: i64,
}

async fn last_order(conn: &mut AnyConnection, user: UserId) -> Result<Option<OrderRow>> {
    Ok(sqlx::query_as(
        "SELECT quarantined, reason, actor, at FROM quarantines WHERE user_id = $1
         ORDER BY id DESC LIMIT 1",
    )
    .bind(user.0)
    .fetch_optional(conn)
    .await?)
}

/// Whether there is something to clear: a quarantine, or chunks that are held without one.
async fn is_held(conn: &mut AnyConnection, user: UserId) -> Result<bool> {
    let chunks: i64 =
        sqlx::query_scalar("SELECT count(*) FROM chunks WHERE user_id = $1 AND held <> 0")
            .bind(user.0)
            .fetch_one(&mut *conn)
            .await?;
    Ok(chunks > 0 || is_quarantined(conn, user).await?)
}

/// Quarantines a contributor, so that all of its chunks are held and none is audited any more, or
/// clears it, so that none is held. An order that would change nothing is not recorded.
pub(crate) async fn order(
    conn: &mut AnyConnection,
    user: UserId,
    order: ExclusionOrder,
    by: &Actor,
) -> Result<ExclusionEffects> {
    let quarantine = order.state == ChunkStatus::Excluded;
    if is_quarantined(conn, user).await? != quarantine {
        sqlx::query(
            "INSERT INTO quarantines (user_id, quarantined, reason, actor, at)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(user.0)
        .bind(i64::from(quarantine))
        .bind(&order.reason)
        .bind(&by.name)
        .bind(by.at.as_millisecond())
        .execute(&mut *conn)
        .await?;
    }
    if quarantine {
        audits::give_up(conn, user).await?;
    }
    exclusions::set(
        conn,
        ChunkSelection::Of(user),
        order.state,
        &order.reason,
        by.at,
    )
    .await
}

/// The quarantine that stands, if one does.
pub(crate) async fn standing(
    conn: &mut AnyConnection,
    user: UserId,
) -> Result<Option<QuarantineInfo>> {
    let order = last_order(conn, user).await?;
    let quarantine = |order: OrderRow| {
        Ok(QuarantineInfo {
            reason: order.reason,
            by: order.actor,
            since: time_text(order.at)?,
        })
    };
    order
        .filter(|order| order.quarantined != 0)
        .map(quarantine)
        .transpose()
}
