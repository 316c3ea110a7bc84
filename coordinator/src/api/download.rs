//! Files: whole, in ranges, or not at all because the client has them (RFC 9110, sections 13, 14).

use std::ops::Range;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use tokio::time::Instant;

use super::error::{ApiError, ApiResult};
use crate::app::App;
use crate::blobs::{BlobKind, ByteStream};
use crate::config::DownloadPath;
use crate::db::ArchivedChunk;
use crate::limits::address::ClientAddress;
use crate::telemetry;

/// Bytes of a file that a client takes in a second at least, once [`GRACE`] is over.
const LEAST_SPEED: f64 = 4096.0;
/// For so long a client may be slower.
const GRACE: Duration = Duration::from_secs(60);

/// How long a client may keep what it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// The address names the bytes.
    Immutable,
    /// The same, but not everybody may have them.
    ImmutablePrivate,
    /// The address names whatever is best or has this number now.
    Revalidate,
}

/// A file to be sent.
pub(super) struct Download {
    pub(super) kind: BlobKind,
    pub(super) hash: ContentHash,
    pub(super) bytes: u64,
    pub(super) caching: Caching,
    /// Whether the client may be sent elsewhere.
    pub(super) path: DownloadPath,
    /// The archive that holds it, if one does.
    pub(super) archived: Option<ArchivedChunk>,
    /// The name under which a client keeps it that asks for no other.
    pub(super) name: Option<String>,
}

/// A `Content-Disposition` that names a file. The name is made of ASCII letters, digits, `.` and `-`.
pub(super) fn attachment(name: &str) -> String {
    format!("attachment; filename=\"{name}\"")
}

/// What part of a file a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Range(Range<u64>),
    Unsatisfiable,
}

impl Download {
    /// Answers a request for the file. Where clients can get it without the coordinator, they are
    /// sent there.
    pub(super) async fn answer(
        &self,
        app: &App,
        client: Option<ClientAddress>,
        method: &Method,
        headers: &HeaderMap,
    ) -> ApiResult<Response> {
        let tag = format!("\"{}\"", self.hash);
        if text(headers, header::IF_MATCH).is_some_and(|tags| !names(tags, &tag)) {
            let detail = "the file is not the one that If-Match names";
            return Err(ApiError::new(ProblemCode::Conflict, detail));
        }
        if is_cached(headers, &tag) {
            return Ok(self.with_headers(StatusCode::NOT_MODIFIED.into_response(), &tag));
        }
        let same = text(headers, header::IF_RANGE).is_none_or(|wanted| wanted == tag);
        let part = match text(headers, header::RANGE) {
            Some(range) if same => parse_range(range, self.bytes),
            _ => Part::Whole,
        };
        if *method == Method::GET
            && part != Part::Unsatisfiable
            && self.path == DownloadPath::Direct
            && self.archived.is_none()
            && let Some(address) = app.blobs.address(self.kind, &self.hash).await?
        {
            return Ok(self.elsewhere(&address));
        }
        let response = match part {
            Part::Unsatisfiable => return Ok(self.unsatisfiable()),
            Part::Whole => {
                let all = 0..self.bytes;
                self.send(app, client, all, StatusCode::OK).await?
            }
            Part::Range(range) => {
                let shown = format!("bytes {}-{}/{}", range.start, range.end - 1, self.bytes);
                let status = StatusCode::PARTIAL_CONTENT;
                let mut response = self.send(app, client, range, status).await?;
                insert(&mut response, header::CONTENT_RANGE, &shown);
                response
            }
        };
        Ok(self.with_headers(response, &tag))
    }

    async fn send(
        &self,
        app: &App,
        client: Option<ClientAddress>,
        range: Range<u64>,
        status: StatusCode,
    ) -> ApiResult<Response> {
        let place = app.limits.file(client).ok_or_else(no_place)?;
        let length = range.end - range.start;
        let (kind, hash, range) = match self.archived {
            None => (self.kind, self.hash, range),
            Some(part) => {
                let range = part.begins + range.start..part.begins + range.end;
                (BlobKind::Archive, part.archive, range)
            }
        };
        let read = app.blobs.read(kind, &hash, range);
        let stream = telemetry::blob("read", kind, read).await?;
        let stream = steady(stream).inspect(move |_| {
            let _held = &place;
        });
        let mut response = (status, Body::from_stream(stream)).into_response();
        insert(&mut response, header::CONTENT_LENGTH, &length.to_string());
        insert(
            &mut response,
            header::CONTENT_TYPE,
            "application/octet-stream",
        );
        Ok(response)
    }

