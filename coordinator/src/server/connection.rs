//! One connection: requests in turn or, with HTTP/2, at once, and its end.
//!
//! hyper's own limit on the time for a request's head covers neither HTTP/2 nor the bytes by which
//! versions are told apart. Here one watch covers all: a connection on which no request is being
//! answered must bring a whole one in time.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::Request;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::limits::Limits;
use crate::limits::address::Peer;

/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 32 << 10;
/// Most header lines of a request.
const HEADERS: usize = 64;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 64;
/// How often a client of HTTP/2 is asked whether it is still there, and how long it may think.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Serves connections, all with the same router and limits.
#[derive(Clone)]
pub(super) struct Doorway {
    router: Router,
    http: Builder<TokioExecutor>,
    idle: Duration,
    stall: Duration,
    stopping: CancellationToken,
}

impl Doorway {
    pub(super) fn new(router: Router, limits: &Limits, stopping: CancellationToken) -> Self {
        let mut http = Builder::new(TokioExecutor::new());
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS)
            .max_buf_size(HEAD_BYTES);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEAD_BYTES as u32)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1);
        Self {
            router,
            http,
            idle: limits.idle,
            stall: limits.stall,
            stopping,
        }
    }

    /// Serves a connection to its end.
    pub(super) async fn serve<S>(self, stream: S, peer: IpAddr)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.stall));
        let activity = Arc::new(Activity::default());
        let service = service_fn(|request: Request<Incoming>| {
            let answering = activity.begin();
            let router = self.router.clone();
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Peer(peer));
                let Ok(response) = router.oneshot(request).await;
                Ok::<_, Infallible>(response.map(|body| Answer {
                    body,
                    _answering: answering,
                }))
            }
        });
        let mut connection = pin!(
            self.http
                .serve_connection(TokioIo::new(Box::pin(stream)), service)
        );
        let mut stopping = pin!(self.stopping.cancelled());
        let mut idle = pin!(activity.idle(self.idle));
        let mut finishing = false;
        loop {
            tokio::select! {
                served = connection.as_mut() => {
                    if let Err(error) = served {
                        tracing::debug!(%peer, %error, "A connection broke.");
                    }
                    return;
                }
                () = idle.as_mut() => {
                    tracing::debug!(%peer, "A connection was idle for too long.");
                    return;
                }
                () = stopping.as_mut(), if !finishing => {
                    finishing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Whether a connection is being used.
#[derive(Debug)]
struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    answering: u32,
    since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(State {
            answering: 0,
            since: Instant::now(),
        }))
    }
}

impl Activity {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A request is being answered, until what this gives is dropped.
    fn begin(self: &Arc<Self>) -> Answering {
        self.change(|state| state.answering += 1);
        Answering(self.clone())
    }

    /// Until no request has been answered for this time.
    async fn idle(&self, limit: Duration) {
        loop {
            let mut until = Instant::now() + limit;
            self.change(|state| {
                if state.answering == 0 {
                    until = state.since + limit;
                }
            });
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
struct Answering(Arc<Activity>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.answering -= 1;
            state.since = Instant::now();
        });
    }
}

/// The body of an answer; the request is being answered for as long as it is not sent.
struct Answer {
    body: Body,
    _answering: Answering,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
