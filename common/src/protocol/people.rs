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
    /// The code of an invitation, where the coordinator asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
}

/// A token, told once: only its hash is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The user's number.
    pub user: UserId,
    /// The user's name.
    pub name: String,
    /// The token's number, by which it is revoked.
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
    /// What it may do: no more than the token in use, and as much if it is absent.
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
    /// When it was revoked, RFC 3339.
    #[serde(default)]
    pub revoked_at: Option<String>,
    /// Whether it is the one that asks.
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
    /// What else is to be known.
    pub detail: String,
    /// What is other than before, entry by entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// An entry that is other than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The entry, for example `params.selfplay.search.visits`.
    pub key: String,
    /// What it was, as JSON or as the text that it is; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is; absent if there is none any more.
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

/// Over which time credit is counted, up to now: from the beginning of the hour in which the last day
/// began, or of the day, in UTC, in which the last week or month did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub enum Span {
    /// The last 24 hours.
    #[serde(rename = "24h")]
    Day,
    /// The last 7 days.
    #[serde(rename = "7d")]
    Week,
    /// The last 30 days.
    #[serde(rename = "30d")]
    Month,
    /// All time.
    #[default]
    #[serde(rename = "all")]
    All,
}

impl Span {
    /// All spans, the shortest first.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::All];

    /// The name used in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
            Self::All => "all",
        }
    }
}

/// What somebody gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Credit {
    /// Games counted.
    pub games: u64,
    /// Positions counted: those of the games, and those that were searched again in audits.
    pub positions: u64,
    /// Audits: games of others that were searched again. `games` does not hold them.
    #[serde(default)]
    pub audits: u64,
    /// Positions of these audits, which `positions` holds as well.
    #[serde(default)]
    pub audit_positions: u64,
}

/// A contributor as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorInfo {
    /// The name.
    pub name: String,
    /// Games counted, of all time.
    pub games: u64,
    /// Positions counted, of all time, those of audits included.
    pub positions: u64,
    /// Audits of all time: games of others that were searched again.
    #[serde(default)]
    pub audits: u64,
    /// Positions of these audits.
    #[serde(default)]
    pub audit_positions: u64,
    /// The place among all contributors by positions in the span that was asked for, from 1; none
    /// without a position.
    #[serde(default)]
    pub rank: Option<u64>,
    /// What was counted in the span that was asked for, if that is not all time.
    #[serde(default)]
    pub recent: Option<Credit>,
    /// Workers seen in the last ten minutes.
    pub active_workers: u32,
    /// When something was last heard.
    #[serde(default)]
    pub last_seen: Option<String>,
    /// When the contributor registered.
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

/// What somebody gave in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpanCredit {
    /// The span.
    pub span: Span,
    /// What was counted.
    pub credit: Credit,
    /// The place among all contributors by positions, from 1; none without a position.
    #[serde(default)]
    pub rank: Option<u64>,
}

/// What somebody gave on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayCredit {
    /// The day, in UTC, for example `2026-11-23`.
    pub day: String,
    /// What was counted.
    pub credit: Credit,
}

/// A contributor alone, as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorDetail {
    /// What lists tell as well.
    #[serde(flatten)]
    pub info: ContributorInfo,
    /// What was counted in each span, the shortest first.
    pub credit: Vec<SpanCredit>,
    /// What was counted on each of the last 31 days, today included, the oldest first; without
    /// those before the contributor joined.
    #[serde(default)]
    pub days: Vec<DayCredit>,
    /// Workers that were heard in the last 7 days, those last heard first, at most 100.
    pub workers: Vec<WorkerInfo>,
}

/// A worker as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkerInfo {
    /// The contributor.
    pub contributor: String,
    /// The worker's name.
    pub name: String,
    /// Where it computes.
    pub backend: String,
    /// Its version.
    pub version: String,
    /// Evaluations a second that it last reported.
    pub evals_per_second: f32,
    /// What it last worked at; none if it waits.
    #[serde(default)]
    pub job_kind: Option<WorkKind>,
    /// When it was last heard, RFC 3339.
    pub last_seen: String,
}

/// Workers that were heard lately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActiveWorkers {
    /// How many there are.
    pub all: u64,
    /// Evaluations a second of all of them together.
    pub evals_per_second: f64,
    /// Those last heard, as many as were asked for.
    pub last_heard: Vec<WorkerInfo>,
}
