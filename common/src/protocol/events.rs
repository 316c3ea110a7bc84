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
        /// The kind of its job.
        work: WorkKind,
        /// The contributor's name.
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
    /// A match's tally changed, or the match was decided.
    Match {
        /// The run.
        run: RunName,
        /// The match's number.
        id: MatchId,
        /// Whether it is open or how it was decided.
        status: MatchStatus,
        /// Wins, draws, losses and pairs, as the candidate sees them.
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
    /// An earlier network is best again: the ratings say that it is probably stronger.
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
    /// A live game has new moves.
    Board(LiveBoard),
    /// A job whose game was shown live is over.
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
        /// The last optimiser step of the report.
        step: u64,
    },
    /// Events were lost on the way: a client loads what it shows anew.
    Missed {
        /// The number of lost events, if it is known.
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
