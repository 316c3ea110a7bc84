//! Chunks: the one way in for games.
//!
//! [`accept`] is the transaction behind an acknowledgement: chunk and games, the job's and the
//! run's sums, the contributor's credit, and what follows for the match or the puzzle score.

use std::collections::HashSet;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, MatchId, NetworkNumber, RunName, UserId};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkPage, ChunkReceipt, ChunkRow, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use sqlx::{AnyConnection, FromRow};

use super::leases::{self, JobRow};
use super::rows::{count, hash, job_bytes, time_text, to_count, to_u32, unreadable};
use super::runs::{self, Run};
use super::{games, matches, pairs, puzzles, verdicts};
use crate::store::error::{Result, StoreError};
use crate::store::model::{ChunkAccepted, ChunkDraft, RatingsState};

/// Match games after which ratings are fitted again even if no match was decided.
const UNRATED_GAMES: i64 = 200;

pub(super) async fn receipt(
    conn: &mut AnyConnection,
    hash: &ContentHash,
) -> Result<Option<(UserId, ChunkReceipt)>> {
    let row: Option<(i64, i64, i64, i64)> =
        sqlx::query_as("SELECT user_id, sequence, games, positions FROM chunks WHERE hash = $1")
            .bind(&hash.as_bytes()[..])
            .fetch_optional(conn)
            .await?;
    row.map(|(user, sequence, games, positions)| {
        let receipt = ChunkReceipt {
            hash: *hash,
            sequence,
            games: to_u32("number of games", games)?,
            positions: to_u32("number of positions", positions)?,
            duplicate: true,
        };
        Ok((UserId(user), receipt))
    })
    .transpose()
}

pub(super) async fn accept(
    conn: &mut AnyConnection,
    chunk: ChunkDraft,
    now: Timestamp,
) -> Result<ChunkAccepted> {
    let job = leases::find_own(conn, chunk.job, chunk.user).await?;
    let run = runs::load_by_id(conn, job.run_id).await?;
    if let Some((user, receipt)) = receipt(conn, &chunk.hash).await? {
        return known(user, receipt, &chunk, run.name);
    }
    games::refuse_repeated(conn, &job, &chunk).await?;
    let sequence = insert(conn, &job, &chunk, now).await?;
    let networks = networks_of(conn, &job).await?;
    games::insert(conn, job.run_id, sequence, &chunk, networks).await?;
    add_sums(conn, &job, &chunk).await?;
    let mut events = vec![told(conn, &run, &job, &chunk).await?];
    let ratings = match job.kind()? {
        WorkKind::SelfPlay => RatingsState::Fresh,
        WorkKind::Puzzles => {
            let groups = puzzles::groups(&chunk.games);
            puzzles::add_scores(conn, run.id, job.network()?, &groups).await?;
            RatingsState::Fresh
        }
        WorkKind::Match => count_match(conn, &job, &chunk, sequence, &mut events, now).await?,
    };
    let receipt = ChunkReceipt {
        hash: chunk.hash,
        sequence,
        games: chunk.games.len() as u32,
        positions: chunk.positions(),
        duplicate: false,
    };
    Ok(ChunkAccepted {
        receipt,
        events,
        run: run.name,
        ratings,
    })
}

fn known(
    user: UserId,
    receipt: ChunkReceipt,
    chunk: &ChunkDraft,
    run: RunName,
) -> Result<ChunkAccepted> {
    if user != chunk.user {
        let detail = format!("chunk {} was sent by another contributor", chunk.hash);
        return Err(StoreError::Conflict(detail));
    }
    Ok(ChunkAccepted {
        receipt,
        events: Vec::new(),
        run,
        ratings: RatingsState::Fresh,
    })
}

async fn insert(
    conn: &mut AnyConnection,
    job: &JobRow,
    chunk: &ChunkDraft,
    now: Timestamp,
) -> Result<i64> {
    let sequence = sqlx::query_scalar(
        "INSERT INTO chunks (run_id, hash, job_id, user_id, kind, network, bytes, games,
           positions, backend, worker_version, accepted_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING sequence",
    )
    .bind(job.run_id)
    .bind(&chunk.hash.as_bytes()[..])
    .bind(job_bytes(chunk.job))
    .bind(chunk.user.0)
    .bind(&job.kind)
    .bind(job.network)
    .bind(count(chunk.bytes))
    .bind(chunk.games.len() as i64)
    .bind(i64::from(chunk.positions()))
    .bind(&chunk.backend)
    .bind(&chunk.worker_version)
    .bind(now.as_millisecond())
    .fetch_one(conn)
    .await?;
    Ok(sequence)
}

/// The candidate and its opponent; of other games the same network twice.
async fn networks_of(
    conn: &mut AnyConnection,
    job: &JobRow,
) -> Result<(NetworkNumber, NetworkNumber)> {
    match job.match_id {
        Some(id) => {
            let m = matches::load(conn, MatchId(id)).await?;
            Ok((m.candidate, m.opponent))
        }
        None => Ok((job.network()?, job.network()?)),
    }
}

