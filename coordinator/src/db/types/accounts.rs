//! Users, their tokens and invitations.

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::people::{ContributorInfo, Credit, Scope, Span};
use rookery_common::protocol::trust::{QuarantineInfo, WorkerBlock};
use serde::{Deserialize, Serialize};

use crate::tokens::TokenHash;
use crate::trust::verdict::Auditor;

/// Who changes something, and when: the operator log says so.
#[derive(Debug, Clone)]
pub struct Actor {
    /// A user's name, or what stands for a program.
    pub name: String,
    pub at: Timestamp,
}

impl Actor {
    #[must_use]
    pub fn new(name: &str, at: Timestamp) -> Self {
        let name = name.to_owned();
        Self { name, at }
    }
}

/// A user to be created together with a first token.
#[derive(Debug, Clone)]
pub struct UserDraft {
    /// The name; unique.
    pub name: String,
    pub token: TokenDraft,
    /// The hashed block of addresses that the user registers from, if it says something of who that is.
    pub block: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct UserChange {
    /// Whether the user is blocked.
    pub standing: Option<Standing>,
    pub name: Option<String>,
}

impl UserChange {
    #[must_use]
    pub fn standing(standing: Standing) -> Self {
        let standing = Some(standing);
        Self {
            standing,
            ..Self::default()
        }
    }

    #[must_use]
    pub fn name(name: &str) -> Self {
        let name = Some(name.to_owned());
        Self {
            name,
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone)]
pub struct TokenDraft {
    pub hash: TokenHash,
    pub scopes: Vec<Scope>,
    /// Its name, usually a machine's.
    pub machine: String,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub struct Principal {
    pub user: UserId,
    pub name: String,
    pub token: i64,
    pub scopes: Vec<Scope>,
    /// When the token was last used, to ten minutes; of workers' tokens that is not noted.
    pub used_at: Option<Timestamp>,
    /// Whether the user may do anything at all.
    pub standing: Standing,
    /// What the user has to know of games and workers that do not count.
    pub restrictions: Restrictions,
}

/// How much time passes until the use of a token is noted again.
const USE_NOTED_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// What is held against a contributor, short of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restrictions {
    pub quarantine: Option<QuarantineInfo>,
    pub has_held_chunks: bool,
    /// Workers that get no jobs.
    pub workers: Vec<WorkerBlock>,
}

impl Restrictions {
    /// Why a worker gets no jobs, if it gets none.
    pub fn block_of(&self, worker: &str) -> Option<&WorkerBlock> {
        self.workers.iter().find(|block| block.worker == worker)
    }
}

impl Principal {
    /// Whether the use of the token at a moment is to be noted. Of workers' tokens it is not: workers are heard anyway.
    pub fn is_to_be_noted(&self, now: Timestamp) -> bool {
        let is_old = |at| now.duration_since(at) >= USE_NOTED_EVERY;
        !self.scopes.contains(&Scope::Contribute) && self.used_at.is_none_or(is_old)
    }

    /// Whose word this one's audits are.
    pub fn auditor(&self) -> Auditor {
        if self.scopes.contains(&Scope::Audit) {
            Auditor::Trusted
        } else {
            Auditor::Volunteer
        }
    }
}

/// Whether a user is welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    Blocked,
}

/// A user as operators see them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserInfo {
    pub name: String,
    /// When the user was created, RFC 3339.
    pub created_at: String,
    /// Whether all requests with the user's tokens are refused.
    pub blocked: bool,
    /// Whether the user's chunks are held back.
    pub quarantined: bool,
    pub tokens: u64,
    /// Games that were accepted, in all runs.
    pub games: u64,
    /// Positions of these games and of audits.
    pub positions: u64,
    /// Audits: games of others that were searched again.
    pub audits: u64,
    /// When a worker of the user was heard last, or another token of the user was used, RFC 3339.
    pub last_seen: Option<String>,
}

/// Which contributors to list, and in which order.
#[derive(Debug, Clone)]
pub struct ContributorFilter {
    pub run: Option<RunName>,
    /// When they gave what is counted.
    pub span: Span,
    /// Only those whose names contain this, in any case.
    pub name: Option<String>,
    pub sort: ContributorSort,
    /// Not so many of the first.
    pub skip: u32,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContributorSort {
    /// Most positions in the span of time first.
    #[default]
    Positions,
    /// Most games in it first.
    Games,
    /// Those whose workers were heard last first.
    LastSeen,
    Name,
}

/// Contributors of a span of time.
#[derive(Debug, Clone, Default)]
pub struct Contributors {
    /// How many there are.
    pub all: u64,
    /// What all of them gave in the span.
    pub credit: Credit,
    /// Those that were asked for; without them nothing is known of all either.
    pub list: Vec<ContributorInfo>,
}

#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Only entries before this one.
    pub before: Option<i64>,
    /// Only what this one did: a user's name, or `command line`.
    pub actor: Option<String>,
    /// Only such acts, for example `change-run`.
    pub action: Option<String>,
    /// Only what was done since.
    pub since: Option<Timestamp>,
    pub limit: u32,
}

impl LogFilter {
    /// The newest, at most so many.
    pub fn newest(limit: u32) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// What the name of a user who was deleted begins with; the user's number follows.
pub const DELETED: &str = "deleted-";

/// Valid tokens that one user may have.
pub const TOKENS: u32 = 1000;

/// How many tokens a user has and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCounts {
    pub valid: u64,
    /// Tokens that were made since the time in question, revoked ones too.
    pub made: u64,
}

/// A token as its owner's list shows it.
#[derive(Debug, Clone)]
pub struct TokenInfo {
    pub id: i64,
    pub user: String,
    pub machine: String,
    pub scopes: Vec<Scope>,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was revoked, RFC 3339.
    pub revoked_at: Option<String>,
}

#[derive(Debug, Clone)]
pub struct InvitationDraft {
    /// Its code's hash.
    pub hash: TokenHash,
    /// For whom it is.
    pub note: String,
    /// How many may register with it.
    pub uses: u32,
    pub expires_at: Option<Timestamp>,
}

/// An invitation as operators see it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct InvitationInfo {
    pub id: i64,
    /// For whom it is.
    pub note: String,
    /// How many may register with it.
    pub uses: u32,
    /// How many did.
    pub used: u32,
    pub created_by: String,
    /// When, RFC 3339.
    pub created_at: String,
    /// Until when it is valid, RFC 3339.
    pub expires_at: Option<String>,
    /// When it was revoked, RFC 3339.
    pub revoked_at: Option<String>,
}
