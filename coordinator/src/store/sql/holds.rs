//! Chunks that are held out of training, matches and ratings.
//!
//! A chunk's row, its games and its file stay; what changes are the sums over chunks that are not
//! held. They are made again from the games, as `ledger check` does.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, MatchId, NetworkNumber, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::{HoldPage, HoldRow};
use sqlx::{AnyConnection, FromRow};

use super::rows::{hash, named, time_text, to_u32};
use super::{check, matches, operator_log, puzzles, runs, verdicts};
use crate::store::error::{Result, StoreError};
use crate::store::trust::{HoldEffects, HoldOrder, HoldState};

/// Match games that make ratings stale at once.
const STALE: i64 = 1 << 20;

#[derive(FromRow)]
struct ChunkRow {
    run_id: i64,
    user_id: i64,
    kind: String,
    network: i64,
    games: i64,
    positions: i64,
    job_id: Vec<u8>,
    match_id: Option<i64>,
    held: i64,
}

impl HoldState {
    /// What a column of the ledger says.
    pub(super) const fn of_column(held: i64) -> Self {
        if held == 0 { Self::Counted } else { Self::Held }
    }

    /// What the ledger's columns say of it.
    pub(super) const fn column(self) -> i64 {
        match self {
            Self::Held => 1,
            Self::Counted => 0,
        }
    }
}

/// What has to be made again once chunks have changed.
#[derive(Default)]
struct Touched {
    /// Runs with networks whose puzzle scores changed.
    puzzles: BTreeSet<(i64, i64)>,
    /// Runs with their matches.
    matches: BTreeSet<(i64, i64)>,
}

/// Holds these chunks or lets them go; those that are so already stay.
pub(super) async fn set(
    conn: &mut AnyConnection,
    chunks: &[i64],
    state: HoldState,
    reason: &str,
    now: Timestamp,
) -> Result<HoldEffects> {
    let mut touched = Touched::default();
    for sequence in chunks {
        let chunk: ChunkRow = sqlx::query_as(
            "SELECT c.run_id, c.user_id, c.kind, c.network, c.games, c.positions, c.job_id,
               j.match_id, c.held
             FROM chunks c JOIN jobs j ON j.id = c.job_id WHERE c.sequence = $1",
        )
        .bind(*sequence)
        .fetch_one(&mut *conn)
        .await?;
        if HoldState::of_column(chunk.held) == state {
            continue;
        }
        note(conn, chunk.run_id, *sequence, state, reason, now).await?;
        move_sums(conn, &chunk, state).await?;
        match (named("kind of chunk", &chunk.kind)?, chunk.match_id) {
            (WorkKind::Puzzles, _) => {
                touched.puzzles.insert((chunk.run_id, chunk.network));
            }
            (WorkKind::Match, Some(id)) => {
                touched.matches.insert((chunk.run_id, id));
                if state == HoldState::Held {
                    free_pairs(conn, id, *sequence, &chunk.job_id).await?;
                }
            }
            _ => {}
        }
    }
    touched.make_again(conn).await
}

/// Enters that a chunk is held or let go, and marks it.
pub(super) async fn note(
    conn: &mut AnyConnection,
    run: i64,
    chunk: i64,
    state: HoldState,
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    sqlx::query("INSERT INTO holds (run_id, chunk, held, reason, at) VALUES ($1, $2, $3, $4, $5)")
        .bind(run)
        .bind(chunk)
        .bind(state.column())
        .bind(reason)
        .bind(now.as_millisecond())
        .execute(&mut *conn)
        .await?;
    sqlx::query("UPDATE chunks SET held = $2 WHERE sequence = $1")
        .bind(chunk)
        .bind(state.column())
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes a chunk's games and positions out of the sums that count only good ones, or puts them
/// back.
async fn move_sums(conn: &mut AnyConnection, chunk: &ChunkRow, state: HoldState) -> Result<()> {
    let sign = match state {
        HoldState::Held => -1,
        HoldState::Counted => 1,
    };
    let kind: WorkKind = named("kind of chunk", &chunk.kind)?;
    let training = i64::from(kind.is_training());
    sqlx::query("UPDATE runs SET training_positions = training_positions + $2 WHERE id = $1")
        .bind(chunk.run_id)
        .bind(sign * training * chunk.positions)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "UPDATE networks SET training_games = training_games + $3
         WHERE run_id = $1 AND number = $2",
    )
    .bind(chunk.run_id)
    .bind(chunk.network)
    .bind(sign * training * chunk.games)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "INSERT INTO credits (run_id, user_id, games, positions) VALUES ($1, $2, $3, $4)
         ON CONFLICT (run_id, user_id) DO UPDATE SET games = credits.games + excluded.games,
           positions = credits.positions + excluded.positions",
    )
    .bind(chunk.run_id)
    .bind(chunk.user_id)
    .bind(sign * chunk.games)
    .bind(sign * chunk.positions)
    .execute(conn)
    .await?;
    Ok(())
}

