//! What happens around every request.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rookery_common::protocol::{API_PREFIX, ProblemCode};
use tower_http::classify::ServerErrorsFailureClass;
use tracing::Span;

use super::error::ApiError;
use super::request_id;
use crate::app::App;
use crate::limits::TooMuch;
use crate::limits::address::{ClientAddress, Peer};
use crate::panics::Panicked;
use crate::telemetry::Underway;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest name of a request that is taken from a client.
const ID_CHARS: usize = 64;
/// When an address asks again that has too many answers to take.
const COME_AGAIN: Duration = Duration::from_secs(10);
/// How long a request may take from its head to its answer's head, body included.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The same for a chunk's upload: 16 MiB at half a megabit a second.
const CHUNK_TIME_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The same for a network's upload.
const NETWORK_TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Drops names of requests that no log should hold; another is made then.
pub(super) async fn check_id(mut request: Request, next: Next) -> Response {
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let refuse = |id: &HeaderValue| id.len() > ID_CHARS || !id.as_bytes().iter().all(fine);
    if request.headers().get(REQUEST_ID).is_some_and(refuse) {
        request.headers_mut().remove(REQUEST_ID);
    }
    next.run(request).await
}

/// Answers requests that may change something to the end, even if the client goes away in the middle: what was done is
/// also told to listeners and charged to its sender, and the client keeps its place among the answers until then.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let answer = tokio::spawn(next.run(request)).await;
    answer.unwrap_or_else(|error| ApiError::internal(&error).into_response())
}

fn id(request: &Request) -> &str {
    let id = request.headers().get(REQUEST_ID);
    id.and_then(|id| id.to_str().ok()).unwrap_or_default()
}

/// Finds out who asks, and lets problems name the request.
pub(super) async fn identify(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if let Some(Peer(peer)) = request.extensions().get::<Peer>().copied() {
        let client = app.limits.proxies.client(peer, request.headers());
        request.extensions_mut().insert(client);
    }
    let id = id(&request).to_owned();
    request_id::within(id, next.run(request)).await
}

pub(super) fn span(request: &Request) -> Span {
    let client = request.extensions().get::<ClientAddress>();
    // No query and no headers: they may hold secrets.
    tracing::info_span!(
        "request",
        id = id(request),
        method = %request.method(),
        path = request.uri().path(),
        client = client.map(|ClientAddress(address)| tracing::field::display(address)),
    )
}

/// Logs that an answer broke off. A status of 500 or above is no news: its handler has logged
/// why, and a coordinator that is stopping denies readiness as it should.
pub(super) fn broke_off(failure: ServerErrorsFailureClass, _: Duration, _: &Span) {
    if let ServerErrorsFailureClass::Error(error) = failure {
        tracing::error!(%error, "An answer broke off.");
    }
}

/// Refuses an address that sends too many requests, or does not read its answers. Requests of those that watch the
/// service, `/healthz` and `/readyz`, are not counted.
pub(super) async fn admit(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        // A proxy in front may have read the other one (RFC 9112, section 3.2).
        return ApiError::bad_request("the request has more than one Host header").into_response();
    }
    let watch = matches!(request.uri().path(), "/healthz" | "/readyz");
    let client = request.extensions().get::<ClientAddress>().copied();
    if let Err(too_much) = app.limits.request(client)
        && !watch
    {
        return ApiError::too_many("requests from this address", too_much).into_response();
    }
    let Ok(permit) = app.limits.answer(client) else {
        let what = "requests from this address at once";
        return ApiError::too_many(what, TooMuch(COME_AGAIN)).into_response();
    };
    let turn = match request.method().is_safe() && !watch {
        true => app.limits.read(client).await,
        false => None,
    };
    let mut response = next.run(request).await;
    drop(turn);
    if let Some(permit) = permit {
        // The sender of the answer keeps it until that is done.
        response.extensions_mut().insert(Arc::new(permit));
    }
    response
}

/// How long a request's body may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLimit(pub(super) Duration);

impl Default for TimeLimit {
    fn default() -> Self {
        Self(TIME_LIMIT)
    }
}

impl TimeLimit {
    /// The limit of a request at a whole path, as it came.
    fn of(method: &Method, path: &str) -> Self {
        let upload = (method == Method::PUT)
            .then(|| path.strip_prefix(API_PREFIX))
            .flatten();
        match upload {
            Some(path) if path.starts_with("/networks/") => Self(NETWORK_TIME_LIMIT),
            Some(path) if path.starts_with("/chunks/") => Self(CHUNK_TIME_LIMIT),
            _ => Self::default(),
        }
    }
}

/// Tells how long a request's body may take, and answers a request that takes too long inside the
/// coordinator. A body that trickles in is noticed where it is read.
pub(super) async fn time_limit(mut request: Request, next: Next) -> Response {
    let body = TimeLimit::of(request.method(), request.uri().path());
    request.extensions_mut().insert(body);
    let limit = body.0 + TIME_LIMIT / 2;
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let seconds = limit.as_secs();
            tracing::error!(
                seconds,
                "RK-0228: A request could not be served now: it took too long inside the coordinator."
            );
            let detail = format!("the request took more than {seconds} s");
            ApiError::new(ProblemCode::Unavailable, detail).into_response()
        }
    }
}

/// Measures how long a request takes, by its route.
pub(super) async fn measure(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let in_flight = Underway::begin("rookery_http_requests_in_flight");
    let response = next.run(request).await;
    drop(in_flight);
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
    ApiError::internal(&Panicked::of(&*panic)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::put;
    use axum::{Extension, Router};
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn told(path: &str) -> u64 {
        let tell = put(async |limit: Extension<TimeLimit>| limit.0.0.as_secs().to_string());
        let api = Router::new().route("/{kind}/{hash}", tell);
        let router = Router::new()
            .nest(API_PREFIX, api)
            .layer(axum::middleware::from_fn(time_limit));
        let request = Request::put(format!("{API_PREFIX}{path}")).body(Body::empty());
        let answer = router.oneshot(request.unwrap()).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        str::from_utf8(&body).unwrap().parse().unwrap()
    }

    /// The API's own router sees no prefix.
    #[tokio::test]
    async fn uploads_have_more_time_and_their_readers_know() {
        assert_eq!(told("/chunks/0").await, 300);
        assert_eq!(told("/networks/0").await, 1800);
        assert_eq!(told("/tokens/0").await, 60);
    }
}