    fn unsatisfiable(&self) -> Response {
        let detail = format!("the file has {} bytes", self.bytes);
        let mut response = ApiError::new(ProblemCode::BadRange, detail).into_response();
        insert(
            &mut response,
            header::CONTENT_RANGE,
            &format!("bytes */{}", self.bytes),
        );
        response
    }

    fn with_headers(&self, mut response: Response, tag: &str) -> Response {
        insert(&mut response, header::ETAG, tag);
        insert(&mut response, header::ACCEPT_RANGES, "bytes");
        let caching = match self.caching {
            Caching::Immutable => "public, max-age=31536000, immutable",
            Caching::ImmutablePrivate => "private, max-age=31536000, immutable",
            Caching::Revalidate => "no-cache",
        };
        insert(&mut response, header::CACHE_CONTROL, caching);
        self.name_file(&mut response);
        response
    }

    fn name_file(&self, response: &mut Response) {
        if let Some(name) = &self.name {
            insert(response, header::CONTENT_DISPOSITION, &attachment(name));
        }
    }

    /// Sends the client, its `Range` with it, to another address, which may not work for long.
    fn elsewhere(&self, address: &str) -> Response {
        let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
        insert(&mut response, header::LOCATION, address);
        insert(&mut response, header::CACHE_CONTROL, "no-store");
        // The store knows no names; curl takes the one of the redirection.
        self.name_file(&mut response);
        response
    }
}

/// Ends a file whose client takes it too slowly: it would keep its place for as long as it likes.
fn steady(file: ByteStream) -> impl Stream<Item = std::io::Result<bytes::Bytes>> {
    let (begun, mut taken) = (Instant::now(), 0);
    file.map(move |part| {
        if is_too_slow(taken, begun.elapsed()) {
            let slow = "the client takes the file too slowly";
            return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, slow));
        }
        part.inspect(|bytes| taken += bytes.len())
    })
}

fn is_too_slow(taken: usize, since: Duration) -> bool {
    let late = since.saturating_sub(GRACE).as_secs_f64();
    (taken as f64) < late * LEAST_SPEED
}

fn no_place() -> ApiError {
    tracing::warn!(
        "RK-0214: A download was refused with 503: the concurrency limit of downloads is reached."
    );
    let detail = "the limit of concurrent downloads is reached; try again later";
    ApiError::new(ProblemCode::Unavailable, detail)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether the client has what a tag names.
pub(crate) fn is_cached(headers: &HeaderMap, tag: &str) -> bool {
    text(headers, header::IF_NONE_MATCH).is_some_and(|tags| names(tags, tag))
}

/// Whether a list of entity tags names `tag`.
fn names(tags: &str, tag: &str) -> bool {
    tags.split(',')
        .map(str::trim)
        .any(|one| one == "*" || one == tag)
}

fn insert(response: &mut Response, name: header::HeaderName, value: &str) {
    // Values are made of digits, hashes and fixed words.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Reads a `Range` header. Several ranges, or another unit, count as none, as RFC 9110 allows.
fn parse_range(value: &str, size: u64) -> Part {
    let Some(range) = value
        .strip_prefix("bytes=")
        .filter(|list| !list.contains(','))
    else {
        return Part::Whole;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Part::Whole;
    };
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        (Err(_), Ok(length)) if first.is_empty() => size.saturating_sub(length)..size,
        _ => return Part::Whole,
    };
    if range.is_empty() {
        Part::Unsatisfiable
    } else {
        Part::Range(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_at_a_least_speed() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert!(!is_too_slow(0, minutes(1)));
        assert!(is_too_slow(64 << 10, minutes(2)), "1 KiB a second");
        assert!(!is_too_slow(1 << 20, minutes(5)));
        assert!(is_too_slow(1 << 20, minutes(6)));
    }

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        assert_eq!(parse_range("bytes=0-3", 10), Part::Range(0..4));
        assert_eq!(parse_range("bytes=4-", 10), Part::Range(4..10));
        assert_eq!(parse_range("bytes=-3", 10), Part::Range(7..10));
        assert_eq!(parse_range("bytes=-30", 10), Part::Range(0..10));
        assert_eq!(parse_range("bytes=5-99", 10), Part::Range(5..10));
        assert_eq!(parse_range("bytes=10-", 10), Part::Unsatisfiable);
        assert_eq!(parse_range("bytes=-0", 10), Part::Unsatisfiable);
        for other in [
            "bytes=3-2",
            "bytes=0-1,3-4",
            "lines=0-3",
            "bytes=x-y",
            "bytes=-",
            "bytes",
        ] {
            assert_eq!(parse_range(other, 10), Part::Whole, "{other}");
        }
        assert_eq!(
            parse_range("bytes=0-18446744073709551615", 10),
            Part::Range(0..10)
        );
    }
}
