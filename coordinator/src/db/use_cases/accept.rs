//! Chunks that come in: the one way for games into the ledger.
//!
//! [`accept`] is the transaction behind acknowledgements: chunks and games, the sums of jobs, runs,
//! networks and contributors, and what follows for a match, a puzzle score or an audit. Chunks of
//! training games that come together are entered together.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use rookery_common::ids::{ContentHash, JobId, MatchId, RunName};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkReceipt, WorkKind};
use rookery_common::protocol::matches::MatchStatus;
use sqlx::AnyConnection;

use crate::db::error::{DbError, Result};
use crate::db::models::accepted_chunk::AcceptedChunk;
use crate::db::models::chunks::ChunkSelection;
use crate::db::models::leases::{self, JobRow};
use crate::db::models::matches::Match;
use crate::db::models::{audits, chunks, games, matches, pairs, puzzles, runs};
use crate::db::sql::rows::{count, hash, job_bytes, to_json, unreadable};
use crate::db::sql::statement::{Statement, parts};
use crate::db::trust::ChunkStatus;
use crate::db::types::{ChunkAccepted, ChunkDraft, RatingsState};
use crate::db::use_cases::exclusions;
use crate::db::use_cases::{audit_results, match_results, sums};
use crate::trust::rate::{audit_chance, sampling_key};

/// A chunk that was sent, and when.
#[derive(Clone)]
pub(in crate::db) struct ChunkUpload {
    pub(in crate::db) chunk: Arc<ChunkDraft>,
    pub(in crate::db) now: Timestamp,
}

/// Accepts chunks: those of training games together, then the others one after the other, because
/// what follows from them may change what is to be done with the next.
pub(in crate::db) async fn accept(
    conn: &mut AnyConnection,
    sent: Arc<[ChunkUpload]>,
) -> Result<Vec<Result<ChunkAccepted>>> {
    let wanted: Vec<JobId> = sent.iter().map(|sent| sent.chunk.job).collect();
    let jobs = leases::find_all(conn, &wanted).await?;
    let mut answers = Vec::with_capacity(sent.len());
    let (mut training, mut others) = (Vec::new(), Vec::new());
    for (place, sent) in sent.iter().enumerate() {
        answers.push(Err(leases::unknown(sent.chunk.job)));
        let job = jobs.get(&sent.chunk.job);
        match job.filter(|job| job.user_id == sent.chunk.user.0) {
            None => {}
            Some(job) if job.kind()?.is_training() => training.push((place, (sent, job))),
            Some(_) => others.push((place, sent)),
        }
    }
    let (places, together): (Vec<usize>, Vec<_>) = training.into_iter().unzip();
    let entered = enter(conn, &together).await?;
    for ((place, (sent, job)), entered) in places.into_iter().zip(&together).zip(entered) {
        answers[place] = Ok(match entered {
            Some(entered) => train_on(conn, &entered).await?,
            None => known(conn, &sent.chunk, job.run()?).await?,
        });
    }
    for (place, sent) in others {
        let job = leases::find_own(conn, sent.chunk.job, sent.chunk.user).await?;
        let entered = enter(conn, &[(sent, &job)]).await?;
        answers[place] = Ok(match entered.into_iter().flatten().next() {
            Some(entered) => apply(conn, entered).await?,
            None => known(conn, &sent.chunk, job.run()?).await?,
        });
    }
    Ok(answers)
}

