//! Users, tokens and contributors.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::UserId;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Take jobs and upload chunks.
    Contribute,
    /// Read chunks, submit networks and metrics.
    Train,
    /// Change runs, matches and users.
    Operate,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Contribute, Self::Train, Self::Operate];

    /// The name used in the API, on command lines and in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contribute => "contribute",
            Self::Train => "train",
            Self::Operate => "operate",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// A request to register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewUser {
    /// The name to be known by: 1 to 32 letters, digits, `_` and `-`.
    pub name: String,
    /// A name for the token, usually the machine's, at most 64 characters.
    #[serde(default)]
    pub machine: String,
}

/// A token, told once: only its hash is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The user's number.
    pub user: UserId,
    /// The user's name.
    pub name: String,
    /// The token, to be sent as `Authorization: Bearer …`.
    pub token: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
}

/// A contributor as the API and the pages show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContributorInfo {
    /// The name.
    pub name: String,
    /// Games counted.
    pub games: u64,
    /// Positions counted.
    pub positions: u64,
    /// Workers seen in the last ten minutes.
    pub active_workers: u32,
    /// When something was last heard.
    #[serde(default)]
    pub last_seen: Option<String>,
    /// When the contributor registered.
    pub joined_at: String,
}
