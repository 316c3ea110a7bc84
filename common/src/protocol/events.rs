//! What `/api/v1/events` tells live, as server-sent events: the event's name is `kind`, its data
//! the whole object.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::boards::LiveBoard;
use super::jobs::WorkKind;
use super::matches::MatchStatus;
use crate::ids::{ContentHash, JobId, MatchId, NetworkNumber, RunName};
use crate::rating::pentanomial::Tally;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Event {
    /// A chunk was acknowledged.
    Chunk {
        /// The run.
        run: RunName,
        /// What it was played for.
        work: WorkKind,
        /// Who played.
        contributor: String,
        /// Its games.
        games: u32,
        /// Its positions.
        positions: u32,
    },
    /// A network was submitted.
    Network {
        /// The run.
        run: RunName,
        /// Its number.
        number: NetworkNumber,
        /// Its file's SHA-256.
        hash: ContentHash,
    },
    /// A match's tally moved or the match was decided.
    Match {
        /// The run.
        run: RunName,
        /// The match.
        id: MatchId,
        /// Where it stands.
        status: MatchStatus,
        /// Its tally.
        tally: Tally,
        /// The log-likelihood ratio, if the rule is a sequential test.
        llr: Option<f64>,
    },
    /// A candidate became best.
    Promotion {
        /// The run.
        run: RunName,
        /// Its number.
        number: NetworkNumber,
        /// Its file's SHA-256.
        hash: ContentHash,
    },
    /// An earlier network is best again, as the ratings make it likely that it is stronger.
    Rollback {
        /// The run.
        run: RunName,
        /// Its number.
        number: NetworkNumber,
        /// Its file's SHA-256.
        hash: ContentHash,
    },
    /// The ratings were fitted again.
    Ratings {
        /// The run.
        run: RunName,
    },
    /// A game that is being played went on.
    Board(LiveBoard),
    /// A job whose game was shown is over.
    BoardEnded {
        /// The run.
        run: RunName,
        /// The job.
        job: JobId,
    },
    /// The trainer reported metrics.
    Metrics {
        /// The run.
        run: RunName,
        /// The last step.
        step: u64,
    },
    /// Events were lost on the way: what is shown is to be asked for again.
    Missed {
        /// How many, if that is known.
        events: Option<u64>,
    },
}

impl Event {
    /// The event's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Chunk { .. } => "chunk",
            Self::Network { .. } => "network",
            Self::Match { .. } => "match",
            Self::Promotion { .. } => "promotion",
            Self::Rollback { .. } => "rollback",
            Self::Ratings { .. } => "ratings",
            Self::Board(_) => "board",
            Self::BoardEnded { .. } => "board-ended",
            Self::Metrics { .. } => "metrics",
            Self::Missed { .. } => "missed",
        }
    }
}
