//! What happens around every request.

use std::any::Any;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rookery_common::protocol::{API_PREFIX, ProblemCode};
use tracing::Span;

use super::error::ApiError;

/// How long a request may take from its head to its answer's head, body included.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The same for a network's upload.
const UPLOAD_TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The log span of a request.
pub(super) fn span(request: &Request) -> Span {
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|id| id.to_str().ok());
    // No query and no headers: they may hold secrets.
    tracing::info_span!(
        "request",
        id = id.unwrap_or_default(),
        method = %request.method(),
        path = request.uri().path(),
    )
}

/// Answers a request that takes too long, for example because its body trickles in.
pub(super) async fn time_limit(request: Request, next: Next) -> Response {
    let network = request.method() == Method::PUT
        && request
            .uri()
            .path()
            .strip_prefix(API_PREFIX)
            .is_some_and(|path| path.starts_with("/networks/"));
    let limit = if network {
        UPLOAD_TIME_LIMIT
    } else {
        TIME_LIMIT
    };
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("the request took more than {} s", limit.as_secs());
            ApiError::new(ProblemCode::Unavailable, detail).into_response()
        }
    }
}

/// Measures how long a request takes, by its route.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.map_or_else(|| "none".to_owned(), |route| route.as_str().to_owned());
    metrics::histogram!(
        "rookery_http_request_duration_seconds",
        "method" => method_label(&method),
        "route" => route,
        "status" => response.status().as_u16().to_string(),
    )
    .record(begun.elapsed().as_secs_f64());
    response
}

/// Strangers cannot make labels: other methods count as one.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// The answer where a handler panicked.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the layer hands over the box"
)]
pub(super) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    ApiError::internal(&format_args!("a handler panicked: {message}")).into_response()
}
