//! Which answers are compressed: texts that everybody may read, for clients that ask for it.
//!
//! Files are compressed already, or are asked for in ranges under a strong `ETag`, and events must not
//! wait in a buffer. Answers to requests with a token are sent as they are: from the compressed size of an answer that
//! holds a secret beside something that an attacker chose, the secret can be guessed (BREACH). So are answers to
//! anything but `GET`, among them those that hold a new token.

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::CompressionLevel;
use tower_http::compression::predicate::{And, SizeAbove};
use tower_http::compression::{CompressionLayer, Predicate};

/// Smaller answers fit into a packet as they are.
const LEAST_BYTES: u64 = 1024;

/// Media types of what is compressed, without their parameters.
const TEXTS: [&str; 7] = [
    "application/json",
    "application/vnd.chess-pgn",
    "application/atom+xml",
    "text/html",
    "text/css",
    "text/javascript",
    "image/svg+xml",
];

/// The layer that compresses; requests come through [`withdraw`] before. Speed matters more than the last
/// percent: the answers' sizes fall to a quarter at any level.
pub(super) fn layer() -> CompressionLayer<And<SizeAbove, impl Predicate>> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(LEAST_BYTES).and(is_text))
}

fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| TEXTS.contains(&kind.trim()))
}

/// Withdraws the offer to take a compressed answer from requests whose answers may hold secrets.
pub(super) async fn withdraw(mut request: Request, next: Next) -> Response {
    if request.method() != Method::GET || request.headers().contains_key(header::AUTHORIZATION) {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    next.run(request).await
}
