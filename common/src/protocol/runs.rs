//! Runs and training metrics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::server::Link;
use crate::ids::{NetworkNumber, RunName};
use crate::names::names;
use crate::params::RunParams;
use crate::signing::RunKey;

names! {
    /// Whether a run hands out jobs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RunStatus {
        /// It hands out jobs.
        Open = "open",
        /// It hands out no jobs; chunks of earlier jobs are still accepted.
        Paused = "paused",
    }
}

/// A run as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// Its name.
    pub name: RunName,
    /// The name that people read, at most 80 characters; the coordinator's if the run has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for, as its operator says: at most 2,000 characters.
    pub description: String,
    /// How to reach the operator: an address such as `ann@example.org`, or a page's URL. The coordinator's if the run
    /// has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Links that the operator set, at most 8; the coordinator's if the run has none of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Whether it hands out jobs.
    pub status: RunStatus,
    /// How its games are played, jobs handed out and networks promoted; the operator sets it.
    pub params: RunParams,
    /// The public key of its networks' signatures; absent if they are not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<RunKey>,
    /// Which versions of the worker it serves.
    #[serde(default)]
    pub versions: VersionPolicy,
    /// The number of its best network; absent before the first one.
    #[serde(default)]
    pub best: Option<NetworkNumber>,
    /// Networks submitted, anchors included.
    pub networks: u32,
    /// Games of all its chunks, held ones included. Audits are no games.
    pub games: u64,
    /// Positions that training may use: of self-play and puzzles, without those of held chunks.
    pub training_positions: u64,
    /// Positions of these games, those of matches included.
    pub positions: u64,
    /// Chunks accepted, those of audits and held ones included.
    pub chunks: u64,
    /// The size of these chunks' files together, in bytes.
    pub chunk_bytes: u64,
    /// The last report of its trainer; absent before the first one.
    #[serde(default)]
    pub last_report: Option<LastReport>,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was archived, RFC 3339; absent if it is not. An archived run is in no list and hands out no jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
}

/// The last report of a trainer, which shows whether it still trains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastReport {
    /// The last optimiser step that it reported.
    pub step: u64,
    /// When the report came, RFC 3339.
    pub at: String,
}

/// A change to a run by an operator. Fields that are absent stay as they are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunPatch {
    /// A new title, at most 80 characters; an empty one removes it.
    pub title: Option<String>,
    /// A new description, at most 2,000 characters.
    pub description: Option<String>,
    /// A new contact: an address such as `ann@example.org` or a page's URL, at most 200 characters; an empty one removes
    /// it.
    pub contact: Option<String>,
    /// New links, at most 8, in place of all earlier ones.
    pub links: Option<Vec<Link>>,
    /// Opens or pauses it.
    pub status: Option<RunStatus>,
    /// Whether it is archived: in no list, without jobs, still readable by its name. `false` takes it back, paused.
    pub archived: Option<bool>,
    /// New parameters, in place of all earlier ones.
    pub params: Option<RunParams>,
    /// Which versions of the worker it serves from now on, in place of the earlier policy.
    pub versions: Option<VersionPolicy>,
}

/// Which versions of the worker a run serves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct VersionPolicy {
    /// The oldest version that gets jobs, for example `0.2.0`; any if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<String>,
    /// Older versions get a notice that recommends an update; none does if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<String>,
    /// When versions below the minimum stop getting jobs, RFC 3339; until then they get a notice. At once if it is
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
}

/// Numbers that a trainer reports at one optimiser step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricPoint {
    /// The optimiser step.
    pub step: u64,
    /// Values by name, for example `policy_loss`; at most 64 names of at most 64 characters.
    pub values: BTreeMap<String, f64>,
}

/// A report of metrics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct MetricReport {
    /// Points in the order of steps, at most 1,000.
    pub points: Vec<MetricPoint>,
}
