//! Reading answers: JSON under a size limit, problems, `Retry-After`.

use std::time::Duration;

use reqwest::{Response, header};
use rookery_common::protocol::{API_PREFIX, Problem};
use rookery_common::text::printable;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Largest JSON answer that is read, in bytes: a job with thousands of puzzles is a tenth of it.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Most characters of what is wrong with an answer: it may hold as much of the answer as it likes.
const SHOWN: usize = 400;

/// Reads a JSON answer.
pub(super) async fn json<T: DeserializeOwned>(response: Response) -> Result<T, ApiError> {
    let status = response.status().as_u16();
    let retry_after = retry_after(&response);
    let says_json = says_json(&response);
    let bytes = body(response).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        if !says_json || bytes.trim_ascii_start().starts_with(b"<") {
            return ApiError::stranger(status, "the answer is not JSON", retry_after);
        }
        let error = printable(&error.to_string(), SHOWN);
        ApiError::Unexpected {
            status,
            detail: format!("the answer is not what this version understands ({error})"),
            retry_after,
        }
    })
}

/// Whether the answer is called JSON, as all of a coordinator's are.
fn says_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.to_ascii_lowercase().contains("json"))
}

/// Reads an answer of plain text.
pub(super) async fn text(response: Response) -> Result<String, ApiError> {
    let bytes = body(response).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads an answer that is not a success.
pub(super) async fn problem(response: Response) -> ApiError {
    let status = response.status();
    let retry_after = retry_after(&response);
    let destination = destination(&response);
    let bytes = match body(response).await {
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
                "it leads to {server}; if the coordinator is there, give that address with --server"
            ),
            retry_after,
        },
        (Err(_), None) => {
            let what = status.canonical_reason().unwrap_or("no reason given");
            ApiError::stranger(status.as_u16(), what, retry_after)
        }
    }
}

/// The server that a redirect leads to, as far as it is shown.
fn destination(response: &Response) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
    let url = response.url().join(location).ok()?;
    let server = url.as_str().split(API_PREFIX).next()?;
    Some(printable(server, SHOWN))
}

/// The answer's `Retry-After` in seconds; the form with a date is not used by coordinators.
pub(super) fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    value
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
        .map(Duration::from_secs)
}

async fn body(mut response: Response) -> Result<Vec<u8>, ApiError> {
    let status = response.status().as_u16();
    let mut bytes = Vec::new();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(|error| ApiError::unreachable(&error))?
    {
        if bytes.len() + part.len() > MAX_ANSWER_BYTES {
            let detail = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
            return Err(ApiError::Unexpected {
                status,
                detail,
                retry_after: None,
            });
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}
