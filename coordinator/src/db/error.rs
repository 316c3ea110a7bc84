//! How operations of the database fail.

use rookery_common::chunk::ChunkErrorCode;
use sqlx::migrate::MigrateError;

use super::sql::dialect::FIRST_STEP;
use super::types::CANDIDATES;

/// An operation that was not done: nothing of it is in the ledger.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// What was asked for does not exist; the text names it.
    #[error("there is no {0}")]
    NotFound(String),
    #[error("the name {0:?} is taken")]
    NameTaken(String),
    /// The name looks like another user's.
    #[error(
        "the name {name:?} looks like {like:?}, which is taken: choose one that cannot be confused with it"
    )]
    NameAlike {
        name: String,
        /// The other user's.
        like: String,
    },
    /// The invitation does not admit anyone; the text says why.
    #[error("the invitation {0}")]
    Invitation(&'static str),
    /// The present state does not allow it; the text says why.
    #[error("{0}")]
    Conflict(String),
    /// The token that asks for it was good when the request came, and is not any more.
    #[error("the token was revoked, or its user blocked, while the request was on its way")]
    Revoked,
    /// The lease is over and its games were given to another.
    #[error("{0}")]
    LeaseEnded(String),
    /// The contributor, or one worker of it, holds as many leases as it may.
    #[error(
        "this {holder} has {most} open leases, the limit: upload what is finished, then give the rest \
         back by DELETE /jobs/{{id}}; a lease without an upload counts until it expires"
    )]
    TooManyLeases {
        /// `contributor` or `worker`.
        holder: &'static str,
        /// How many it may hold.
        most: u32,
        /// Until the first lease may have ended.
        wait: std::time::Duration,
    },
    /// As many candidates wait as may.
    #[error(
        "{most} candidates of run {0} wait for their gates, the limit: submit again when one is \
         decided, or let an operator reject some (run reject)",
        most = CANDIDATES
    )]
    TooManyCandidates(String),
    /// A game of the chunk cannot be counted.
    #[error("game {game} cannot be counted: {reason}")]
    Game {
        /// Its place in the chunk, from 0.
        game: u32,
        reason: GameRefusal,
    },
    /// The ledger holds something that this build cannot read.
    #[error("the ledger holds an unreadable {what}: {reason}")]
    Unreadable {
        what: &'static str,
        /// Why it cannot be read.
        reason: String,
    },
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    /// The database could not be brought to this build's schema.
    #[error("RK-0235: the database could not be migrated: {0}")]
    Migration(#[source] MigrateError),
    /// A later version of the program has changed the schema.
    #[error(
        "RK-0203: the ledger is of a newer rookery-coordinator (step {0} of its schema is not known here): run \
         that version, or restore the backup from before the upgrade"
    )]
    Newer(i64),
    /// A build before 0.1.0 has made the ledger.
    #[error(
        "RK-0226: the ledger is of a rookery-coordinator from before 0.1.0: stop every coordinator on it, copy it into a new \
         database by `ledger copy --to URL`, and serve that one"
    )]
    Legacy,
    /// The database's URL cannot be used.
    #[error("the address of the database cannot be used: {0}")]
    Address(String),
    /// The database's server cannot be used, which is for the operator to change.
    #[error("RK-0207: the database cannot be reached ({reason}): {advice}")]
    Unreachable {
        /// What the attempt gave.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The database cannot be reached now; nothing was done.
    #[error("the database cannot be reached now: {0}")]
    Unavailable(std::sync::Arc<str>),
    /// The operation was done, but perhaps it is not durable: its transaction failed or was cut
    /// off. To try again is safe.
    #[error("the transaction could not be committed: {0}")]
    Commit(std::sync::Arc<str>),
    /// So many wait already that this would have waited too long; nothing was done.
    #[error("more wait for the ledger than it serves in {} s", wait.as_secs())]
    Behind {
        /// How long it would have waited.
        wait: std::time::Duration,
    },
    /// A bug in the operation; nothing was done.
    #[error("RK-0237: an operation of the ledger failed by a bug: {0}")]
    Bug(#[from] crate::panics::Panicked),
    /// The database was closed because the program is stopping.
    #[error("the coordinator is stopping; try again in a minute")]
    Closed,
}

impl From<MigrateError> for DbError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::VersionMissing(step) if step < FIRST_STEP => Self::Legacy,
            MigrateError::VersionMissing(step) => Self::Newer(step),
            error => Self::Migration(error),
        }
    }
}

impl DbError {
    /// Whether the same operation may succeed a little later: the database is away or busy.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Database(error) => super::sql::is_temporary(error),
            Self::Unreachable { .. }
            | Self::Unavailable(_)
            | Self::Commit(_)
            | Self::Behind { .. }
            | Self::Closed => true,
            _ => false,
        }
    }
}

/// Why a well-formed game is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GameRefusal {
    /// Another chunk of the same job holds a game of this index.
    #[error("its index was counted in another chunk of the job")]
    IndexCounted,
    /// The run has a game with the same moves and visits.
    #[error("the run has the same game already")]
    Duplicate,
}

impl GameRefusal {
    /// The stable code that goes into `Problem::chunk_error`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::IndexCounted => ChunkErrorCode::DuplicateIndex.as_str(),
            Self::Duplicate => ChunkErrorCode::DuplicateGame.as_str(),
        }
    }
}

pub type Result<T> = std::result::Result<T, DbError>;
