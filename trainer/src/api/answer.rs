//! Reading answers: bodies under a size limit and with the expected hash, refusals, `Retry-After`.

use std::time::Duration;

use reqwest::Response;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::API_PREFIX;
use rookery_common::protocol::problem::Problem;
use rookery_common::text::printable;

use super::error::ApiError;

/// Most bytes of a JSON answer.
const JSON_LIMIT: u64 = 16 << 20;

/// How many characters of an answer are shown that no coordinator gave.
const SHOWN: usize = 120;

/// How many characters are shown of what is wrong with an answer: it may hold as much of the answer as it likes.
const SHOWN_ERROR: usize = 400;

/// What a good answer is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Most bytes.
    limit: u64,
    /// The body's SHA-256.
    hash: Option<ContentHash>,
}

impl Expected {
    /// JSON, of a size that coordinators give.
    pub(super) const JSON: Self = Self {
        limit: JSON_LIMIT,
        hash: None,
    };

    /// The file with this hash, no longer than `limit` bytes.
    pub(super) const fn file(hash: ContentHash, limit: u64) -> Self {
        Self {
            limit,
            hash: Some(hash),
        }
    }

    fn check(self, body: Vec<u8>) -> Result<Vec<u8>, ApiError> {
        match self.hash.map(|expected| (expected, ContentHash::of(&body))) {
            Some((expected, got)) if got != expected => Err(ApiError::WrongHash { expected, got }),
            _ => Ok(body),
        }
    }
}

/// The body of a good answer; any other answer is an error.
pub(super) async fn read(response: Response, expected: Expected) -> Result<Vec<u8>, ApiError> {
    if response.status().is_success() && !is_page(&response) {
        expected.check(read_body(response, expected.limit).await?)
    } else {
        Err(refusal(response).await)
    }
}

/// Whether an answer is a page for people, which is never what was asked for: those of proxies and captive portals
/// come with success, too.
fn is_page(response: &Response) -> bool {
    let kind = response.headers().get("content-type");
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.to_ascii_lowercase().contains("text/html"))
}

/// What is wrong with JSON that was expected to be another, as far as it is shown.
pub(super) fn not_understood(error: &serde_json::Error) -> ApiError {
    ApiError::Answer(printable(&error.to_string(), SHOWN_ERROR))
}

/// Reads a body that is no longer than `limit` bytes.
async fn read_body(mut response: Response, limit: u64) -> Result<Vec<u8>, ApiError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if (body.len() + part.len()) as u64 > limit {
            return Err(ApiError::TooLarge(limit));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

async fn refusal(response: Response) -> ApiError {
    let status = response.status().as_u16();
    let retry_after = retry_after(&response);
    let destination = destination(&response);
    let body = match read_body(response, JSON_LIMIT).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    match (serde_json::from_slice::<Problem>(&body), destination) {
        (Ok(problem), _) => ApiError::Refused {
            problem: Box::new(Problem { status, ..problem }),
            retry_after,
        },
        (Err(_), Some(server)) => ApiError::Elsewhere { status, server },
        (Err(_), None) => ApiError::Foreign {
            status,
            start: String::from_utf8_lossy(&body).chars().take(SHOWN).collect(),
            retry_after,
        },
    }
}

/// The server that a redirect leads to, as far as it is shown.
fn destination(response: &Response) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get("location")?.to_str().ok()?;
    let url = response.url().join(location).ok()?;
    let server = url.as_str().split(API_PREFIX).next()?;
    Some(server.chars().take(SHOWN).collect())
}

/// The answer's `Retry-After` in seconds; the form with a date is not used by coordinators.
fn retry_after(response: &Response) -> Option<Duration> {
    let header = response.headers().get("retry-after")?;
    header.to_str().ok()?.parse().ok().map(Duration::from_secs)
}
