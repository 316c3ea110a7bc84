//! The one error type of all handlers: a problem for the client, and a cause for the log.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rookery_common::chunk::{ChunkError, ChunkErrorCode};
use rookery_common::network::file::NetworkFileError;
use rookery_common::protocol::{Problem, ProblemCode};

use super::request_id::current_request;
use crate::archives::ArchiveError;
use crate::blobs::BlobError;
use crate::db::DbError;
use crate::intake::IntakeError;
use crate::limits::TooMuch;
use crate::random;

/// Least `Retry-After` after a failure of the coordinator, whose end is unknown.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The longest wait for a ledger that is behind: it may catch up sooner, and no lease should end meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(40);
/// What part of such a wait chance may add, so that clients that failed together do not come back so.
const SPREAD: f64 = 0.5;
/// How long a trainer waits that has a candidate too many: gate matches take longer, and files that
/// come in vain are large.
const CANDIDATE_WAIT: Duration = Duration::from_secs(5 * 60);

/// An answer that is no success, and when to try again where that is known.
#[derive(Debug)]
pub struct ApiError(Box<Problem>, Option<Duration>);

pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)), None)
    }

    /// The request could not be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::BadRequest, detail)
    }

    /// Too much of something was asked, for example "requests from this address".
    pub fn too_many(of_what: &str, TooMuch(wait): TooMuch) -> Self {
        let seconds = whole_seconds(wait);
        let detail = format!("too many {of_what}; there is room for more in {seconds} s");
        let problem = Problem::new(ProblemCode::TooManyRequests, detail);
        Self(Box::new(problem), Some(wait))
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::NotFound, detail)
    }

    /// Something failed inside; the cause is logged and not told.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "RK-0227: A request failed inside the coordinator.");
        let detail = "The cause is in the coordinator's log, under the request's x-request-id.";
        Self::new(ProblemCode::Internal, detail)
    }

    /// A dependency is down; the cause is logged and not told.
    pub fn unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "RK-0228: A request could not be served now.");
        Self::new(ProblemCode::Unavailable, "Try again later.")
    }

    /// The ledger is behind by `wait` (load shedding). No failure: many come at once, and each would fill the log.
    fn behind(wait: Duration) -> Self {
        let wait = spread(wait.min(LONGEST_WAIT));
        let detail = format!(
            "the coordinator is overloaded; try again in {} s",
            whole_seconds(wait)
        );
        let problem = Problem::new(ProblemCode::Unavailable, detail);
        Self(Box::new(problem), Some(wait))
    }

    /// The problem as it will be sent.
    pub const fn problem(&self) -> &Problem {
        &self.0
    }
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        let detail = error.to_string();
        match error {
            DbError::NotFound(_) => Self::not_found(detail),
            DbError::NameTaken(_) | DbError::NameAlike { .. } => {
                Self::new(ProblemCode::NameTaken, detail)
            }
            DbError::Conflict(_) => Self::new(ProblemCode::Conflict, detail),
            DbError::Revoked => Self::new(ProblemCode::Unauthorized, detail),
            DbError::Invitation(_) => Self::new(ProblemCode::InvitationNeeded, detail),
            DbError::LeaseEnded(_) => Self::new(ProblemCode::LeaseEnded, detail),
            DbError::TooManyLeases { wait, .. } => {
                let problem = Problem::new(ProblemCode::TooManyLeases, detail);
                Self(Box::new(problem), Some(wait))
            }
            DbError::TooManyCandidates(_) => {
                let problem = Problem::new(ProblemCode::TooManyCandidates, detail);
                Self(Box::new(problem), Some(CANDIDATE_WAIT))
            }
            DbError::Game { game, reason } => {
                let mut problem = Problem::new(ProblemCode::ChunkRefused, detail);
                problem.chunk_error = Some(reason.code().to_owned());
                problem.game = Some(game);
                Self(Box::new(problem), None)
            }
            DbError::Behind { wait } => Self::behind(wait),
            error if error.is_temporary() => Self::unavailable(&error),
            error => Self::internal(&error),
        }
    }
}