/// Enters chunks with their games and moves all sums but those of matches and puzzles. None stands
/// for a chunk that is in the ledger already.
async fn enter<'a>(
    conn: &mut AnyConnection,
    arrivals: &[(&'a ChunkUpload, &'a JobRow)],
) -> Result<Vec<Option<AcceptedChunk<'a>>>> {
    let mut sequences = insert(conn, arrivals).await?;
    let mut all = Vec::with_capacity(arrivals.len());
    for &(sent, job) in arrivals {
        // Of the same chunk sent twice at once the second one is known.
        let Some(sequence) = sequences.remove(&sent.chunk.hash) else {
            all.push(None);
            continue;
        };
        let kind = job.kind()?;
        let played_in = match job.match_id {
            Some(id) => Some(matches::load(conn, MatchId(id)).await?),
            None => None,
        };
        let state = match kind {
            WorkKind::Audit => ChunkStatus::Counted,
            _ => ChunkStatus::of_column(job.quarantined),
        };
        all.push(Some(AcceptedChunk {
            job,
            chunk: &sent.chunk,
            sequence,
            networks: match &played_in {
                Some(m) => (m.candidate, m.opponent),
                None => (job.network()?, job.network()?),
            },
            played_in,
            kind,
            state,
            now: sent.now,
        }));
    }
    let entered: Vec<&AcceptedChunk<'_>> = all.iter().flatten().collect();
    games::insert(conn, &entered).await?;
    sums::add_up(conn, &entered).await?;
    open_audits(conn, &entered).await?;
    for held in entered.iter().filter(|e| e.state == ChunkStatus::Excluded) {
        let reason = "the contributor is in quarantine";
        exclusions::note(
            conn,
            ChunkSelection::One(held.sequence),
            held.state,
            reason,
            held.now,
        )
        .await?;
    }
    Ok(all)
}

/// Enters chunks and gives their places in the ledger; those that are there have none.
async fn insert(
    conn: &mut AnyConnection,
    arrivals: &[(&ChunkUpload, &JobRow)],
) -> Result<HashMap<ContentHash, i64>> {
    let mut sequences = HashMap::with_capacity(arrivals.len());
    for part in parts(arrivals) {
        let mut query = Statement::new(
            "INSERT INTO chunks (run_id, hash, job_id, user_id, kind, network, bytes, games,
               positions, backend, worker_version, accepted_at, searches)",
        );
        query.rows(part, |row, (ChunkUpload { chunk, now }, job)| {
            row.bind(job.run_id)?
                .bind(chunk.hash.as_bytes().to_vec())?
                .bind(job_bytes(chunk.job))?
                .bind(chunk.user.0)?
                .bind(job.kind.clone())?
                .bind(job.network)?
                .bind(count(chunk.bytes))?
                .bind(chunk.games.len() as i64)?
                .bind(i64::from(chunk.positions()))?
                .bind(chunk.backend.clone())?
                .bind(chunk.worker_version.clone())?
                .bind(now.as_millisecond())?
                .bind(chunk.searches.as_ref().map(to_json).transpose()?)?;
            Ok(())
        })?;
        query.push(" ON CONFLICT (hash) DO NOTHING RETURNING hash, sequence");
        let (sql, arguments) = query.finish();
        let rows: Vec<(Vec<u8>, i64)> = sqlx::query_as_with(sql, arguments)
            .fetch_all(&mut *conn)
            .await?;
        for (bytes, sequence) in rows {
            sequences.insert(hash(&bytes)?, sequence);
        }
    }
    Ok(sequences)
}

