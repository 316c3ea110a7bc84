//! An answer on its way to the client.
//!
//! With HTTP/1.1 the connection ends if its client takes too little. With HTTP/2 a client can keep the
//! connection alive and let each answer on it wait, by giving no window: what was read of the answer
//! would stay in memory, and its file open, for as long as the client likes. hyper then asks for no
//! more, so the answer cannot end itself. But each is sent by a task of its own: [`Streams`] ends the
//! task if the client has not taken in time what was given last, and the stream is reset.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};
use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::activity::Answering;
use crate::limits::permits::AddressPermit;

/// Most that is given to an HTTP/2 stream at once, in bytes: so much at least a client takes in the
/// time that it has, and no more of an answer stays in memory when all of it was given.
const PIECE: usize = 16 << 10;

tokio::task_local! {
    /// That of the HTTP/2 stream whose task this is.
    static PACE: Arc<Pace>;
}

/// Since when a piece of an answer waits to be taken, if one does.
#[derive(Debug, Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    fn given(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    fn taken(&self) {
        *self.0.lock() = None;
    }

    /// Until a piece has waited for this time.
    async fn stalled(&self, limit: Duration) {
        loop {
            let given = *self.0.lock();
            let until = given.unwrap_or_else(Instant::now) + limit;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Runs HTTP/2 streams, each until its answer is given or the client has not taken a piece of it for
/// this time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub(super) stall: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let (pace, stall) = (Arc::new(Pace::default()), self.stall);
        tokio::spawn(PACE.scope(pace.clone(), async move {
            tokio::select! {
                () = stream => {}
                () = pace.stalled(stall) => {
                    tracing::debug!("An answer was not taken in time; its stream is reset.");
                }
            }
        }));
    }
}

/// The body of an answer; the request is being answered for as long as it is not sent.
pub(super) struct TrackedBody {
    body: Body,
    /// What is left of the part that was read last.
    rest: Bytes,
    /// With HTTP/2.
    pace: Option<Arc<Pace>>,
    _answering: Answering,
    _permit: Option<Arc<AddressPermit>>,
}

impl TrackedBody {
    /// Makes a response one that can be sent. The [`AddressPermit`] among its extensions is its own until
    /// then.
    pub(super) fn to_send(
        mut response: Response,
        answering: Answering,
    ) -> axum::http::Response<Self> {
        let permit = response.extensions_mut().remove::<Arc<AddressPermit>>();
        response.map(|body| Self {
            body,
            rest: Bytes::new(),
            pace: PACE.try_with(Arc::clone).ok(),
            _answering: answering,
            _permit: permit,
        })
    }

    /// The next piece. It is a copy, as it would keep the whole of the part in memory otherwise.
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(part) => self.rest = part,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = Bytes::copy_from_slice(&self.rest[..length]);
        self.rest.advance(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(pace) = self.pace.clone() else {
            return Pin::new(&mut self.body).poll_frame(context);
        };
        pace.taken();
        let piece = ready!(self.poll_piece(context));
        pace.given();
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut size = SizeHint::new();
        size.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            size.set_upper(upper + rest);
        }
        size
    }
}
