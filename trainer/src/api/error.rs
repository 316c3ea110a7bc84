//! How calls fail.

use std::time::Duration;

use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::problem::{Problem, Remedy};

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The coordinator refused.
    #[error("{problem}")]
    Refused {
        /// Why.
        problem: Box<Problem>,
        /// When it would like to be asked again.
        retry_after: Option<Duration>,
    },
    /// An answer that did not come from a coordinator: from a proxy or another program.
    #[error(
        "the answer was HTTP {status}, and not from a Rookery coordinator: {start:?}; a proxy or another program is at its address"
    )]
    Foreign {
        /// Its status.
        status: u16,
        /// How its body begins.
        start: String,
        /// When it would like to be asked again.
        retry_after: Option<Duration>,
    },
    /// The answer leads to another address.
    #[error(
        "the answer was HTTP {status} and leads to {server}; if the coordinator is there, give that address with --server"
    )]
    Elsewhere {
        /// Its status.
        status: u16,
        /// The server there.
        server: String,
    },
    /// No answer came.
    #[error("{0}")]
    Transport(String),
    /// The answer is larger than it can be.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// The answer is not what the protocol says.
    #[error("the answer could not be understood: {0}")]
    Answer(String),
    /// A file did not have the hash under which it was asked for.
    #[error("the file that came has SHA-256 {got}, expected was {expected}")]
    WrongHash {
        /// What was asked for.
        expected: ContentHash,
        /// What came.
        got: ContentHash,
    },
    /// A file that the ledger names does not come, although the coordinator is there.
    #[error("{tries} tries in vain, the last one: {last}")]
    Lost {
        /// How often it was missing or another.
        tries: u32,
        /// What came of the last try.
        last: Box<Self>,
    },
    /// The network could not be signed.
    #[error("the network could not be signed: {0}")]
    Unsigned(String),
    /// The user asked to stop.
    #[error("stopped while waiting for the coordinator")]
    Stopped,
}

impl ApiError {
    /// What to do about it.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Refused { problem, .. } => problem.remedy(),
            // Whatever is in between may go away: only a coordinator's own word ends anything.
            Self::Foreign { .. }
            | Self::Elsewhere { .. }
            | Self::Transport(_)
            | Self::WrongHash { .. } => Remedy::Retry,
            Self::Lost { .. } => Remedy::Drop,
            Self::TooLarge(_) | Self::Answer(_) | Self::Unsigned(_) | Self::Stopped => Remedy::Stop,
        }
    }

    /// Whether a file that was asked for may be missing or damaged where it is kept: the coordinator
    /// fails at it, leads to a store that does not have it, or another one comes.
    pub fn tells_of_loss(&self) -> bool {
        match self {
            Self::Refused { problem, .. } => problem.code == ProblemCode::Internal,
            Self::Foreign { status, .. } => *status == 404,
            Self::WrongHash { .. } => true,
            _ => false,
        }
    }

    /// When the coordinator would like to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } | Self::Foreign { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The refusal, if it was one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

impl From<reqwest::Error> for ApiError {
    /// The innermost cause says what happened; the outer ones repeat the address.
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Self::Transport(cause.to_string())
    }
}
