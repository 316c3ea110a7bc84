//! A chunk's way from bytes to the ledger.
//!
//! ```text
//! hash ─> lease ─> known already? ─> verify (off the async threads) ─> store durably ─> ledger
//! ```
//!
//! The ledger's row is written last: a chunk that is in the ledger is in the store. A chunk whose
//! row is refused stays in the store without harm.

use std::time::Instant;

use bytes::Bytes;
use rookery_common::chunk::{
    Caps, ChunkError, ChunkHeader, ChunkReader, GameKind, GameSummary, Lease, PlayedOn, verify,
};
use rookery_common::ids::{ContentHash, JobId, RunName, UserId};
use rookery_common::protocol::jobs::Work;
use tokio::task::JoinError;

use crate::app::App;
use crate::archives::{ArchiveError, read_chunk};
use crate::blobs::{BlobError, BlobKind};
use crate::db::{
    AuditOpinion, AuditedChunk, ChunkAccepted, ChunkDraft, DbError, GameFact, GameFactDetail,
    LeasedJob, Principal, RatingsState, scheduling,
};
use crate::live_boards;
use crate::openings::Opening;
use crate::random;
use crate::telemetry::{self, Underway};
use crate::trust::compare::{self, AuditError};
use crate::trust::verdict::Auditor;

/// Chunks up to this size are hashed where they arrive: another thread would take longer to wake up.
const SMALL_BYTES: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The bytes are not those that the hash names.
    #[error("the body has the hash {actual}, the address says {named}")]
    Hash {
        /// The hash in the address.
        named: ContentHash,
        /// The hash of the bytes.
        actual: ContentHash,
    },
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// It is larger than its number of positions allows.
    #[error(
        "the chunk has {bytes} bytes for {positions} positions; no more than {most} are stored for them"
    )]
    Dense {
        /// Its size.
        bytes: usize,
        positions: usize,
        /// The most that they may take.
        most: usize,
    },
    #[error(transparent)]
    Database(#[from] DbError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The chunk that an audit is about cannot be compared.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The chunk that an audit is about cannot be read.
    #[error("the audited chunk cannot be read: {0}")]
    Archive(#[from] ArchiveError),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// Verification itself broke.
    #[error("the verification ended badly: {0}")]
    Broken(#[from] JoinError),
}

/// Bytes of a chunk that are its header's, and those that each game and each position may take: some
/// times what the largest take, whose every legal move was visited.
const HEADER_BYTES: usize = 8 << 10;
const GAME_BYTES: usize = 8 << 10;
const POSITION_BYTES: usize = 2 << 10;

/// Refuses a chunk that is larger than its games can be.
fn check_density(bytes: usize, games: &[GameSummary]) -> Result<(), IntakeError> {
    let positions: usize = games.iter().map(|game| game.plies as usize).sum();
    let most = HEADER_BYTES + games.len() * GAME_BYTES + positions * POSITION_BYTES;
    if bytes <= most {
        return Ok(());
    }
    Err(IntakeError::Dense {
        bytes,
        positions,
        most,
    })
}

/// What a chunk that is refused or held costs at least, in bytes: verification takes time however small it is.
const LEAST_COST: usize = 256 << 10;

impl IntakeError {
    /// Cost of a refused chunk for its sender's rate limit, by its size: nothing where it was not looked
    /// into. An honest worker's lease may have ended, and no more is counted than was stored then.
    pub fn cost(&self, bytes: usize) -> usize {
        match self {
            Self::Chunk(_)
            | Self::Dense { .. }
            | Self::Database(DbError::Game { .. } | DbError::Conflict(_)) => bytes.max(LEAST_COST),
            Self::Database(DbError::LeaseEnded(_)) => bytes,
            _ => 0,
        }
    }
}

/// Cost of a chunk that is held for its sender's rate limit of refused ones, by its size: it is stored as others are, and of
/// use to nobody until an operator clears its sender.
pub fn held_cost(bytes: usize) -> usize {
    bytes.max(LEAST_COST)
}

/// Takes in a chunk from `sender`.
/// If it fails, nothing was counted.
pub async fn take(
    app: &App,
    sender: &Principal,
    hash: ContentHash,
    bytes: Bytes,
) -> Result<ChunkAccepted, IntakeError> {
    let user = sender.user;
    let size = bytes.len() as u64;
    let turn = app.verifying_of.next(user).await;
    let (header, bytes) = header(app, hash, bytes).await?;
    let job = header.job;
    let leased = match app.db.leased_job(job).await {
        // An audit is over once its answer is in the ledger, which this may be.
        Err(error @ DbError::LeaseEnded(_)) => {
            let accepted = known(app, user, header.run, &hash).await?;
            return accepted.ok_or_else(|| error.into());
        }
        leased => leased?,
    };
    // A chunk names its job: it is new if its job has none in the ledger.
    if leased.games_counted > 0
        && let Some(accepted) = known(app, user, header.run, &hash).await?
    {
        return Ok(accepted);
    }
    if leased.user != user {
        return Err(DbError::NotFound(format!("job {job} of this contributor")).into());
    }
    let (audited, games) = (leased.audited.clone(), leased.work.games());
    let counted_before = leased.games_counted;
    let mut chunk = verified(app, user, hash, size, job, leased, bytes).await?;
    chunk.draft.chance = random::unit()?;
    chunk.draft.auditor = sender.auditor();
    if let Some(audited) = audited {
        chunk.draft.opinion = Some(opinion(app, audited, chunk.bytes.clone()).await?);
    }
    drop(turn);
    let put = app.blobs.put(BlobKind::Chunk, &hash, chunk.bytes);
    telemetry::blob("put", BlobKind::Chunk, put).await?;
    let accepted = app.db.accept_chunk(chunk.draft, app.clock.now()).await;
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            remove_refused(app, &hash, &error).await;
            return Err(error.into());
        }
    };
    if !accepted.receipt.duplicate {
        let part = f64::from(accepted.receipt.games) / f64::from(games.max(1));
        app.limits.returned(user, part);
        count_played_on(&accepted.run, &chunk.played_on);
        if counted_before + accepted.receipt.games >= games {
            live_boards::end(app, job);
        }
    }
    Ok(accepted)
}

