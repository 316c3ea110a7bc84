//! Sums against facts: everything that can be recomputed is, and compared.
//!
//! Sums that one query gives are here; `played` has matches with their pairs, `lineage` what became of networks,
//! `records` what audits have shown of contributors. Ratings are compared by those who can fit them.

mod compare;
mod lineage;
mod played;
mod records;

use rookery_common::ids::RunName;
use sqlx::AnyConnection;

use crate::db::error::Result;
use crate::db::models::conditions::{best_since, is_training};
use crate::db::models::{runs, tallies};
use crate::db::sql::dialect;
use crate::db::sql::ledger::{Ledger, read};
use crate::db::sql::rows::{to_count, to_u32};
use crate::db::types::{Checked, Discrepancy};
use compare::{compare, compare_lists};
use lineage::Acts;

impl Ledger {
    /// Recomputes a run's sums from its facts of one moment and tells where they differ; all but ratings, which are
    /// [fitted](crate::ratings::refit).
    pub async fn check(&self, run: &RunName) -> Result<Checked> {
        read!(self.readers.for_checks(), "check", |conn| async {
            let mut moment = dialect::begin_snapshot(conn).await?;
            let checked = compare_all(&mut moment, run).await?;
            moment.commit().await?;
            Ok(checked)
        })
    }
}

async fn compare_all(conn: &mut AnyConnection, run: &RunName) -> Result<Checked> {
    let id = runs::id_of(conn, run).await?;
    let acts = Acts::on(conn, run).await?;
    let mut checked = Checked::default();
    let found = &mut checked.discrepancies;
    check_run(conn, id, found).await?;
    check_grouped(conn, id, found).await?;
    check_puzzles(conn, id, found).await?;
    check_best(conn, id, found).await?;
    lineage::check(conn, id, &acts, found).await?;
    records::check(conn, found).await?;
    played::check(conn, id, &acts, &mut checked).await?;
    Ok(checked)
}

type Sums = (i64, i64, i64, i64, i64, i64);

