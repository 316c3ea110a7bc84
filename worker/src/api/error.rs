//! How a call fails, and what is to be done about it.

use std::time::Duration;

use reqwest::StatusCode;
use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::{Problem, ProblemCode};

/// A call to the coordinator that failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No answer came: no network, no coordinator there, a connection that broke.
    #[error("coordinator not reachable ({0})")]
    Unreachable(String),
    /// The coordinator answered with a problem.
    #[error("the coordinator says: {problem}")]
    Problem {
        /// What it says.
        problem: Box<Problem>,
        /// Its `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// An answer that is none of the coordinator's: a proxy, a captive portal, another program.
    #[error("unexpected answer, status {status}: {detail}")]
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// What was unexpected.
        detail: String,
        /// Its `Retry-After`.
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    /// The failure of a call that got no whole answer.
    pub fn unreachable(error: &reqwest::Error) -> Self {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        Self::Unreachable(innermost.to_string())
    }

    /// What is to be done (`docs/protocol.md`). A failure of the coordinator itself may pass; else
    /// a problem's code decides, and where it is not known, the status.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable(_) => Remedy::Retry,
            Self::Problem { problem, .. } if problem.status >= 500 => Remedy::Retry,
            Self::Problem { problem, .. } if problem.code != ProblemCode::Unknown => {
                problem.code.remedy()
            }
            Self::Problem { problem, .. } => remedy_of(problem.status),
            Self::Unexpected { status, .. } => remedy_of(*status),
        }
    }

    /// How long the coordinator asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable(_) => None,
            Self::Problem { retry_after, .. } | Self::Unexpected { retry_after, .. } => {
                *retry_after
            }
        }
    }

    /// The problem's code, if the coordinator gave one.
    pub fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem { problem, .. } => Some(problem.code),
            Self::Unreachable(_) | Self::Unexpected { .. } => None,
        }
    }
}

/// What a bare status means. A success whose body cannot be read comes from something between
/// worker and coordinator, and may pass.
fn remedy_of(status: u16) -> Remedy {
    match StatusCode::from_u16(status) {
        Ok(StatusCode::UNAUTHORIZED | StatusCode::UPGRADE_REQUIRED) => Remedy::Stop,
        Ok(StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS) => {
            Remedy::Retry
        }
        Ok(status) if status.is_client_error() => Remedy::Drop,
        _ => Remedy::Retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_fall_back_to_the_status() {
        let remedy = |status| {
            let problem = Problem {
                status,
                ..Problem::new(ProblemCode::Unknown, "new")
            };
            ApiError::Problem {
                problem: Box::new(problem),
                retry_after: None,
            }
            .remedy()
        };
        assert_eq!(remedy(422), Remedy::Drop);
        assert_eq!(remedy(426), Remedy::Stop);
        assert_eq!(remedy(429), Remedy::Retry);
        assert_eq!(remedy(503), Remedy::Retry);
        assert_eq!(remedy(200), Remedy::Retry);
        assert_eq!(remedy(0), Remedy::Retry);
    }
}