/// Takes a chunk out of the store that the ledger has refused for good: its games are another chunk's,
/// its audit is over or of another backend, so that the same bytes are refused whenever they come. What the ledger names
/// stays, and what it could not answer to may be in it.
async fn remove_refused(app: &App, hash: &ContentHash, error: &DbError) {
    if !matches!(
        error,
        DbError::Game { .. } | DbError::LeaseEnded(_) | DbError::Conflict(_)
    ) {
        return;
    }
    let removed = match app.db.receipt(hash).await {
        Ok(Some(_)) => return,
        Ok(None) => app.blobs.remove(BlobKind::Chunk, hash).await,
        Err(error) => return tracing::warn!(%error, "A refused chunk stays in the store."),
    };
    if let Err(error) = removed {
        tracing::warn!(%error, "A refused chunk stays in the store until the next sweep.");
    }
}

struct Verified {
    draft: ChunkDraft,
    /// What its games that were played on say of resigning.
    played_on: Vec<PlayedOn>,
    bytes: Bytes,
}

/// What an audit's chunk says of the chunk that it is about.
async fn opinion(
    app: &App,
    audited: AuditedChunk,
    audit: Bytes,
) -> Result<AuditOpinion, IntakeError> {
    let bytes = read_chunk(&app.db, &*app.blobs, &audited.hash).await?;
    blocking(app, move || {
        Ok(compare::compare(&bytes, &audited.spans, &audit)?)
    })
    .await
}

/// Checks the hash and reads what the chunk says of itself.
async fn header(
    app: &App,
    named: ContentHash,
    bytes: Bytes,
) -> Result<(ChunkHeader, Bytes), IntakeError> {
    let size = bytes.len();
    let open = move || {
        let actual = ContentHash::of(&bytes);
        if actual != named {
            return Err(IntakeError::Hash { named, actual });
        }
        let header = ChunkReader::open(&bytes, &Caps::default())?
            .header()
            .clone();
        Ok((header, bytes))
    };
    if size <= SMALL_BYTES {
        open()
    } else {
        blocking(app, open).await
    }
}

