//! How calls fail.

use std::time::Duration;

use rookery_client::ApiError;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::problem::Remedy;
use rookery_common::text::quantity;

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The coordinator refused, or did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// A file did not have the hash under which it was asked for.
    #[error("RK-0412: what arrived for {expected} has the SHA-256 {got}")]
    WrongHash {
        /// What was asked for.
        expected: ContentHash,
        /// What came.
        got: ContentHash,
    },
    /// Every try of a call with bounded tries failed.
    #[error("RK-0718: gave up after {}; the last error: {last}", quantity(*tries, "try"))]
    RetriesExhausted {
        /// How often it was tried.
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

impl CallError {
    /// What to do about it.
    pub const fn remedy(&self) -> Remedy {
        match self {
            // What is not understood: the operator is at hand to look; volunteers' workers wait until
            // the operator has.
            Self::Api(ApiError::NotUnderstood(_)) | Self::Unsigned(_) | Self::Stopped => {
                Remedy::Stop
            }
            Self::Api(error) => error.remedy(),
            Self::WrongHash { .. } => Remedy::Retry,
            Self::RetriesExhausted { .. } => Remedy::Drop,
        }
    }

    /// Whether the coordinator says that there is no such thing.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Api(ApiError::Problem { problem, .. }) if problem.status == 404)
    }

    /// Whether a file that was asked for may be missing or damaged where it is kept: the coordinator
    /// fails at it, leads to a store that does not have it, or another one comes.
    pub fn tells_of_loss(&self) -> bool {
        match self {
            Self::Api(ApiError::Problem { problem, .. }) => problem.code == ProblemCode::Internal,
            Self::Api(ApiError::Unexpected { status, .. }) => *status == 404,
            Self::WrongHash { .. } => true,
            _ => false,
        }
    }

    /// When the coordinator would like to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api(error) => error.retry_after(),
            _ => None,
        }
    }
}
