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
use super::rows::{count, hash, job_bytes, time_text, to_count, to_json, to_u32, unreadable};
use super::runs;
use super::statement::Statement;
use super::{audits, games, holds, matches, opinions, pairs, puzzles, verdicts};
use crate::store::error::{Result, StoreError};
use crate::store::model::{ChunkAccepted, ChunkDraft, RatingsState};
use crate::store::trust::HoldState;
use crate::trust::rate::audit_rate;

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
    let run = job.run()?;
    let kind = job.kind()?;
    let state = match kind {
        WorkKind::Audit => HoldState::Counted,
        _ => HoldState::of_column(job.quarantined),
    };
    let held = state == HoldState::Held;
    let audited =
        !held && kind != WorkKind::Audit && chunk.chance < audit_rate(job.track_record()?);
    let Some(sequence) = insert(conn, &job, &chunk, now).await? else {
        return known(conn, &chunk, run).await;
    };
    let networks = networks_of(conn, &job).await?;
    games::insert(conn, &job, sequence, &chunk, networks).await?;
    let mut changes = sums(&job, &chunk, state)?;
    if audited {
        let audit = audits::Opening {
            run: job.run_id,
            chunk: sequence,
            user: job.user_id,
            cause: audits::Cause::Sampled,
        };
        audit.write(changes.next(audits::OPEN), now)?;
    }
    changes.execute(conn).await?;
    let mut events = vec![told(&job, &chunk)?];
    if held {
        let reason = "the contributor is in quarantine";
        holds::note(conn, job.run_id, sequence, state, reason, now).await?;
    }
    let ratings = match kind {
        _ if held => RatingsState::Fresh,
        WorkKind::SelfPlay => RatingsState::Fresh,
        WorkKind::Audit => {
            let effects = opinions::answer(conn, &job, &chunk, sequence, now).await?;
            if effects.stale.is_empty() {
                RatingsState::Fresh
            } else {
                RatingsState::Stale
            }
        }
        WorkKind::Puzzles => {
            let groups = puzzles::groups(&chunk.games);
            puzzles::add_scores(conn, job.run_id, job.network()?, &groups).await?;
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
        run,
        ratings,
    })
}

/// The answer to a chunk that is in the ledger already.
async fn known(
    conn: &mut AnyConnection,
    chunk: &ChunkDraft,
    run: RunName,
) -> Result<ChunkAccepted> {
    let (user, receipt) = receipt(conn, &chunk.hash)
        .await?
        .ok_or_else(|| unreadable("chunk", &chunk.hash))?;
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

/// Enters the chunk and gives its place in the ledger; none if it is there.
async fn insert(
    conn: &mut AnyConnection,
    job: &JobRow,
    chunk: &ChunkDraft,
    now: Timestamp,
) -> Result<Option<i64>> {
    let sequence = sqlx::query_scalar(
        "INSERT INTO chunks (run_id, hash, job_id, user_id, kind, network, bytes, games,
           positions, backend, worker_version, accepted_at, searches)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         ON CONFLICT (hash) DO NOTHING RETURNING sequence",
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
    .bind(chunk.searches.as_ref().map(to_json).transpose()?)
    .fetch_optional(conn)
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
fn sums(job: &JobRow, chunk: &ChunkDraft, state: HoldState) -> Result<Statement> {
    let (all, positions) = (chunk.games.len() as i64, i64::from(chunk.positions()));
    let counted = job.games_counted + all;
    // What an audit searches again is credited, but no games were played.
    let kind = job.kind()?;
    let audit = kind == WorkKind::Audit;
    let games = if audit { 0 } else { all };
    let credited = i64::from(state == HoldState::Counted);
    let training = credited * i64::from(kind.is_training());
    let mut sums = Statement::new("UPDATE jobs SET games_counted = ");
    sums.bind(counted)?.push(", state = CASE WHEN ");
    sums.bind(counted)?
        .push(" >= games AND state = 'open' THEN 'done' ELSE state END WHERE id = ");
    sums.bind(job_bytes(chunk.job))?;
    sums.next("UPDATE runs SET chunks = chunks + 1, games = games + ");
    sums.bind(games)?.push(", positions = positions + ");
    sums.bind(if audit { 0 } else { positions })?
        .push(", training_positions = training_positions + ");
    sums.bind(training * positions)?
        .push(", chunk_bytes = chunk_bytes + ");
    sums.bind(count(chunk.bytes))?.push(" WHERE id = ");
    sums.bind(job.run_id)?;
    sums.next("UPDATE networks SET training_games = training_games + ");
    sums.bind(training * games)?.push(" WHERE run_id = ");
    sums.bind(job.run_id)?.push(" AND number = ");
    sums.bind(job.network)?;
    sums.next("INSERT INTO credits (run_id, user_id, games, positions) VALUES (");
    sums.bind(job.run_id)?.push(", ");
    sums.bind(chunk.user.0)?.push(", ");
    sums.bind(credited * games)?.push(", ");
    sums.bind(credited * positions)?.push(
        ") ON CONFLICT (run_id, user_id) DO UPDATE SET games = credits.games + excluded.games,
           positions = credits.positions + excluded.positions",
    );
    Ok(sums)
}

fn told(job: &JobRow, chunk: &ChunkDraft) -> Result<Event> {
    Ok(Event::Chunk {
        run: job.run()?,
        work: job.kind()?,
        contributor: job.contributor.clone(),
        games: chunk.games.len() as u32,
        positions: chunk.positions(),
    })
}

/// Moves the match's tally, if it is open; ratings follow from tallies.
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
    let completed = pairs::enter(conn, id, chunk.job, &chunk.games).await?;
    let mut decided = false;
    if m.status == MatchStatus::Open
        && let Some(completed) = completed
    {
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
    held: i64,
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
            held: self.held != 0,
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
        "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at, held
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
        "SELECT sequence, hash, kind, network, bytes, games, positions, accepted_at, held
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
