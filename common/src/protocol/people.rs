//! Users, tokens and contributors.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::jobs::WorkKind;
use crate::ids::UserId;
use crate::names::names;

pub use super::user_name::{NAME_CHARS, is_user_name, user_name};

names! {
    /// What a token may do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
    #[cfg_attr(feature = "command-line", derive(clap::ValueEnum))]
    #[serde(rename_all = "kebab-case")]
    pub enum Scope {
        /// Take jobs and upload chunks.
        Contribute = "contribute",
        /// Read chunks, submit networks and metrics.
        Train = "train",
        /// Change runs, matches and users.
        Operate = "operate",
        /// Decide audits alone: for a worker of your own, together with `contribute`.
        Audit = "audit",
    }
}

/// A request to register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewUser {
    /// The name to be known by: 1 to 32 letters of one script, digits, `_` and `-`.
    pub name: String,
    /// A name for the token, usually the machine's, at most 64 characters.
    #[serde(default)]
    pub machine: String,
    /// The code of an invitation; needed if `registration` of `GET /server` is `invitation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
}

/// A new token. It is shown once, because only its hash is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The user's number.
    pub user: UserId,
    /// The user's name.
    pub name: String,
    /// The token's number, with which it is revoked.
    #[serde(default)]
    pub id: Option<i64>,
    /// The token, to be sent as `Authorization: Bearer …`.
    pub token: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
}

/// A request for another token.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TokenRequest {
    /// A name for the token, usually the machine's, at most 64 characters.
    pub machine: String,
    /// What it may do: a part of what the token of this request may do, or the same if it is absent.
    pub scopes: Option<Vec<Scope>>,
}

/// A token as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenEntry {
    /// Its number.
    pub id: i64,
    /// Its name, usually a machine's.
    pub machine: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// When it was revoked, RFC 3339; absent if it is valid.
    #[serde(default)]
    pub revoked_at: Option<String>,
    /// Whether it is the token of this request.
    pub in_use: bool,
}

/// One act of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatorAct {
    /// Its place in the log.
    pub id: i64,
    /// When, RFC 3339.
    pub at: String,
    /// Who: a user's name, or `command line`.
    pub actor: String,
    /// What, for example `block-user`.
    pub action: String,
    /// On what, for example the user's or the run's name.
    pub subject: String,
    /// Details, for example a reason or a token's scopes; may be empty.
    pub detail: String,
    /// The entries that it changed, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// An entry that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The entry, for example `params.selfplay.search.visits`.
    pub key: String,
    /// Its value before, as JSON, a string without quotes; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its value since then, in the same form; absent if it has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        write!(
            f,
            "{}: {} → {}",
            self.key,
            shown(&self.from),
            shown(&self.to)
        )
    }
}

/// A page of the operator log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OperatorLogPage {
    /// The entries.
    pub entries: Vec<OperatorAct>,
    /// The cursor for the next page (`before=`), if there is more.
    #[serde(default)]
    pub next: Option<i64>,
}

names! {
    /// The time over which credit is counted, up to now. The last day is counted from the beginning of an hour; the last week
    /// and the last month are counted from the beginning of a day in UTC.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
    pub enum Span {
        /// The last 24 hours.
        #[serde(rename = "24h")]
        Day = "24h",
        /// The last 7 days.
        #[serde(rename = "7d")]
        Week = "7d",
        /// The last 30 days.
        #[serde(rename = "30d")]
        Month = "30d",
        /// All time.
        #[default]
        #[serde(rename = "all")]
        All = "all",
    }
}

/// What a contributor has played and searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Credit {
    /// Games, without those of held chunks.
    pub games: u64,
    /// Positions searched: those of these games and those of audits.
    pub positions: u64,
    /// Games of others that were searched again in audits; `games` does not count them.
    #[serde(default)]
    pub audits: u64,
    /// Positions searched again in audits, which `positions` counts, too.
    #[serde(default)]
    pub audit_positions: u64,
}

/// A contributor as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorInfo {
    /// The contributor's name.
    pub name: String,
    /// Games of all time, without those of held chunks.
    pub games: u64,
    /// Positions searched of all time: those of these games and those of audits.
    pub positions: u64,
    /// Games of others that were searched again in audits, of all time.
    #[serde(default)]
    pub audits: u64,
    /// Positions searched again in audits, of all time.
    #[serde(default)]
    pub audit_positions: u64,
    /// The rank among all contributors by positions in the requested span, from 1; absent without a position.
    #[serde(default)]
    pub rank: Option<u64>,
    /// The credit of the requested span; absent if that is all time.
    #[serde(default)]
    pub recent: Option<Credit>,
    /// Workers that got a job or sent a heartbeat within ten minutes.
    pub active_workers: u32,
    /// When one of the workers last got a job or sent a heartbeat, RFC 3339; absent if none ever did.
    #[serde(default)]
    pub last_seen: Option<String>,
    /// When the contributor registered, RFC 3339.
    pub joined_at: String,
}

impl ContributorInfo {
    /// What was counted, of all time.
    pub const fn credit(&self) -> Credit {
        Credit {
            games: self.games,
            positions: self.positions,
            audits: self.audits,
            audit_positions: self.audit_positions,
        }
    }
}

/// What a contributor has played and searched in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpanCredit {
    /// The span.
    pub span: Span,
    /// The credit of this span.
    pub credit: Credit,
    /// The rank among all contributors by positions, from 1; absent without a position.
    #[serde(default)]
    pub rank: Option<u64>,
}

/// What a contributor has played and searched on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayCredit {
    /// The day, in UTC, for example `2026-11-23`.
    pub day: String,
    /// The credit of this day.
    pub credit: Credit,
}

/// A contributor alone, as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorDetail {
    /// The contributor's row in lists.
    #[serde(flatten)]
    pub info: ContributorInfo,
    /// The credit of each span, the shortest first.
    pub credit: Vec<SpanCredit>,
    /// The credit of each of the last 31 days in UTC, today included, the oldest first; without days before the
    /// contributor joined.
    #[serde(default)]
    pub days: Vec<DayCredit>,
    /// Workers that got a job or sent a heartbeat within 7 days, the latest first, at most 100.
    pub workers: Vec<WorkerInfo>,
}

/// A worker as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerInfo {
    /// The contributor's name.
    pub contributor: String,
    /// The worker's name, chosen by the contributor.
    pub name: String,
    /// The device and the precision with which it computes, for example `cuda-f16`.
    pub backend: String,
    /// Its program version, for example `0.1.0`.
    pub version: String,
    /// Positions that its networks evaluate in a second, as it last reported; 0 if it never did.
    pub evals_per_second: f32,
    /// The kind of its last job.
    #[serde(default)]
    pub job_kind: Option<WorkKind>,
    /// When it last got a job or sent a heartbeat, RFC 3339.
    pub last_seen: String,
}

/// Workers that lately got a job or sent a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActiveWorkers {
    /// Their number.
    pub all: u64,
    /// Positions that the networks of all of them evaluate in a second, as they report.
    pub evals_per_second: f64,
    /// The latest of them, the latest first, as many as the request's limit allows.
    pub last_heard: Vec<WorkerInfo>,
}