/// The receipt of a chunk that the contributor sent before.
async fn known(
    app: &App,
    user: UserId,
    run: RunName,
    hash: &ContentHash,
) -> Result<Option<ChunkAccepted>, IntakeError> {
    match app.db.receipt(hash).await? {
        Some((sender, receipt)) if sender == user => {
            let (events, ratings) = (Vec::new(), RatingsState::Fresh);
            Ok(Some(ChunkAccepted {
                receipt,
                events,
                run,
                ratings,
                is_held: false,
            }))
        }
        Some(_) => {
            let detail = format!("chunk {hash} was sent by another contributor");
            Err(DbError::Conflict(detail).into())
        }
        None => Ok(None),
    }
}

async fn verified(
    app: &App,
    user: UserId,
    hash: ContentHash,
    size: u64,
    job: JobId,
    leased: LeasedJob,
    bytes: Bytes,
) -> Result<Verified, IntakeError> {
    let parts = app.clone();
    blocking(app, move || {
        let LeasedJob {
            run, work, seed, ..
        } = &leased;
        let lease = Lease {
            run,
            job,
            seed: *seed,
            work,
            tables: parts.tables.get().map(Box::as_ref),
        };
        let chunk = verify(&bytes, &Caps::default(), &lease)?;
        check_density(bytes.len(), &chunk.games)?;
        let played_on = chunk.games.iter().filter_map(|game| game.played_on);
        let played_on = played_on.collect();
        let searches = chunk.games.iter().filter_map(|game| game.searches);
        let searches = searches.reduce(|mut sum, game| {
            sum += game;
            sum
        });
        let draft = ChunkDraft {
            hash,
            bytes: size,
            user,
            job,
            backend: chunk.header.backend.name().to_owned(),
            worker_version: chunk.header.worker_version,
            games: chunk
                .games
                .into_iter()
                .map(|game| fact(game, work))
                .collect(),
            searches,
            chance: 1.0,
            opinion: None,
            auditor: Auditor::Volunteer,
        };
        Ok(Verified {
            draft,
            played_on,
            bytes,
        })
    })
    .await
}

/// Counts what games that were played on say of resigning.
fn count_played_on(run: &RunName, games: &[PlayedOn]) {
    for game in games {
        let (run, outcome) = (run.to_string(), game.name());
        metrics::counter!("rookery_played_on_games_total", "run" => run, "outcome" => outcome)
            .increment(1);
    }
}

/// Runs work that keeps a core busy, at most as many at a time as there are cores.
async fn blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, IntakeError> + Send + 'static,
) -> Result<T, IntakeError> {
    let waiting = Underway::begin("rookery_verifications_waiting");
    let turn = app.verifying.next().await;
    drop(waiting);
    let begun = Instant::now();
    let answer = turn.work(work).await;
    metrics::histogram!("rookery_verification_duration_seconds")
        .record(begun.elapsed().as_secs_f64());
    answer?
}

/// What the ledger keeps of a verified game.
fn fact(game: GameSummary, work: &Work) -> GameFact {
    let (detail, fingerprint) = match game.kind {
        GameKind::SelfPlay { .. } => {
            let unique = scheduling::must_be_unique(game.plies).then_some(game.fingerprint);
            (GameFactDetail::SelfPlay, unique)
        }
        GameKind::Match { pair, candidate } => (GameFactDetail::Match { pair, candidate }, None),
        GameKind::Audit { .. } => (GameFactDetail::Audit, None),
        GameKind::Puzzle { puzzle, solved } => {
            let posed = match work {
                Work::Puzzles { puzzles, .. } => puzzles.get(game.index as usize),
                Work::SelfPlay { .. } | Work::Match { .. } | Work::Audit { .. } => None,
            };
            let (rating, themes) = posed
                .map(|posed| (posed.rating, posed.themes.clone()))
                .unwrap_or_default();
            (
                GameFactDetail::Puzzle {
                    id: puzzle,
                    solved,
                    rating,
                    themes,
                },
                None,
            )
        }
    };
    GameFact {
        index: game.index,
        result: game.end.result,
        termination: game.end.termination,
        plies: game.plies,
        opening: Opening::of(game.first_positions.iter()),
        fingerprint,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_verified_in_vain_is_charged_to_its_sender() {
        let cost = |error| IntakeError::Database(error).cost(1);
        assert_eq!(
            cost(DbError::Conflict("another backend".into())),
            LEAST_COST
        );
        assert_eq!(cost(DbError::LeaseEnded("late".into())), 1);
        assert_eq!(cost(DbError::Closed), 0);
    }
}
