//! Trust: what audits have shown of contributors, and which chunks are held out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::jobs::WorkKind;
use crate::ids::ContentHash;

/// How far a contributor is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrustLevel {
    /// Every chunk is audited until enough audits were passed.
    Probation,
    /// A share of the chunks is audited.
    Trusted,
    /// All chunks are held out of training, matches and ratings.
    Quarantined,
}

/// What audits have shown of a contributor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrustInfo {
    /// The contributor's name.
    pub name: String,
    /// How far the contributor is trusted.
    pub level: TrustLevel,
    /// Audits passed since the last one that failed.
    pub audits_passed: u32,
    /// Audits failed, ever.
    pub audits_failed: u32,
    /// Audits of the contributor's chunks that are not decided yet.
    pub audits_open: u32,
    /// The share of the contributor's audits that are full, 0 to 1; the others are brief.
    pub audit_rate: f64,
    /// Positions of the contributor's games that were searched again, once for each auditor.
    #[serde(default)]
    pub audited_positions: u64,
    /// Chunks that are held out.
    pub held_chunks: u32,
    /// Why the contributor is in quarantine.
    #[serde(default)]
    pub quarantine: Option<QuarantineInfo>,
    /// The contributor's workers that get no jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_workers: Vec<WorkerBlock>,
    /// The newest of the chunks that are held out, at most 20, the newest first.
    #[serde(default)]
    pub held: Vec<HeldChunk>,
}

/// A chunk that is held out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldChunk {
    /// The chunk.
    pub chunk: ContentHash,
    /// Its run.
    pub run: String,
    /// What its games were played for.
    pub kind: WorkKind,
    /// Its games.
    pub games: u32,
    /// Their positions.
    pub positions: u32,
    /// Why it is held.
    pub reason: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// What audits and comparisons with others have shown of a contributor, for operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorTrust {
    /// What audits have shown.
    #[serde(flatten)]
    pub trust: TrustInfo,
    /// In what the contributor's games looked unlike everybody else's when that was last found,
    /// the newest first.
    pub drift: Vec<DriftFinding>,
    /// Training games that came in within a week, or with the last 1,000 chunks if those are fewer.
    #[serde(default)]
    pub training_games: u64,
    /// Training games of the same time that did not come, though the job was given back, its lease is
    /// over, or it has been out for a day.
    #[serde(default)]
    pub missing_games: u64,
}

/// Something in which a worker's games looked unlike those of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DriftFinding {
    /// The run.
    pub run: String,
    /// The worker.
    pub worker: String,
    /// Where it computed.
    pub backend: String,
    /// In what, for example `game length`.
    pub feature: String,
    /// Standard errors from the others' median.
    pub z: f64,
    /// When it was last found, RFC 3339.
    pub at: String,
}

/// A quarantine that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineInfo {
    /// Why.
    pub reason: String,
    /// Who ordered it: an operator's name, or `audits`.
    pub by: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// A worker that gets no jobs, while its contributor's other workers do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerBlock {
    /// The worker's name.
    pub worker: String,
    /// Why; the contributor is told.
    pub reason: String,
    /// Who ordered it: an operator's name, or `command line`.
    pub by: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// An operator's order to block a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockOrder {
    /// Why; the contributor is told.
    pub reason: String,
}

/// An operator's order to quarantine a contributor or to clear one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineOrder {
    /// Whether the contributor's chunks are to be held out.
    pub quarantined: bool,
    /// Why; the contributor is told.
    pub reason: String,
}

/// A chunk was taken out of training, matches and ratings, or put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldRow {
    /// Its place among the run's holds.
    pub sequence: i64,
    /// The chunk.
    pub chunk: ContentHash,
    /// The chunk's place in the ledger.
    pub chunk_sequence: i64,
    /// Whether it is held from now on.
    pub held: bool,
    /// Why.
    pub reason: String,
    /// When, RFC 3339.
    pub at: String,
}

/// A page of holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldPage {
    /// Holds after the cursor, in order.
    pub holds: Vec<HoldRow>,
    /// The cursor for the next page (`after=`); the same as before if there was nothing.
    pub next: i64,
    /// Whether there is more already.
    pub more: bool,
}
