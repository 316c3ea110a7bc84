//! Keys of runs, and the signatures of networks by them.

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::signing::{RunKey, RunKeyInfo, Signature};
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::operator_log::Action;
use crate::db::models::runs;
use crate::db::sql::ledger::{Ledger, read, transact};
use crate::db::sql::rows::{parse, time_text};
use crate::db::types::Actor;

impl Ledger {
    /// The keys of a run, oldest first; the last one is in use.
    pub async fn run_keys(&self, run: &RunName) -> Result<Vec<RunKeyInfo>> {
        read!(self, "keys", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let rows: Vec<(String, Option<String>, i64)> = sqlx::query_as(
                "SELECT key, endorsement, added_at FROM run_keys WHERE run_id = $1 ORDER BY number",
            )
            .bind(run)
            .fetch_all(conn)
            .await?;
            rows.into_iter()
                .map(|(key, endorsement, added_at)| {
                    Ok(RunKeyInfo {
                        key: parse("key", &key)?,
                        endorsement: endorsement.map(Signature),
                        since: time_text(added_at)?,
                    })
                })
                .collect()
        })
    }

    /// Makes a key the run's; every one but the first is endorsed by the one before.
    pub async fn add_run_key(
        &self,
        run: &RunName,
        key: RunKey,
        endorsement: Option<Signature>,
        by: Actor,
    ) -> Result<()> {
        let run = run.clone();
        transact!(self, "keys", |conn| {
            let id = runs::id_of(conn, &run).await?;
            let number: i64 = sqlx::query_scalar("SELECT count(*) FROM run_keys WHERE run_id = $1")
                .bind(id)
                .fetch_one(&mut *conn)
                .await?;
            if (number > 0) != endorsement.is_some() {
                let detail = "every key of a run but the first is endorsed by the one before";
                return Err(DbError::Conflict(detail.to_owned()));
            }
            let added = sqlx::query(
                "INSERT INTO run_keys (run_id, number, key, endorsement, added_at)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            )
            .bind(id)
            .bind(number)
            .bind(key.as_str())
            .bind(endorsement.map(|signature| signature.0))
            .bind(by.at.as_millisecond())
            .execute(&mut *conn)
            .await?;
            if added.rows_affected() == 0 {
                let detail = format!("{key} is or was a key of run {run} already");
                return Err(DbError::Conflict(detail));
            }
            sqlx::query("UPDATE runs SET signing_key = $2 WHERE id = $1")
                .bind(id)
                .bind(key.as_str())
                .execute(&mut *conn)
                .await?;
            by.note(conn, Action::AddRunKey, run.as_str(), key.as_str())
                .await
        })
    }

    /// Keeps signatures of networks of a run; those that are there already stay.
    pub async fn add_signatures(
        &self,
        run: &RunName,
        key: RunKey,
        signatures: Vec<(ContentHash, Signature)>,
        now: Timestamp,
    ) -> Result<()> {
        let run = run.clone();
        transact!(self, "keys", |conn| sign(conn, run, key, signatures, now)
            .await)
    }

    /// The signature of a network by a key.
    pub async fn signature(
        &self,
        run: &RunName,
        network: &ContentHash,
        key: &RunKey,
    ) -> Result<Option<Signature>> {
        read!(self, "keys", |conn| async {
            let run = runs::id_of(conn, run).await?;
            let found: Option<String> = sqlx::query_scalar(
                "SELECT signature FROM network_signatures
                 WHERE run_id = $1 AND network = $2 AND key = $3",
            )
            .bind(run)
            .bind(&network.as_bytes()[..])
            .bind(key.as_str())
            .fetch_optional(conn)
            .await?;
            Ok(found.map(Signature))
        })
    }
}

pub(crate) async fn sign(
    conn: &mut AnyConnection,
    run: RunName,
    key: RunKey,
    signatures: Vec<(ContentHash, Signature)>,
    now: Timestamp,
) -> Result<()> {
    let run = runs::id_of(conn, &run).await?;
    for (network, signature) in signatures {
        sqlx::query(
            "INSERT INTO network_signatures (run_id, network, key, signature, added_at)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
        )
        .bind(run)
        .bind(&network.as_bytes()[..])
        .bind(key.as_str())
        .bind(signature.0)
        .bind(now.as_millisecond())
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
