//! Bodies of requests: read under limits of size, time and memory.

use std::time::Duration;

use axum::RequestExt as _;
use axum::body::HttpBody as _;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use http_body_util::{BodyExt as _, LengthLimitError};
use rookery_common::protocol::ProblemCode;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{ApiError, ApiResult};
use super::extract::Sender;
use super::middleware::TimeLimit;
use crate::app::App;
use crate::limits::address::ClientAddress;
use crate::limits::bodies::BodyRoom;

#[derive(Debug)]
pub struct Bytes(pub bytes::Bytes);

impl FromRequest<App> for Bytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        read(request, app).await.map(Self)
    }
}

/// Bytes with their share of the room for bodies, given back when the last of them is dropped.
struct BufferedBody {
    bytes: Vec<u8>,
    _room: BodyRoom,
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body whole. It may take minutes: where the sender's token must be good now, it must be so
/// when all is there.
pub(super) async fn read(request: Request, app: &App) -> ApiResult<bytes::Bytes> {
    let TimeLimit(limit) = request.extensions().get().copied().unwrap_or_default();
    let until = Instant::now() + limit;
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let sender = request.extensions().get::<Sender>().copied();
    let client = request.extensions().get::<ClientAddress>().copied();
    let mut body = request.with_limited_body().into_body();
    let longest = body.size_hint().upper();
    if announced
        .zip(longest)
        .is_some_and(|(length, most)| length > most)
    {
        return Err(too_long());
    }
    if body.is_end_stream() {
        return Ok(bytes::Bytes::new());
    }
    let mut bytes = Vec::new();
    let mut room = app.limits.body(client, longest);
    loop {
        let frame = timeout_at(until, timeout(app.limits.stall, body.frame())).await;
        let frame = match frame {
            Ok(Ok(Some(frame))) => frame.map_err(broken)?,
            Ok(Ok(None)) => break,
            Ok(Err(_)) => return Err(too_slow("paused for more than", app.limits.stall)),
            Err(_) => return Err(too_slow("took more than", limit)),
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if !room.hold(bytes.len() + data.len()) {
            return Err(no_room());
        }
        bytes.extend_from_slice(&data);
    }
    if let Some(sender) = sender {
        sender.must_still_be_good(app).await?;
    }
    let held = BufferedBody { bytes, _room: room };
    Ok(bytes::Bytes::from_owner(held))
}

fn no_room() -> ApiError {
    tracing::warn!(
        "RK-0213: An upload was refused with 503: the memory for bodies is in use. Raise --body-mib."
    );
    let detail = "the memory for uploads is in use; try again later";
    ApiError::new(ProblemCode::Unavailable, detail)
}

fn too_slow(what: &str, limit: Duration) -> ApiError {
    let detail = format!("the body {what} {} s", limit.as_secs());
    ApiError::new(ProblemCode::RequestTimeout, detail)
}

fn too_long() -> ApiError {
    let detail = "the body is longer than this address takes";
    ApiError::new(ProblemCode::TooLarge, detail)
}

fn broken(error: axum::Error) -> ApiError {
    let cause = error.into_inner();
    if cause.is::<LengthLimitError>() {
        return too_long();
    }
    ApiError::bad_request(format!("the body broke off: {cause}"))
}
