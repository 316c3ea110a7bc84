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
use crate::db::sql::savepoints::{begin_part, end_part};
use crate::db::sql::statement::{Statement, parts};
use crate::db::types::ChunkStatus;
use crate::db::types::{ChunkAccepted, ChunkDraft, RatingsState};
use crate::db::use_cases::exclusions;
use crate::db::use_cases::{audit_results, match_results, sums, training_audits};
use crate::trust::rate::{audit_chance, match_positions, sampling_key};

#[derive(Clone)]
pub(crate) struct ChunkUpload {
    pub(crate) chunk: Arc<ChunkDraft>,
    pub(crate) now: Timestamp,
}

/// Accepts uploads: chunks of training games together, then each of the others by itself, because what
/// follows from one may change the next: a quarantine, a decided match. One that is refused changes nothing, and the others
/// count.
pub(crate) async fn accept(
    conn: &mut AnyConnection,
    uploads: Arc<[ChunkUpload]>,
) -> Result<Vec<Result<ChunkAccepted>>> {
    let ids: Vec<JobId> = uploads.iter().map(|upload| upload.chunk.job).collect();
    let jobs = leases::find_all(conn, &ids).await?;
    let own = |upload: &ChunkUpload| {
        let (id, user) = (upload.chunk.job, upload.chunk.user);
        let job = jobs.get(&id).filter(|job| job.user_id == user.0);
        let job = job.ok_or_else(|| leases::unknown(id))?;
        job.check_run(id).map(|()| job)
    };
    let mut training = Vec::new();
    for upload in uploads.iter() {
        if let Ok(job) = own(upload)
            && job.kind()?.is_training()
        {
            training.push((upload, job));
        }
    }
    let mut training = enter_training(conn, &training).await?.into_iter();
    let mut replies = Vec::with_capacity(uploads.len());
    let mut stale = false;
    for upload in uploads.iter() {
        let job = match own(upload) {
            Ok(job) => job,
            Err(error) => {
                replies.push(Err(error));
                continue;
            }
        };
        if job.kind()?.is_training() {
            let entered = training.next().unwrap_or(Ok(None));
            replies.push(match entered {
                Ok(entered) => Ok(reply(conn, upload, job, entered).await?),
                Err(error) => Err(error),
            });
            continue;
        }
        begin_part(conn).await?;
        let accepted = accept_one(conn, upload, (!stale).then_some(job)).await;
        stale = true;
        replies.push(end_part(conn, accepted).await?);
    }
    Ok(replies)
}

/// Enters chunks of training games together. If one of them is refused, they are entered one by one, each in a savepoint: a
/// repeated game costs its own chunk only.
async fn enter_training<'a>(
    conn: &mut AnyConnection,
    arrivals: &[(&'a ChunkUpload, &'a JobRow)],
) -> Result<Vec<Result<Option<AcceptedChunk<'a>>>>> {
    if arrivals.len() > 1 {
        begin_part(conn).await?;
        let together = enter(conn, arrivals).await;
        if let Ok(all) = end_part(conn, together).await? {
            return Ok(all.into_iter().map(Ok).collect());
        }
    }
    let mut all = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        begin_part(conn).await?;
        let alone = enter(conn, std::slice::from_ref(arrival)).await;
        let alone = alone.map(|mut one| one.pop().flatten());
        all.push(end_part(conn, alone).await?);
    }
    Ok(all)
}

/// Accepts a chunk of a match or an audit; its job is read again if none is given.
async fn accept_one(
    conn: &mut AnyConnection,
    upload: &ChunkUpload,
    job: Option<&JobRow>,
) -> Result<ChunkAccepted> {
    let reread;
    let job = match job {
        Some(job) => job,
        None => {
            reread = leases::find_own(conn, upload.chunk.job, upload.chunk.user).await?;
            &reread
        }
    };
    let entered = enter(conn, &[(upload, job)]).await?.pop().flatten();
    reply(conn, upload, job, entered).await
}

/// What is answered to an upload that was entered, or is in the ledger already.
async fn reply(
    conn: &mut AnyConnection,
    upload: &ChunkUpload,
    job: &JobRow,
    entered: Option<AcceptedChunk<'_>>,
) -> Result<ChunkAccepted> {
    match entered {
        Some(entered) => follow_up(conn, entered).await,
        None => duplicate(conn, &upload.chunk, job.run()?).await,
    }
}

/// Inserts chunks with their games and moves all sums but those of matches. None stands for a chunk
/// that is in the ledger already.
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
    for chunk in entered {
        if chunk.state == ChunkStatus::Excluded {
            let reason = "the contributor is in quarantine";
            let which = ChunkSelection::One(chunk.sequence);
            exclusions::note(conn, which, chunk.state, reason, chunk.now).await?;
        } else if chunk.kind == WorkKind::Puzzles {
            let groups = puzzles::groups(&chunk.chunk.games);
            let network = (chunk.job.run_id, chunk.job.network);
            puzzles::move_scores(conn, network, &groups, chunk.state).await?;
        }
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
        let rows: Vec<(Vec<u8>, i64)> = query.fetch_all(&mut *conn).await?;
        for (bytes, sequence) in rows {
            sequences.insert(hash(&bytes)?, sequence);
        }
    }
    Ok(sequences)
}

/// Opens audits of those chunks that are drawn; training waits for those of newcomers.
async fn open_audits(conn: &mut AnyConnection, entered: &[&AcceptedChunk<'_>]) -> Result<()> {
    let mut drawn = Vec::new();
    for e in entered {
        if e.kind == WorkKind::Audit || e.state == ChunkStatus::Excluded {
            continue;
        }
        let positions = match e.kind {
            WorkKind::Match => match_positions(e.chunk.games.len() as u32, e.chunk.positions()),
            _ => e.chunk.positions(),
        };
        let below = audit_chance(e.job.track_record()?, positions);
        if e.chunk.chance < below {
            drawn.push(audits::NewAudit {
                run: e.job.run_id,
                chunk: e.sequence,
                user: e.job.user_id,
                cause: audits::Cause::Sampled,
                sampling_key: sampling_key(e.chunk.chance / below, positions),
                at: e.now,
            });
        }
    }
    audits::open(conn, &drawn).await?;
    training_audits::await_newcomers(conn, entered).await
}

/// What follows from a new chunk: a match goes on, an audit is answered.
async fn follow_up(
    conn: &mut AnyConnection,
    mut entered: AcceptedChunk<'_>,
) -> Result<ChunkAccepted> {
    let (job, chunk) = (entered.job, entered.chunk);
    let mut events = vec![Event::Chunk {
        run: job.run()?,
        work: entered.kind,
        contributor: job.contributor.clone(),
        games: chunk.games.len() as u32,
        positions: chunk.positions(),
    }];
    let played_in = entered.played_in.take();
    let ratings = match entered.kind {
        _ if entered.state == ChunkStatus::Excluded => RatingsState::Fresh,
        WorkKind::Audit => {
            let (sequence, now) = (entered.sequence, entered.now);
            let effects = audit_results::answer(conn, job, chunk, sequence, now).await?;
            events.extend(effects.events);
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
    Ok(ChunkAccepted {
        receipt: ChunkReceipt {
            hash: chunk.hash,
            sequence: entered.sequence,
            games: chunk.games.len() as u32,
            positions: chunk.positions(),
            duplicate: false,
        },
        events,
        run: job.run()?,
        ratings,
        is_held: entered.state == ChunkStatus::Excluded,
    })
}

/// The answer to a chunk that is in the ledger already.
async fn duplicate(
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
        is_held: false,
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