/// Moves the sums of job, run, network and contributor.
async fn add_sums(conn: &mut AnyConnection, job: &JobRow, chunk: &ChunkDraft) -> Result<()> {
    let (games, positions) = (chunk.games.len() as i64, i64::from(chunk.positions()));
    let training = job.match_id.is_none();
    let counted = job.games_counted + games;
    sqlx::query(
        "UPDATE jobs SET games_counted = $2,
           state = CASE WHEN $2 >= games AND state = 'open' THEN 'done' ELSE state END
         WHERE id = $1",
    )
    .bind(job_bytes(chunk.job))
    .bind(counted)
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE runs SET games = games + $2, positions = positions + $3,
           training_positions = training_positions + $4, chunks = chunks + 1,
           chunk_bytes = chunk_bytes + $5
         WHERE id = $1",
    )
    .bind(job.run_id)
    .bind(games)
    .bind(positions)
    .bind(if training { positions } else { 0 })
    .bind(count(chunk.bytes))
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "UPDATE networks SET training_games = training_games + $3
         WHERE run_id = $1 AND number = $2",
    )
    .bind(job.run_id)
    .bind(job.network)
    .bind(if training { games } else { 0 })
    .execute(&mut *conn)
    .await?;
    sqlx::query(
        "INSERT INTO credits (run_id, user_id, games, positions) VALUES ($1, $2, $3, $4)
         ON CONFLICT (run_id, user_id) DO UPDATE SET games = credits.games + excluded.games,
           positions = credits.positions + excluded.positions",
    )
    .bind(job.run_id)
    .bind(chunk.user.0)
    .bind(games)
    .bind(positions)
    .execute(conn)
    .await?;
    Ok(())
}

async fn told(
    conn: &mut AnyConnection,
    run: &Run,
    job: &JobRow,
    chunk: &ChunkDraft,
) -> Result<Event> {
    let contributor = sqlx::query_scalar("SELECT name FROM users WHERE id = $1")
        .bind(chunk.user.0)
        .fetch_one(conn)
        .await?;
    Ok(Event::Chunk {
        run: run.name.clone(),
        work: job.kind()?,
        contributor,
        games: chunk.games.len() as u32,
        positions: chunk.positions(),
    })
}

/// Moves the match's tally, if it is open, and the sums from which ratings follow.
async fn count_match(
    conn: &mut AnyConnection,
    job: &JobRow,
    chunk: &ChunkDraft,
    sequence: i64,
    events: &mut Vec<Event>,
    now: Timestamp,
) -> Result<RatingsState> {
    let id = job
        .match_id
        .ok_or_else(|| unreadable("job", &"a match job without a match"))?;
    let m = matches::load(conn, MatchId(id)).await?;
    games::add_head_to_head(conn, &m, &chunk.games).await?;
    let completed = pairs::enter(conn, id, chunk.job, &chunk.games).await?;
    let mut decided = false;
    if m.status == MatchStatus::Open && completed.games() > 0 {
        let told = verdicts::count_pairs(conn, m, &completed, sequence, now).await?;
        decided = told.iter().any(
            |event| matches!(event, Event::Match { status, .. } if *status != MatchStatus::Open),
        );
        events.extend(told);
    }
    let unrated: i64 = sqlx::query_scalar(
        "UPDATE runs SET unrated_games = unrated_games + $2 WHERE id = $1 RETURNING unrated_games",
    )
    .bind(job.run_id)
    .bind(chunk.games.len() as i64)
    .fetch_one(conn)
    .await?;
    let stale = decided || unrated >= UNRATED_GAMES;
    Ok(if stale {
        RatingsState::Stale
    } else {
        RatingsState::Fresh
    })
}

#[derive(FromRow)]
pub(super) struct Row {
    sequence: i64,
    hash: Vec<u8>,
    kind: String,
    network: i64,
    bytes: i64,
    games: i64,
    positions: i64,
    accepted_at: i64,
}

impl Row {
    pub(super) fn into_chunk(self) -> Result<ChunkRow> {
        Ok(ChunkRow {
            sequence: self.sequence,
            hash: hash(&self.hash)?,
            kind: WorkKind::from_name(&self.kind)
                .ok_or_else(|| unreadable("kind of chunk", &&self.kind))?,
            network: NetworkNumber(to_u32("network", self.network)?),
            bytes: to_count(self.bytes),
            games: to_u32("number of games", self.games)?,
            positions: to_u32("number of positions", self.positions)?,
            accepted_at: time_text(self.accepted_at)?,
        })
    }
}

pub(super) async fn page(
    conn: &mut AnyConnection,
    run: &RunName,
    after: i64,
    limit: u32,
) -> Result<ChunkPage> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at
         FROM chunks WHERE run_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
    )
    .bind(runs::id_of(conn, run).await?)
    .bind(after)
    .bind(i64::from(limit) + 1)
    .fetch_all(conn)
    .await?;
    let more = rows.len() > limit as usize;
    let chunks = rows
        .into_iter()
        .take(limit as usize)
        .map(Row::into_chunk)
        .collect::<Result<Vec<_>>>()?;
    let next = chunks.last().map_or(after, |chunk| chunk.sequence);
    Ok(ChunkPage { chunks, next, more })
}

pub(super) async fn one(
    conn: &mut AnyConnection,
    hash: &ContentHash,
) -> Result<(RunName, ChunkRow)> {
    let unknown = || StoreError::NotFound(format!("chunk {hash}"));
    let row: Row = sqlx::query_as(
        "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at
         FROM chunks WHERE hash = $1",
    )
    .bind(&hash.as_bytes()[..])
    .fetch_optional(&mut *conn)
    .await?
    .ok_or_else(unknown)?;
    let run: String = sqlx::query_scalar(
        "SELECT r.name FROM chunks c JOIN runs r ON r.id = c.run_id WHERE c.sequence = $1",
    )
    .bind(row.sequence)
    .fetch_one(conn)
    .await?;
    let run = run.parse().map_err(|error| unreadable("run", &error))?;
    Ok((run, row.into_chunk()?))
}

/// Places in the chunk of games that stand in it twice, by what `key` gives.
pub(super) fn first_repeated<T, K: std::hash::Hash + Eq>(
    items: &[T],
    key: impl Fn(&T) -> Option<K>,
) -> Option<u32> {
    let mut seen = HashSet::new();
    let repeated = items
        .iter()
        .position(|item| key(item).is_some_and(|key| !seen.insert(key)));
    repeated.map(|place| place as u32)
}
