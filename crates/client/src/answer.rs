//! Sending requests and reading their answers: JSON under a size limit, problems, `Retry-After`.

use std::time::{Duration, SystemTime};

use reqwest::{RequestBuilder, Response, header};
use rookery_common::protocol::{API_PREFIX, Problem};
use rookery_common::text::printable;
use serde::de::DeserializeOwned;

use crate::body::Body;
use crate::error::{ApiError, Result};
use crate::redirect;

/// Largest answer that is read where no file was asked for, in bytes: a job with thousands of puzzles is a tenth of it.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// Most characters of what is wrong with an answer: it may hold as much of the answer as it likes.
const SHOWN: usize = 400;
/// Most characters of an answer that no coordinator gave.
const SHOWN_START: usize = 120;

/// Sends a request that is answered with JSON.
///
/// # Errors
///
/// [`ApiError`].
pub async fn ask<T: DeserializeOwned>(request: RequestBuilder) -> Result<T> {
    json(send(request).await?).await
}

/// Sends a request; gives an answer that is a success and was not read yet.
///
/// # Errors
///
/// [`ApiError`]. A page for people is none of a coordinator's answers: those of proxies and captive portals come with
/// success, too.
pub async fn send(request: RequestBuilder) -> Result<Response> {
    check(request.send().await?).await
}

/// Gives an answer back that is a success.
pub(crate) async fn check(response: Response) -> Result<Response> {
    if response.status().is_success() && !is_called(&response, "text/html") {
        Ok(response)
    } else {
        Err(refusal(response).await)
    }
}

/// Whether an answer's `Content-Type` holds `kind`.
fn is_called(response: &Response, kind: &str) -> bool {
    let called = response.headers().get(header::CONTENT_TYPE);
    called
        .and_then(|called| called.to_str().ok())
        .is_some_and(|called| called.to_ascii_lowercase().contains(kind))
}

/// Reads a JSON answer.
///
/// # Errors
///
/// [`ApiError`].
pub async fn json<T: DeserializeOwned>(response: Response) -> Result<T> {
    let status = response.status().as_u16();
    let retry_after = retry_after(&response);
    // All of a coordinator's are called so.
    let is_json = is_called(&response, "json");
    let bytes = bytes(response, MAX_ANSWER_BYTES).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        if is_json && !bytes.trim_ascii_start().starts_with(b"<") {
            ApiError::NotUnderstood(printable(&error.to_string(), SHOWN))
        } else {
            ApiError::stranger(status, "the answer is not JSON", retry_after)
        }
    })
}

/// Reads an answer of plain text.
///
/// # Errors
///
/// [`ApiError`].
pub async fn text(response: Response) -> Result<String> {
    let bytes = bytes(response, MAX_ANSWER_BYTES).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads an answer that is no longer than `limit` bytes.
///
/// # Errors
///
/// [`ApiError`].
pub async fn bytes(response: Response, limit: u64) -> Result<Vec<u8>> {
    collect(Body::new(response)?, limit).await
}

/// Reads a body that is no longer than `limit` bytes, decompressed.
///
/// # Errors
///
/// [`ApiError`].
pub async fn collect(mut body: Body, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = body.chunk().await? {
        if (bytes.len() + part.len()) as u64 > limit {
            let error = format!("it is longer than {limit} bytes");
            return Err(ApiError::NotUnderstood(error));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Reads an answer that is not a success.
async fn refusal(response: Response) -> ApiError {
    let status = response.status();
    let retry_after = retry_after(&response);
    let destination = destination(&response);
    let bytes = match bytes(response, MAX_ANSWER_BYTES).await {
        Ok(bytes) => bytes,
        Err(error) => return error,
    };
    match (serde_json::from_slice::<Problem>(&bytes), destination) {
        (Ok(problem), _) => ApiError::Problem {
            problem: Box::new(Problem {
                status: status.as_u16(),
                ..problem
            }),
            retry_after,
        },
        (Err(_), Some(server)) => ApiError::Unexpected {
            status: status.as_u16(),
            detail: format!(
                "RK-0104: it leads to {server}; if the coordinator is there, give that address with --server"
            ),
            retry_after,
        },
        (Err(_), None) => {
            let reason = status.canonical_reason().unwrap_or("no reason given");
            let start = printable(&String::from_utf8_lossy(&bytes), SHOWN_START);
            ApiError::stranger(
                status.as_u16(),
                &format!("{reason}, {start:?}"),
                retry_after,
            )
        }
    }
}

/// The server that a redirect leads to, as far as it is shown.
fn destination(response: &Response) -> Option<String> {
    let url = redirect::target(response)?;
    let server = url.as_str().split(API_PREFIX).next()?;
    Some(printable(server, SHOWN))
}

/// The answer's `Retry-After`, in seconds or as a date. A date counts from the answer's own `Date`, as clocks differ.
pub fn retry_after(response: &Response) -> Option<Duration> {
    let header = |name| response.headers().get(name)?.to_str().ok().map(str::trim);
    let value = header(header::RETRY_AFTER)?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let said = header(header::DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let now = said.unwrap_or_else(SystemTime::now);
    Some(until.duration_since(now).unwrap_or_default())
}