/// Opens audits of those chunks that are drawn.
async fn open_audits(conn: &mut AnyConnection, entered: &[&AcceptedChunk<'_>]) -> Result<()> {
    let mut openings = Vec::new();
    for e in entered {
        if e.kind == WorkKind::Audit || e.state == ChunkStatus::Excluded {
            continue;
        }
        let positions = e.chunk.positions();
        let below = audit_chance(e.job.track_record()?, positions);
        if e.chunk.chance < below {
            openings.push(audits::Opening {
                run: e.job.run_id,
                chunk: e.sequence,
                user: e.job.user_id,
                cause: audits::Cause::Sampled,
                sampling_key: sampling_key(e.chunk.chance / below, positions),
                at: e.now,
            });
        }
    }
    audits::open(conn, &openings).await
}

/// What follows from a chunk of training games.
async fn train_on(conn: &mut AnyConnection, entered: &AcceptedChunk<'_>) -> Result<ChunkAccepted> {
    if entered.kind == WorkKind::Puzzles && entered.state == ChunkStatus::Counted {
        let groups = puzzles::groups(&entered.chunk.games);
        let network = entered.job.network()?;
        puzzles::add_scores(conn, entered.job.run_id, network, &groups).await?;
    }
    accepted(entered, vec![told(entered)?], RatingsState::Fresh)
}

/// What follows from a chunk of a match or of an audit.
async fn apply(conn: &mut AnyConnection, mut entered: AcceptedChunk<'_>) -> Result<ChunkAccepted> {
    let mut events = vec![told(&entered)?];
    let played_in = entered.played_in.take();
    let ratings = match entered.kind {
        _ if entered.state == ChunkStatus::Excluded => RatingsState::Fresh,
        WorkKind::Audit => {
            let (job, chunk, now) = (entered.job, entered.chunk, entered.now);
            let effects = audit_results::answer(conn, job, chunk, entered.sequence, now).await?;
            if effects.stale.is_empty() {
                RatingsState::Fresh
            } else {
                RatingsState::Stale
            }
        }
        WorkKind::Match => {
            let m = played_in.ok_or_else(|| unreadable("job", &"a match job without a match"))?;
            count_match(conn, &entered, m, &mut events).await?
        }
        WorkKind::SelfPlay | WorkKind::Puzzles => RatingsState::Fresh,
    };
    accepted(&entered, events, ratings)
}

fn accepted(
    entered: &AcceptedChunk<'_>,
    events: Vec<Event>,
    ratings: RatingsState,
) -> Result<ChunkAccepted> {
    let chunk = entered.chunk;
    let receipt = ChunkReceipt {
        hash: chunk.hash,
        sequence: entered.sequence,
        games: chunk.games.len() as u32,
        positions: chunk.positions(),
        duplicate: false,
    };
    Ok(ChunkAccepted {
        receipt,
        events,
        run: entered.job.run()?,
        ratings,
    })
}

/// The answer to a chunk that is in the ledger already.
async fn known(
    conn: &mut AnyConnection,
    chunk: &ChunkDraft,
    run: RunName,
) -> Result<ChunkAccepted> {
    let (user, receipt) = chunks::receipt(conn, &chunk.hash)
        .await?
        .ok_or_else(|| unreadable("chunk", &chunk.hash))?;
    if user != chunk.user {
        let detail = format!("chunk {} was sent by another contributor", chunk.hash);
        return Err(DbError::Conflict(detail));
    }
    Ok(ChunkAccepted {
        receipt,
        events: Vec::new(),
        run,
        ratings: RatingsState::Fresh,
    })
}

fn told(entered: &AcceptedChunk<'_>) -> Result<Event> {
    Ok(Event::Chunk {
        run: entered.job.run()?,
        work: entered.kind,
        contributor: entered.job.contributor.clone(),
        games: entered.chunk.games.len() as u32,
        positions: entered.chunk.positions(),
    })
}

/// Moves the match's tally, if it is open; ratings follow from tallies.
async fn count_match(
    conn: &mut AnyConnection,
    entered: &AcceptedChunk<'_>,
    m: Match,
    events: &mut Vec<Event>,
) -> Result<RatingsState> {
    let (job, chunk) = (entered.job, entered.chunk);
    let completed = pairs::enter(conn, m.id, chunk.job, &chunk.games).await?;
    let mut decided = false;
    if m.status == MatchStatus::Open
        && let Some(completed) = completed
    {
        let told =
            match_results::count_pairs(conn, m, &completed, entered.sequence, entered.now).await?;
        decided = told.iter().any(
            |event| matches!(event, Event::Match { status, .. } if *status != MatchStatus::Open),
        );
        events.extend(told);
    }
    if decided {
        // Whoever is told so may end before it has fitted them.
        runs::make_stale(conn, job.run_id).await?;
    }
    let unrated: i64 = sqlx::query_scalar(
        "UPDATE runs SET unrated_games = unrated_games + $2 WHERE id = $1 RETURNING unrated_games",
    )
    .bind(job.run_id)
    .bind(chunk.games.len() as i64)
    .fetch_one(conn)
    .await?;
    Ok(if unrated >= runs::UNRATED_GAMES {
        RatingsState::Stale
    } else {
        RatingsState::Fresh
    })
}
