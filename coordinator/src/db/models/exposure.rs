//! Networks that may have learnt from a contributor's games.

use rookery_common::ids::RunName;

use crate::db::error::Result;
use crate::db::models::conditions::is_training;
use crate::db::models::users;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{network, parse, time_text};
use crate::db::types::Exposure;

impl Ledger {
    /// Networks that may have learnt from a contributor's games, run by run: those that were submitted after the first
    /// training games came in, excluded chunks among them.
    pub async fn exposures(&self, user: &str) -> Result<Vec<Exposure>> {
        read!(self, "exposure", |conn| async {
            let user = users::id_of(conn, user).await?;
            let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(concat!(
                "SELECT r.name AS run, c.since, n.number,
                   CASE WHEN r.best = n.number THEN 1 ELSE 0 END AS is_best
                 FROM (SELECT run_id, min(accepted_at) AS since FROM chunks
                   WHERE user_id = $1 AND ",
                is_training!("kind"),
                " GROUP BY run_id) AS c
                 JOIN runs r ON r.id = c.run_id
                 JOIN networks n ON n.run_id = c.run_id AND n.submitted_at > c.since AND n.name IS NULL
                 ORDER BY r.name, n.number",
            ))
            .bind(user)
            .fetch_all(conn)
            .await?;
            let mut found: Vec<Exposure> = Vec::new();
            for (run, since, number, is_best) in rows {
                let run: RunName = parse("run", &run)?;
                let number = network(number)?;
                if found.last().is_none_or(|last| last.run != run) {
                    let (since, best) = (time_text(since)?, false);
                    let networks = Vec::new();
                    found.push(Exposure {
                        run,
                        since,
                        networks,
                        best,
                    });
                }
                if let Some(last) = found.last_mut() {
                    last.networks.push(number);
                    last.best |= is_best != 0;
                }
            }
            Ok(found)
        })
    }
}
