//! Runs, their networks and puzzle sets.

use jiff::Timestamp;
use rookery_common::ids::{AnchorName, ContentHash, NetworkNumber, RunName, Seed, UserId};
use rookery_common::network::NetworkSpec;
use rookery_common::params::RunParams;
use rookery_common::protocol::networks::ExportFormat;
use rookery_common::protocol::runs::MetricPoint;
use rookery_common::protocol::server::Presentation;
use rookery_common::rating::AnchorElo;

#[derive(Debug, Clone)]
pub struct RunDraft {
    /// Its name; unique.
    pub name: RunName,
    pub description: String,
    /// Its title, contact and links, checked.
    pub presentation: Presentation,
    /// Its parameters, checked.
    pub params: RunParams,
}

/// The most candidates of a run that are not decided yet.
pub const CANDIDATES: u32 = 32;

/// A network whose file is verified and stored.
#[derive(Debug, Clone)]
pub struct NetworkDraft {
    pub run: RunName,
    /// Its file's SHA-256.
    pub hash: ContentHash,
    pub bytes: u64,
    pub spec: NetworkSpec,
    /// Who submitted it.
    pub user: UserId,
    /// The order of openings in a gate match that it opens.
    pub match_seed: Seed,
    /// What it is as an anchor, if it is not a candidate.
    pub anchor: Option<AnchorDraft>,
}

/// What is said of a network that others are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct AnchorDraft {
    pub name: AnchorName,
    /// Its Elo on a scale that others know, if it is given.
    pub elo: Option<AnchorElo>,
}

/// A network in the format of another program, whose file is stored.
#[derive(Debug, Clone, Copy)]
pub struct ExportDraft {
    /// The network's SHA-256.
    pub network: ContentHash,
    pub format: ExportFormat,
    /// The file's SHA-256.
    pub hash: ContentHash,
    pub bytes: u64,
    /// Who submitted it.
    pub user: UserId,
}

/// Best is to move back to an earlier network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// What is best now.
    pub from: NetworkNumber,
    /// What is to be best.
    pub to: NetworkNumber,
    pub reason: String,
}

/// A set of puzzles to be added to a run.
#[derive(Debug, Clone)]
pub struct PuzzleSetDraft {
    pub run: RunName,
    /// A name for people, for example the file's.
    pub name: String,
    /// The puzzles, posed without error.
    pub puzzles: Vec<rookery_common::puzzle::Puzzle>,
}

/// A set of puzzles in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct PuzzleSetInfo {
    /// The SHA-256 of its puzzles as JSON lines.
    pub hash: ContentHash,
    /// Its name.
    pub name: String,
    /// Puzzles in it that the run did not have before.
    pub puzzles: u32,
    /// When it was added, RFC 3339.
    pub added_at: String,
}

/// What a trainer reported at one optimiser step.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRecord {
    pub point: MetricPoint,
    pub reported_at: Timestamp,
}

/// A sum in the ledger that does not follow from its facts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Discrepancy {
    /// Which sum.
    pub what: String,
    /// What the ledger says.
    pub stored: String,
    /// What the facts say.
    pub recomputed: String,
}

/// What a comparison of a run's sums with its facts has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Checked {
    /// Sums that do not follow.
    pub discrepancies: Vec<Discrepancy>,
    /// What could not be compared, and why.
    pub not_compared: Vec<String>,
}
