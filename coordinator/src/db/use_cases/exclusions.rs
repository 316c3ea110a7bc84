//! Chunks that are held out of training, matches and ratings.
//!
//! A chunk's row, its games and its file stay; what changes are the sums over chunks that are not
//! held: these are moved by what the chunks have in them, as the ledger may have very many others.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rookery_common::chess::GameResult;
use rookery_common::ids::{ContentHash, RunName};
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::{HoldPage, HoldRow};
use shakmaty::Color;
use sqlx::AnyConnection;
use sqlx_macros::FromRow;

use crate::db::error::{DbError, Result};
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::operator_log::Action;
use crate::db::models::{credits, puzzles, runs, spans, tallies};
use crate::db::sql::ledger::{Ledger, read, transact_principals};
use crate::db::sql::rows::{hash, parse, time_text};
use crate::db::sql::statement::Statement;
use crate::db::types::{Actor, ChunkStatus, ExclusionEffects, ExclusionOrder};
use crate::db::use_cases::{match_results, training_audits};

impl Ledger {
    /// Takes a chunk out of training, matches and ratings, or puts it back.
    pub async fn hold_chunk(
        &self,
        chunk: ContentHash,
        order: ExclusionOrder,
        by: Actor,
    ) -> Result<ExclusionEffects> {
        transact_principals!(self, "holds", |conn| {
            let sequence: Option<i64> = sqlx::query_scalar(
                "SELECT sequence FROM chunks WHERE hash = $1 AND kind <> 'audit'
                   AND run_id IN (SELECT id FROM runs WHERE deleted_at IS NULL)",
            )
            .bind(&chunk.as_bytes()[..])
            .fetch_optional(&mut *conn)
            .await?;
            let sequence = sequence.ok_or_else(|| DbError::NotFound(format!("chunk {chunk}")))?;
            let action = match order.state {
                ChunkStatus::Excluded => Action::Hold,
                ChunkStatus::Counted => Action::LetGo,
            };
            by.note(conn, action, &chunk.to_string(), &order.reason)
                .await?;
            let which = ChunkSelection::One(sequence);
            set(conn, which, order.state, &order.reason, by.at).await
        })
    }

    pub async fn holds(&self, run: &RunName, after: i64, limit: u32) -> Result<HoldPage> {
        read!(self, "holds", |conn| async {
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
        })
    }
}

/// Chunks of one kind, with games of one network, in sums.
#[derive(FromRow)]
struct Sums {
    run_id: i64,
    user_id: i64,
    kind: String,
    network: i64,
    games: i64,
    positions: i64,
}

/// Holds chunks or lets them go; those that are so already stay. A contributor may have very many:
/// the number of statements does not grow with theirs.
pub(crate) async fn set(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
    reason: &str,
    now: Timestamp,
) -> Result<ExclusionEffects> {
    for sums in load_sums(conn, which, state).await? {
        move_sums(conn, &sums, state).await?;
    }
    for ((run, network), groups) in tallies::puzzle_facts_of(conn, which, state).await? {
        puzzles::move_scores(conn, (run, network), &groups, state).await?;
    }
    spans::change(conn, which, state).await?;
    let matches = matches_of(conn, which, state).await?;
    for (_, id) in &matches {
        match state {
            ChunkStatus::Excluded => free_pairs(conn, *id, which).await?,
            ChunkStatus::Counted => fill_pairs(conn, *id, which).await?,
        }
    }
    if state == ChunkStatus::Excluded {
        return_jobs(conn, which).await?;
        training_audits::await_no_more(conn, which).await?;
    }
    // Until here what is changed is told by what is not yet so.
    note(conn, which, state, reason, now).await?;
    let mut effects = ExclusionEffects::default();
    for (_, id) in &matches {
        let events = match_results::recount(conn, *id, now).await?;
        effects.events.extend(events);
    }
    let runs: BTreeSet<i64> = matches.into_iter().map(|(run, _)| run).collect();
    for run in runs {
        runs::make_stale(conn, run).await?;
        effects.stale.extend(runs::name_of(conn, run).await?);
    }
    Ok(effects)
}

/// Enters that chunks are held or let go, and marks them.
pub(crate) async fn note(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
    reason: &str,
    now: Timestamp,
) -> Result<()> {
    let mut entry = Statement::new(
        "INSERT INTO holds (run_id, chunk, held, reason, at) SELECT c.run_id, c.sequence, ",
    );
    entry.bind(state.column())?.push(", ");
    entry.bind(reason.to_owned())?.push(", ");
    entry
        .bind(now.as_millisecond())?
        .push(" FROM chunks c WHERE ");
    which.write(&mut entry, state)?;
    entry.push(" ORDER BY c.sequence");
    entry.execute(conn).await?;
    let mut mark = Statement::new("UPDATE chunks AS c SET held = ");
    mark.bind(state.column())?.push(" WHERE ");
    which.write(&mut mark, state)?;
    mark.execute(conn).await
}

