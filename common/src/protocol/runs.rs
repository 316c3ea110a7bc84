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
        /// It does.
        Open = "open",
        /// It does not; chunks of earlier jobs are still taken.
        Paused = "paused",
    }
}

/// A run as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunInfo {
    /// Its name.
    pub name: RunName,
    /// The name that people read; the coordinator's if the run has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for, in a sentence.
    pub description: String,
    /// The operator's address or page; the coordinator's if the run has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Where else to look; the coordinator's links if the run has none of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Whether it hands out jobs.
    pub status: RunStatus,
    /// Its parameters.
    pub params: RunParams,
    /// The key that signs its networks, if they are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<RunKey>,
    /// Which workers it serves.
    #[serde(default)]
    pub versions: VersionPolicy,
    /// Its best network, once there is one.
    #[serde(default)]
    pub best: Option<NetworkNumber>,
    /// Networks submitted.
    pub networks: u32,
    /// Games counted.
    pub games: u64,
    /// Positions counted that training may use (self-play and puzzles).
    pub training_positions: u64,
    /// Positions counted, matches included.
    pub positions: u64,
    /// Chunks counted.
    pub chunks: u64,
    /// Bytes of those chunks.
    pub chunk_bytes: u64,
    /// What its trainer reported last.
    #[serde(default)]
    pub last_report: Option<LastReport>,
    /// When it was created.
    pub created_at: String,
    /// Since when it is archived, RFC 3339: it is in no list and hands out no jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<String>,
}

/// The last report of a trainer: whether it trains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastReport {
    /// The last step that it reported.
    pub step: u64,
    /// When, RFC 3339.
    pub at: String,
}

/// A change to a run by an operator; what is absent stays.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RunPatch {
    /// A new title; an empty one takes it away.
    pub title: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// A new contact: an address such as `ann@example.org` or a page; an empty one takes it away.
    pub contact: Option<String>,
    /// New links, all of them, at most 8.
    pub links: Option<Vec<Link>>,
    /// Open or pause.
    pub status: Option<RunStatus>,
    /// Whether it is archived: out of lists, without jobs, still readable by its name. One that is taken
    /// back is paused.
    pub archived: Option<bool>,
    /// New parameters, whole.
    pub params: Option<RunParams>,
    /// Which workers it serves from now on, whole.
    pub versions: Option<VersionPolicy>,
}

/// Which versions of the worker a run serves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct VersionPolicy {
    /// The oldest that is served, for example `0.2.0`; any if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<String>,
    /// The oldest that is told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended: Option<String>,
    /// When workers below the minimum begin to be refused, RFC 3339; until then they are told. At
    /// once if it is absent.
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
