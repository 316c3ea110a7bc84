//! The one error type of all handlers: a problem for the client, and a cause for the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rookery_common::chunk::ChunkError;
use rookery_common::network::file::NetworkFileError;
use rookery_common::protocol::{Problem, ProblemCode};

use crate::blobs::BlobError;
use crate::intake::IntakeError;
use crate::store::StoreError;

/// How long a client waits after a failure of the coordinator, in seconds.
const RETRY_AFTER: &str = "5";

/// An answer that is no success.
#[derive(Debug)]
pub struct ApiError(Box<Problem>);

/// A handler's result.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// A problem of this code.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// The request could not be understood.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::BadRequest, detail)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ProblemCode::NotFound, detail)
    }

    /// Something failed inside; the cause is logged and not told.
    pub fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "A request failed inside the coordinator.");
        let detail = "The cause is in the coordinator's log, under the request's x-request-id.";
        Self::new(ProblemCode::Internal, detail)
    }

    /// A dependency is down; the cause is logged and not told.
    pub fn unavailable(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "A request could not be served now.");
        Self::new(ProblemCode::Unavailable, "Try again later.")
    }

    /// The problem as it will be sent.
    pub const fn problem(&self) -> &Problem {
        &self.0
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::NotFound(_) => Self::not_found(detail),
            StoreError::NameTaken(_) => Self::new(ProblemCode::NameTaken, detail),
            StoreError::Conflict(_) => Self::new(ProblemCode::Conflict, detail),
            StoreError::LeaseEnded(_) => Self::new(ProblemCode::LeaseEnded, detail),
            StoreError::Game { game, reason } => {
                let mut problem = Problem::new(ProblemCode::ChunkRefused, detail);
                problem.chunk_error = Some(reason.code().to_owned());
                problem.game = Some(game);
                Self(Box::new(problem))
            }
            StoreError::Closed => Self::unavailable(&error),
            StoreError::Unreadable { .. }
            | StoreError::Database(_)
            | StoreError::Migration(_)
            | StoreError::Commit(_) => Self::internal(&error),
        }
    }
}

impl From<BlobError> for ApiError {
    fn from(error: BlobError) -> Self {
        // A blob that the ledger knows and the store does not have is a failure, not an absence.
        Self::internal(&error)
    }
}

impl From<ChunkError> for ApiError {
    fn from(error: ChunkError) -> Self {
        let mut problem = Problem::new(ProblemCode::ChunkRefused, error.to_string());
        problem.chunk_error = Some(error.code.as_str().to_owned());
        problem.game = error.game;
        problem.ply = error.ply;
        Self(Box::new(problem))
    }
}

impl From<IntakeError> for ApiError {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::Hash { .. } => Self::new(ProblemCode::HashMismatch, error.to_string()),
            IntakeError::Chunk(error) => error.into(),
            IntakeError::Store(error) => error.into(),
            IntakeError::Blob(error) => error.into(),
            IntakeError::Broken(_) => Self::internal(&error),
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

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        metrics::counter!("rookery_problems_total", "code" => self.0.code.as_str()).increment(1);
        let retry = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let mut response = (status, Json(self.0)).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