/// What chunks that will change have together.
async fn load_sums(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
) -> Result<Vec<Sums>> {
    let mut query = Statement::new(
        "SELECT c.run_id, c.user_id, c.kind, c.network, CAST(sum(c.games) AS BIGINT) AS games,
           CAST(sum(c.positions) AS BIGINT) AS positions
         FROM chunks c WHERE ",
    );
    which.write(&mut query, state)?;
    query.push(" GROUP BY c.run_id, c.user_id, c.kind, c.network");
    query.fetch_all(conn).await
}

/// Runs with those of their matches of which chunks that will change hold games.
async fn matches_of(
    conn: &mut AnyConnection,
    which: ChunkSelection,
    state: ChunkStatus,
) -> Result<BTreeSet<(i64, i64)>> {
    let mut query = Statement::new(
        "SELECT DISTINCT c.run_id, j.match_id FROM chunks c JOIN jobs j ON j.id = c.job_id
         WHERE c.kind = 'match' AND j.match_id IS NOT NULL AND ",
    );
    which.write(&mut query, state)?;
    let rows: Vec<(i64, i64)> = query.fetch_all(conn).await?;
    Ok(rows.into_iter().collect())
}

/// Takes chunks' games and positions out of the sums that count only good ones, or puts them back.
async fn move_sums(conn: &mut AnyConnection, chunks: &Sums, state: ChunkStatus) -> Result<()> {
    let sign = match state {
        ChunkStatus::Excluded => -1,
        ChunkStatus::Counted => 1,
    };
    let kind: WorkKind = parse("kind of chunk", &chunks.kind)?;
    let training = i64::from(kind.is_training());
    sqlx::query("UPDATE runs SET training_positions = training_positions + $2 WHERE id = $1")
        .bind(chunks.run_id)
        .bind(sign * training * chunks.positions)
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "UPDATE networks SET training_games = training_games + $3
         WHERE run_id = $1 AND number = $2",
    )
    .bind(chunks.run_id)
    .bind(chunks.network)
    .bind(sign * training * chunks.games)
    .execute(&mut *conn)
    .await?;
    // None of the chunks is an audit.
    let given = credits::CreditAmounts {
        games: sign * chunks.games,
        positions: sign * chunks.positions,
        ..credits::CreditAmounts::default()
    };
    credits::credit(&[((chunks.run_id, chunks.user_id), given)])?
        .execute(conn)
        .await
}

/// Lets others play the pairs of a match of which chunks that will be held had a game.
async fn free_pairs(conn: &mut AnyConnection, match_id: i64, which: ChunkSelection) -> Result<()> {
    let mut free = Statement::new(
        "UPDATE match_pairs SET white_score = NULL, black_score = NULL
         WHERE EXISTS (SELECT 1 FROM games g JOIN chunks c ON c.sequence = g.chunk
             WHERE g.job_id = match_pairs.job_id AND g.pair = match_pairs.pair AND ",
    );
    which.write(&mut free, ChunkStatus::Excluded)?;
    free.push(") AND match_id = ").bind(match_id)?;
    free.execute(conn).await
}

/// Enters the games of chunks that will count again into the pairs of a match that nobody else was given meanwhile:
/// the other game of such a pair may be still to come.
async fn fill_pairs(conn: &mut AnyConnection, match_id: i64, which: ChunkSelection) -> Result<()> {
    let mut fill = Statement::new("UPDATE match_pairs SET white_score = coalesce((");
    half_points(&mut fill, Color::White, which)?;
    fill.push("), white_score), black_score = coalesce((");
    half_points(&mut fill, Color::Black, which)?;
    fill.push("), black_score) WHERE match_id = ")
        .bind(match_id)?;
    fill.execute(conn).await
}

/// Writes the candidate's half points of the game of a pair, `match_pairs`, in which it had this colour, where that game
/// is in a chunk that will count again.
fn half_points(statement: &mut Statement, candidate: Color, which: ChunkSelection) -> Result<()> {
    statement.push("SELECT CASE g.result WHEN ");
    statement
        .bind(GameResult::Draw.name())?
        .push(" THEN 1 WHEN ");
    let win = GameResult::win_of(candidate).name();
    statement.bind(win)?.push(
        " THEN 2 ELSE 0 END FROM games g JOIN chunks c ON c.sequence = g.chunk
           JOIN matches m ON m.id = g.match_id
         WHERE g.job_id = match_pairs.job_id AND g.pair = match_pairs.pair AND m.candidate = ",
    );
    statement.push(match candidate {
        Color::White => "g.white AND ",
        Color::Black => "g.black AND ",
    });
    which.write(statement, ChunkStatus::Counted)
}

/// Ends the leases of the match games of chunks that will be held.
async fn return_jobs(conn: &mut AnyConnection, which: ChunkSelection) -> Result<()> {
    let mut end = Statement::new(
        "UPDATE jobs SET state = 'returned'
         WHERE id IN (SELECT c.job_id FROM chunks c WHERE c.kind = 'match' AND ",
    );
    which.write(&mut end, ChunkStatus::Excluded)?;
    end.push(")");
    end.execute(conn).await
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
