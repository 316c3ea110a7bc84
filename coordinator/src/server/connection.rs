//! One connection: requests in turn or, with HTTP/2, at once, and its end.
//!
//! hyper's own limit on the time for a request's head covers neither HTTP/2 nor the bytes by which
//! versions are told apart. Here one watch covers all: a connection on which no request is being
//! answered must bring a whole one in time.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::activity::Activity;
use super::tracked_body::{Streams, TrackedBody};
use crate::limits::Limits;
use crate::limits::address::Peer;

/// Largest head of a request, in bytes.
const HEAD_BYTES: usize = 32 << 10;
/// Most header lines of a request.
const HEADERS: usize = 64;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 16;
/// Most of an answer that waits in memory for an HTTP/2 connection to send it, in bytes.
const SEND_BYTES: usize = 64 << 10;
/// How long a connection that is to end may be idle: it has not sent a whole request, or its client
/// has not taken all of an answer.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often a client of HTTP/2 is asked whether it is still there, and how long it may think.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Serves connections, all with the same router and limits.
#[derive(Clone)]
pub(super) struct HttpService {
    router: Router,
    http: Builder<Streams>,
    idle: Duration,
    stopping: CancellationToken,
}

impl HttpService {
    pub(super) fn new(router: Router, limits: &Limits, stopping: CancellationToken) -> Self {
        let mut http = Builder::new(Streams {
            stall: limits.stall,
        });
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(HEADERS)
            .max_buf_size(HEAD_BYTES);
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_send_buf_size(SEND_BYTES)
            .max_header_list_size(HEAD_BYTES as u32)
            .keep_alive_interval(PING.0)
            .keep_alive_timeout(PING.1);
        Self {
            router,
            http,
            idle: limits.idle,
            stopping,
        }
    }

    pub(super) async fn serve<S>(self, stream: S, peer: IpAddr, activity: Arc<Activity>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let answering = activity.begin();
            let router = self.router.clone();
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Peer(peer));
                let Ok(response) = router.oneshot(request).await;
                Ok::<_, Infallible>(TrackedBody::to_send(response, answering))
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let mut leaving = pin!(async {
            tokio::select! {
                () = self.stopping.cancelled() => {}
                () = activity.asked_to_go() => {}
            }
        });
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
                () = leaving.as_mut(), if !finishing => {
                    finishing = true;
                    idle.set(activity.idle(FAREWELL.min(self.idle)));
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
