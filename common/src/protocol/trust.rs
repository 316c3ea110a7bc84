//! Trust: what audits have shown of contributors, and which chunks are held out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::jobs::WorkKind;
use crate::ids::ContentHash;

/// How far a contributor is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrustLevel {
    /// Fewer than ten audits in a row were passed: every audit is full.
    Probation,
    /// Ten audits in a row were passed: many audits are brief, and small chunks are audited by chance.
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
    /// The share of the contributor's audits that are full, 0 to 1. The others are brief: they search fewer positions
    /// again.
    pub audit_rate: f64,
    /// Positions of the contributor's games that were searched again; one that two auditors searched counts twice.
    #[serde(default)]
    pub audited_positions: u64,
    /// Chunks that are held out of training, matches and ratings.
    pub held_chunks: u32,
    /// Why the contributor is in quarantine; absent if it is not.
    #[serde(default)]
    pub quarantine: Option<QuarantineInfo>,
    /// The contributor's workers that an operator has blocked: they get no jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_workers: Vec<WorkerBlock>,
    /// The held chunks, the newest first, at most 20.
    #[serde(default)]
    pub held: Vec<HeldChunk>,
}

/// A chunk that is held out of training, matches and ratings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldChunk {
    /// The chunk's SHA-256.
    pub chunk: ContentHash,
    /// Its run.
    pub run: String,
    /// The kind of its job.
    pub kind: WorkKind,
    /// Its games.
    pub games: u32,
    /// Its positions.
    pub positions: u32,
    /// Why it is held: an operator's words, or those of the audit.
    pub reason: String,
    /// When it was taken out, RFC 3339.
    pub since: String,
}

/// What audits and comparisons with others have shown of a contributor, for operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorTrust {
    /// What audits have shown.
    #[serde(flatten)]
    pub trust: TrustInfo,
    /// Means in which the contributor's games differed from those of others, the newest finding first.
    pub drift: Vec<DriftFinding>,
    /// Training games that came in within a week, or in the last 1,000 chunks if these are fewer.
    #[serde(default)]
    pub training_games: u64,
    /// Training games of the same time that never came: the job was given back, its lease is over, or it has been out for
    /// a day.
    #[serde(default)]
    pub missing_games: u64,
}

/// A mean in which a worker's games differed from those of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DriftFinding {
    /// The run.
    pub run: String,
    /// The worker's name, or `all workers` if the contributor's workers differ only together.
    pub worker: String,
    /// The worker's backend, for example `cuda-f16`; of all workers together, how many bits their numbers have.
    pub backend: String,
    /// Which mean, for example `game length`.
    pub feature: String,
    /// How far the mean lies above the others' median, in standard errors; negative if it lies below.
    pub z: f64,
    /// When it was last found, RFC 3339.
    pub at: String,
}

/// A quarantine that was not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineInfo {
    /// Why; the contributor sees it.
    pub reason: String,
    /// Who ordered it: an operator's name, or `audits`.
    pub by: String,
    /// When it was ordered, RFC 3339.
    pub since: String,
}

/// A worker that gets no jobs, while its contributor's other workers do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerBlock {
    /// The worker's name.
    pub worker: String,
    /// Why; the contributor sees it.
    pub reason: String,
    /// Who ordered it: an operator's name, or `command line`.
    pub by: String,
    /// When it was ordered, RFC 3339.
    pub since: String,
}

/// An operator's order to block a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockOrder {
    /// Why, 1 to 500 characters; the contributor sees it.
    pub reason: String,
}

/// An operator's order to quarantine a contributor or to clear one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineOrder {
    /// Whether the contributor's chunks are held from now on (`true`) or count again (`false`).
    pub quarantined: bool,
    /// Why, 1 to 500 characters; the contributor sees it.
    pub reason: String,
}

/// A chunk was taken out of training, matches and ratings, or put back. A newcomer's that waits for its audit is taken out
/// of training alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldRow {
    /// Its number in the list of holds; later ones have higher numbers.
    pub sequence: i64,
    /// The chunk's SHA-256.
    pub chunk: ContentHash,
    /// The chunk's number in the ledger.
    pub chunk_sequence: i64,
    /// Whether the chunk was taken out (`true`) or put back (`false`).
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
    /// Whether the run has more holds after these.
    pub more: bool,
}