impl From<BlobError> for ApiError {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Io { .. } => Self::unavailable(&error),
            // A blob that the ledger knows and the store does not have is a failure, not an absence.
            BlobError::Missing(_) | BlobError::Address(_) => Self::internal(&error),
        }
    }
}

impl From<ArchiveError> for ApiError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Database(error) => error.into(),
            ArchiveError::Blob(error) => error.into(),
            ArchiveError::Damaged(_) | ArchiveError::Io(_) | ArchiveError::Cut(_) => {
                Self::internal(&error)
            }
        }
    }
}

impl From<ChunkError> for ApiError {
    fn from(error: ChunkError) -> Self {
        let mut problem = Problem::new(ProblemCode::ChunkRefused, error.to_string());
        problem.chunk_error = Some(error.code.as_str().to_owned());
        problem.game = error.game;
        problem.ply = error.ply;
        Self(Box::new(problem), None)
    }
}

impl From<IntakeError> for ApiError {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::Hash { .. } => Self::new(ProblemCode::HashMismatch, error.to_string()),
            IntakeError::Chunk(error) => error.into(),
            IntakeError::Dense { .. } => {
                let mut problem = Problem::new(ProblemCode::ChunkRefused, error.to_string());
                problem.chunk_error = Some(ChunkErrorCode::TooLarge.as_str().to_owned());
                Self(Box::new(problem), None)
            }
            IntakeError::Database(error) => error.into(),
            IntakeError::Blob(error) => error.into(),
            IntakeError::Archive(error) => error.into(),
            IntakeError::Broken(_) | IntakeError::Audit(_) | IntakeError::Random(_) => {
                Self::internal(&error)
            }
        }
    }
}

impl From<NetworkFileError> for ApiError {
    fn from(error: NetworkFileError) -> Self {
        Self::new(ProblemCode::NetworkRefused, error.to_string())
    }
}

impl From<getrandom::Error> for ApiError {
    fn from(error: getrandom::Error) -> Self {
        Self::internal(&error)
    }
}

/// The wait, and by chance somewhat more.
fn spread(wait: Duration) -> Duration {
    let chance = random::unit().unwrap_or_default();
    wait.mul_f64(1.0 + SPREAD * chance)
}

/// Seconds after which the time has certainly passed, at least 1.
fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs_f64().ceil() as u64).max(1)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self(mut problem, wait) = self;
        problem.request_id = current_request();
        let code = problem.code;
        if let Some(reason) = &problem.chunk_error {
            metrics::counter!("rookery_chunks_refused_total", "reason" => reason.clone())
                .increment(1);
        }
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        metrics::counter!("rookery_problems_total", "code" => code.as_str()).increment(1);
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        let usual = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        if let Some(wait) = wait.or_else(|| usual.then(|| spread(RETRY_AFTER))) {
            headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if code == ProblemCode::RequestTimeout {
            // What is left of the body would be read as the next request.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// What clients are asked for that meet this error one after the other.
    fn waits(seconds: u64) -> HashSet<u64> {
        let wait = Duration::from_secs(seconds);
        let asked = |_| {
            let response = ApiError::from(DbError::Behind { wait }).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            let asked = response.headers()[header::RETRY_AFTER].to_str();
            asked.unwrap().parse::<u64>().unwrap()
        };
        (0..100).map(asked).collect()
    }

    #[test]
    fn waits_before_retries_are_spread_and_bounded() {
        let soon = waits(20);
        assert!(soon.iter().all(|wait| (20..=30).contains(wait)), "{soon:?}");
        assert!(soon.len() > 3, "{soon:?}");
        let late = waits(3_600);
        assert!(late.iter().all(|wait| (40..=60).contains(wait)), "{late:?}");
    }

    #[test]
    fn failures_do_not_bring_all_clients_back_at_once() {
        let asked = |_| {
            let response = ApiError::unavailable(&"gone").into_response();
            response.headers()[header::RETRY_AFTER].as_bytes().to_vec()
        };
        let waits: HashSet<Vec<u8>> = (0..100).map(asked).collect();
        assert!(waits.len() > 1, "{waits:?}");
    }
}