async fn check_run(conn: &mut AnyConnection, run: i64, found: &mut Vec<Discrepancy>) -> Result<()> {
    let stored: Sums = sqlx::query_as(
        "SELECT networks, games, positions, training_positions, chunks, chunk_bytes
         FROM runs WHERE id = $1",
    )
    .bind(run)
    .fetch_one(&mut *conn)
    .await?;
    let facts: Sums = sqlx::query_as(concat!(
        "SELECT (SELECT count(*) FROM networks WHERE run_id = $1),
           (SELECT count(*) FROM games WHERE run_id = $1 AND kind <> 'audit'),
           (SELECT CAST(coalesce(sum(plies), 0) AS BIGINT) FROM games
             WHERE run_id = $1 AND kind <> 'audit'),
           (SELECT CAST(coalesce(sum(g.plies), 0) AS BIGINT) FROM games g
             JOIN chunks c ON c.sequence = g.chunk AND c.held = 0
             WHERE g.run_id = $1 AND ",
        is_training!("g.kind"),
        "),
           (SELECT count(*) FROM chunks WHERE run_id = $1),
           (SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM chunks WHERE run_id = $1)",
    ))
    .bind(run)
    .fetch_one(conn)
    .await?;
    let what = "networks, games, positions, training positions, chunks, bytes of the run";
    compare(found, what, &stored, &facts);
    Ok(())
}

/// Sums whose recomputation is one query: pairs of a stored and a recomputed list.
const GROUPED: [(&str, &str, &str); 13] = [
    (
        "games and positions of chunks",
        "SELECT sequence, 0, games, positions FROM chunks WHERE run_id = $1 ORDER BY 1",
        "SELECT chunk, 0, count(*), CAST(sum(plies) AS BIGINT) FROM games WHERE run_id = $1
         GROUP BY chunk ORDER BY 1",
    ),
    (
        "games and positions of contributors",
        "SELECT user_id, 0, games, positions FROM credits
         WHERE run_id = $1 AND (games > 0 OR positions > 0) ORDER BY 1",
        "SELECT c.user_id, 0, sum(CASE WHEN g.kind = 'audit' THEN 0 ELSE 1 END),
           CAST(sum(g.plies) AS BIGINT) FROM games g
         JOIN chunks c ON c.sequence = g.chunk AND c.held = 0
         WHERE g.run_id = $1 GROUP BY c.user_id ORDER BY 1",
    ),
    (
        "games and positions of contributors by the hour",
        "SELECT user_id, begins, games, positions FROM credit_spans
         WHERE run_id = $1 AND length = 3600000 AND (games > 0 OR positions > 0) ORDER BY 1, 2",
        "SELECT user_id, accepted_at - accepted_at % 3600000,
           CAST(sum(CASE WHEN kind = 'audit' THEN 0 ELSE games END) AS BIGINT),
           CAST(sum(positions) AS BIGINT) FROM chunks
         WHERE run_id = $1 AND held = 0 GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "games and positions of contributors by the day",
        "SELECT user_id, begins, games, positions FROM credit_spans
         WHERE run_id = $1 AND length = 86400000 AND (games > 0 OR positions > 0) ORDER BY 1, 2",
        "SELECT user_id, accepted_at - accepted_at % 86400000,
           CAST(sum(CASE WHEN kind = 'audit' THEN 0 ELSE games END) AS BIGINT),
           CAST(sum(positions) AS BIGINT) FROM chunks
         WHERE run_id = $1 AND held = 0 GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "audits of contributors",
        "SELECT user_id, 0, audits, audit_positions FROM credits
         WHERE run_id = $1 AND (audits > 0 OR audit_positions > 0) ORDER BY 1",
        "SELECT c.user_id, 0, count(*), CAST(sum(g.plies) AS BIGINT) FROM games g
         JOIN chunks c ON c.sequence = g.chunk AND c.held = 0
         WHERE g.run_id = $1 AND g.kind = 'audit' GROUP BY c.user_id ORDER BY 1",
    ),
    (
        "audits of contributors by the hour",
        "SELECT user_id, begins, audits, audit_positions FROM credit_spans
         WHERE run_id = $1 AND length = 3600000 AND (audits > 0 OR audit_positions > 0)
         ORDER BY 1, 2",
        "SELECT user_id, accepted_at - accepted_at % 3600000, CAST(sum(games) AS BIGINT),
           CAST(sum(positions) AS BIGINT) FROM chunks
         WHERE run_id = $1 AND held = 0 AND kind = 'audit' GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "audits of contributors by the day",
        "SELECT user_id, begins, audits, audit_positions FROM credit_spans
         WHERE run_id = $1 AND length = 86400000 AND (audits > 0 OR audit_positions > 0)
         ORDER BY 1, 2",
        "SELECT user_id, accepted_at - accepted_at % 86400000, CAST(sum(games) AS BIGINT),
           CAST(sum(positions) AS BIGINT) FROM chunks
         WHERE run_id = $1 AND held = 0 AND kind = 'audit' GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "training games of networks",
        "SELECT number, 0, training_games, 0 FROM networks
         WHERE run_id = $1 AND training_games > 0 ORDER BY 1",
        concat!(
            "SELECT g.white, 0, count(*), 0 FROM games g
         JOIN chunks c ON c.sequence = g.chunk AND c.held = 0
         WHERE g.run_id = $1 AND ",
            is_training!("g.kind"),
            " GROUP BY g.white ORDER BY 1",
        ),
    ),
    (
        "counted games of jobs that have any, by their first chunk",
        "SELECT min(c.sequence), 0, j.games_counted, 0 FROM jobs j
         JOIN chunks c ON c.job_id = j.id WHERE j.run_id = $1 GROUP BY j.id ORDER BY 1",
        "SELECT min(chunk), 0, count(*), 0 FROM games WHERE run_id = $1
         GROUP BY job_id ORDER BY 1",
    ),
    (
        "held chunks, and those whose audit training waits for",
        "SELECT sequence, 0, 1, 0 FROM chunks WHERE run_id = $1
           AND (held <> 0 OR sequence IN (SELECT chunk FROM audits WHERE awaited <> 0)) ORDER BY 1",
        "SELECT h.chunk, 0, h.held, 0 FROM holds h
         WHERE h.run_id = $1 AND h.held <> 0
           AND h.id = (SELECT max(id) FROM holds l WHERE l.chunk = h.chunk) ORDER BY 1",
    ),
    (
        "gate matches of networks",
        "SELECT number, gate_id, 0, 0 FROM networks
         WHERE run_id = $1 AND gate_id IS NOT NULL ORDER BY 1, 2",
        "SELECT candidate, id, 0, 0 FROM matches
         WHERE run_id = $1 AND purpose = 'gate' ORDER BY 1, 2",
    ),
    (
        "puzzles of sets",
        "SELECT id, 0, puzzles, 0 FROM puzzle_sets WHERE run_id = $1 AND puzzles <> 0 ORDER BY 1",
        "SELECT set_id, 0, count(*), 0 FROM puzzles WHERE run_id = $1 GROUP BY set_id ORDER BY 1",
    ),
    (
        "failed audits of contributors",
        "SELECT user_id, 0, failed, 0 FROM track_records t
         WHERE failed > 0 AND EXISTS (SELECT 1 FROM runs WHERE id = $1) ORDER BY 1",
        "SELECT user_id, 0, count(*), 0 FROM audits
         WHERE state = 'failed' AND EXISTS (SELECT 1 FROM runs WHERE id = $1)
         GROUP BY user_id ORDER BY 1",
    ),
];

async fn check_grouped(
    conn: &mut AnyConnection,
    run: i64,
    found: &mut Vec<Discrepancy>,
) -> Result<()> {
    for (what, stored, facts) in GROUPED {
        let stored: Vec<(i64, i64, i64, i64)> = sqlx::query_as(stored)
            .bind(run)
            .fetch_all(&mut *conn)
            .await?;
        let facts: Vec<(i64, i64, i64, i64)> = sqlx::query_as(facts)
            .bind(run)
            .fetch_all(&mut *conn)
            .await?;
        compare_lists(found, what, &stored, &facts);
    }
    Ok(())
}

async fn check_puzzles(
    conn: &mut AnyConnection,
    run: i64,
    found: &mut Vec<Discrepancy>,
) -> Result<()> {
    let facts: Vec<_> = tallies::puzzle_facts(conn, run)
        .await?
        .into_iter()
        .flat_map(|(network, groups)| {
            groups.into_iter().map(move |((kind, name), counts)| {
                (network, kind.to_owned(), name, counts.0, counts.1)
            })
        })
        .collect();
    let stored: Vec<(i64, String, String, i64, i64)> = sqlx::query_as(
        "SELECT network, kind, name, tried, solved FROM puzzle_scores
         WHERE run_id = $1",
    )
    .bind(run)
    .fetch_all(conn)
    .await?;
    let mut stored: Vec<_> = stored
        .into_iter()
        .map(|(network, kind, name, tried, solved)| {
            (network, kind, name, to_count(tried), to_count(solved))
        })
        .collect();
    stored.sort_unstable();
    compare_lists(found, "puzzle scores", &stored, &facts);
    Ok(())
}

/// Best is the last network that entered without a gate or won its own.
async fn check_best(
    conn: &mut AnyConnection,
    run: i64,
    found: &mut Vec<Discrepancy>,
) -> Result<()> {
    let stored: Option<i64> = sqlx::query_scalar("SELECT best FROM runs WHERE id = $1")
        .bind(run)
        .fetch_one(&mut *conn)
        .await?;
    let facts: Option<i64> = sqlx::query_scalar(concat!(
        "SELECT n.number FROM networks n LEFT JOIN matches m ON m.id = n.gate_id
         WHERE n.run_id = $1 AND n.status IN ('initial', 'promoted')
         ORDER BY ",
        best_since!(),
        " DESC, n.number DESC LIMIT 1",
    ))
    .bind(run)
    .fetch_optional(conn)
    .await?;
    let number = |best: Option<i64>| best.map(|best| to_u32("network", best)).transpose();
    compare(found, "best network", &number(stored)?, &number(facts)?);
    Ok(())
}