/// Lets others play the pairs of which a held chunk had a game.
async fn free_pairs(conn: &mut AnyConnection, match_id: i64, chunk: i64, job: &[u8]) -> Result<()> {
    sqlx::query(
        "UPDATE match_pairs SET white_score = NULL, black_score = NULL
         WHERE match_id = $1 AND job_id = $2
           AND pair IN (SELECT pair FROM games WHERE job_id = $2 AND chunk = $3)",
    )
    .bind(match_id)
    .bind(job)
    .bind(chunk)
    .execute(&mut *conn)
    .await?;
    sqlx::query("UPDATE jobs SET state = 'returned' WHERE id = $1")
        .bind(job)
        .execute(conn)
        .await?;
    Ok(())
}

impl Touched {
    async fn make_again(self, conn: &mut AnyConnection) -> Result<HoldEffects> {
        for (run, network) in &self.puzzles {
            sqlx::query("DELETE FROM puzzle_scores WHERE run_id = $1 AND network = $2")
                .bind(*run)
                .bind(*network)
                .execute(&mut *conn)
                .await?;
            let mut facts = check::puzzle_facts(conn, *run, Some(*network)).await?;
            let number = NetworkNumber(to_u32("network", *network)?);
            if let Some(groups) = facts.remove(network) {
                puzzles::add_scores(conn, *run, number, &groups).await?;
            }
        }
        for (_, id) in &self.matches {
            let mut m = matches::load(conn, MatchId(*id)).await?;
            m.tally = check::tally_of(conn, &m).await?;
            verdicts::store_tally(conn, &m).await?;
        }
        let runs: BTreeSet<i64> = self.matches.iter().map(|(run, _)| *run).collect();
        let mut stale = Vec::new();
        for run in runs {
            make_stale(conn, run).await?;
            stale.push(runs::load_by_id(conn, run).await?.name);
        }
        Ok(HoldEffects { stale })
    }
}

/// Lets ratings be fitted after the next game at the latest.
pub(super) async fn make_stale(conn: &mut AnyConnection, run: i64) -> Result<()> {
    sqlx::query("UPDATE runs SET unrated_games = unrated_games + $2 WHERE id = $1")
        .bind(run)
        .bind(STALE)
        .execute(conn)
        .await?;
    Ok(())
}

#[derive(FromRow)]
struct HoldRecord {
    id: i64,
    hash: Vec<u8>,
    chunk: i64,
    held: i64,
    reason: String,
    at: i64,
}

pub(super) async fn page(
    conn: &mut AnyConnection,
    run: &RunName,
    after: i64,
    limit: u32,
) -> Result<HoldPage> {
    let rows: Vec<HoldRecord> = sqlx::query_as(
        "SELECT h.id, c.hash, h.chunk, h.held, h.reason, h.at FROM holds h
         JOIN chunks c ON c.sequence = h.chunk
         WHERE h.run_id = $1 AND h.id > $2 ORDER BY h.id LIMIT $3",
    )
    .bind(runs::id_of(conn, run).await?)
    .bind(after)
    .bind(i64::from(limit) + 1)
    .fetch_all(conn)
    .await?;
    let more = rows.len() > limit as usize;
    let holds: Vec<HoldRow> = rows
        .into_iter()
        .take(limit as usize)
        .map(|row| {
            Ok(HoldRow {
                sequence: row.id,
                chunk: hash(&row.hash)?,
                chunk_sequence: row.chunk,
                held: row.held != 0,
                reason: row.reason,
                at: time_text(row.at)?,
            })
        })
        .collect::<Result<_>>()?;
    let next = holds.last().map_or(after, |hold| hold.sequence);
    Ok(HoldPage { holds, next, more })
}

/// An operator's order on one chunk.
pub(super) async fn hold_chunk(
    conn: &mut AnyConnection,
    chunk: ContentHash,
    order: HoldOrder,
    now: Timestamp,
) -> Result<HoldEffects> {
    let sequence: Option<i64> =
        sqlx::query_scalar("SELECT sequence FROM chunks WHERE hash = $1 AND kind <> 'audit'")
            .bind(&chunk.as_bytes()[..])
            .fetch_optional(&mut *conn)
            .await?;
    let sequence = sequence.ok_or_else(|| StoreError::NotFound(format!("chunk {chunk}")))?;
    let action = match order.state {
        HoldState::Held => "hold",
        HoldState::Counted => "let-go",
    };
    let subject = chunk.to_string();
    operator_log::write(conn, &order.actor, action, &subject, &order.reason, now).await?;
    set(conn, &[sequence], order.state, &order.reason, now).await
}
