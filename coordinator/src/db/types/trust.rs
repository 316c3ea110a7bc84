//! What goes into the database's operations on audits and quarantines and comes out.

use rookery_common::audit::{Disagreement, SampledGame, Span};
use rookery_common::ids::{ContentHash, NetworkNumber, RunName};
use rookery_common::protocol::audits::{AuditTask, AuditedRules};
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{Backend, Work};
use serde::{Deserialize, Serialize};

use crate::trust::rate::TrackRecord;

/// What an auditor's chunk says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditOpinion {
    /// How far its searches are from those of the audited chunk.
    pub found: Disagreement,
    /// Where the audited chunk and the auditor's were computed.
    pub backends: (Backend, Backend),
}

/// What an auditor is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPlan {
    /// By which rules the games were played.
    pub rules: AuditedRules,
    /// What is searched again.
    pub spans: Vec<Span>,
    /// The same as the auditor is told.
    pub tasks: Vec<AuditTask>,
}

/// Who audits, and how much was audited within a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditorActivity {
    /// Whether the operator has named an auditor: a token of the scope `audit`.
    pub named: bool,
    /// Positions that such auditors have searched again.
    pub by_auditors: u64,
    /// Positions that other contributors have searched again.
    pub by_contributors: u64,
    /// Positions that came in, without those of audits.
    pub positions: u64,
}

/// Networks of a run that may have learnt from a contributor's games.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exposure {
    pub run: RunName,
    /// When the contributor's first training games came in.
    pub since: String,
    /// The networks that were submitted later, in ascending order.
    pub networks: Vec<NetworkNumber>,
    /// Whether best is among them.
    pub best: bool,
}

/// What to do where nobody is trusted.
pub const NAME_AN_AUDITOR: &str =
    "rookery-coordinator user create auditor --scope contribute --scope audit";

/// An audit whose chunk has not been read yet.
#[derive(Debug, Clone)]
pub struct UnplannedAudit {
    pub id: i64,
    pub chunk: ContentHash,
    /// By which rules its games were played.
    pub rules: AuditedRules,
    /// Their work, where games draw plies from the policy before their first search.
    pub drawing: Option<Work>,
    pub games: Vec<SampledGame>,
    /// Whose they are, if the chunk was drawn by chance; none if something else is the cause.
    pub sampled_from: Option<TrackRecord>,
}

#[derive(Debug, Clone)]
pub struct AuditedChunk {
    pub hash: ContentHash,
    /// What of it is searched again; game `i` of the audit is span `i`.
    pub spans: Vec<Span>,
}

/// Whether chunks count in training, matches and ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkStatus {
    /// They do not.
    Excluded,
    /// They do.
    Counted,
}

/// Someone's decision to hold chunks or to let them go.
#[derive(Debug, Clone)]
pub struct ExclusionOrder {
    /// What they are from now on.
    pub state: ChunkStatus,
    pub reason: String,
}

/// What follows from chunks that are held or let go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExclusionEffects {
    /// Runs in which results between networks changed, so that ratings are to be fitted again.
    pub stale: Vec<RunName>,
    /// What to tell those who listen: matches that ended by pairs that count again.
    pub events: Vec<Event>,
}

impl ChunkStatus {
    pub(crate) const fn of_column(held: i64) -> Self {
        if held == 0 {
            Self::Counted
        } else {
            Self::Excluded
        }
    }

    pub(crate) const fn column(self) -> i64 {
        match self {
            Self::Excluded => 1,
            Self::Counted => 0,
        }
    }
}
