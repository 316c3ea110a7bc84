//! Listening: connections in, each with its limits, until the coordinator stops.
//!
//! ```text
//! accept ─> places (of the address, all) ─> TLS, if wanted ─> connection: HTTP/1.1 or 2 ─> router
//! ```
//!
//! A client costs no more than a place among the connections for as long as it asks for nothing:
//! [`connection`] closes it after a time without a whole request, whether it sends slowly, only
//! the beginning of something, or nothing, and sooner where others wait for one of the [`permits`].
//! [`write_timeout`] breaks connections on which answers are taken too slowly, [`tracked_body`] ends single
//! ones. [`scrape`] serves metrics at a listener of its own. [`tls`] reads certificates, again when they change.
//! [`address`] tells handlers where a client reaches the coordinator.

mod activity;
pub mod address;
mod connection;
pub mod sighup;
mod tracked_body;

mod permits;
pub mod scrape;
pub mod tls;
mod write_timeout;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::{Extension, Router};
use rookery_tls::ServerCertificate;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::limits::Limits;
use crate::telemetry::Underway;
use connection::HttpService;
use permits::{ConnectionLimit, ConnectionPermit};
use write_timeout::WriteTimeoutStream;

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted, for example for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// In the extensions of requests that came through TLS of the coordinator itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encrypted;

pub struct Server {
    pub router: Router,
    pub limits: Arc<Limits>,
    /// The certificate, if the coordinator itself speaks TLS.
    pub tls: Option<ServerCertificate>,
    /// Cancelled when no more is accepted and what is being served is finished.
    pub stopping: CancellationToken,
}

impl Server {
    /// Serves until told to stop and everything in hand is finished.
    pub async fn run(self, listener: TcpListener) {
        let tasks = TaskTracker::new();
        let mut places = ConnectionLimit::new(self.limits.connections);
        let router = match self.tls {
            Some(_) => self
                .router
                .layer(strict_transport())
                .layer(Extension(Encrypted)),
            None => self.router,
        };
        let doorway = HttpService::new(router, &self.limits, self.stopping.clone());
        let stall = self.limits.stall;
        loop {
            let accepted = tokio::select! {
                () = self.stopping.cancelled() => break,
                accepted = accept(&listener) => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "A connection could not be accepted.");
                    metrics::counter!("rookery_connections_refused_total", "reason" => "system")
                        .increment(1);
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(own_permit) = self.limits.connection(peer.ip()) else {
                metrics::counter!("rookery_connections_refused_total", "reason" => "address")
                    .increment(1);
                continue;
            };
            let place = tokio::select! {
                () = self.stopping.cancelled() => break,
                place = places.take() => place,
            };
            let (doorway, tls) = (doorway.clone(), self.tls.clone());
            tasks.spawn(async move {
                let connection = Underway::begin("rookery_connections");
                let stream = WriteTimeoutStream::new(stream, stall);
                serve(stream, peer, &place, doorway, tls).await;
                drop((connection, place, own_permit));
            });
        }
        drop(listener);
        tasks.close();
        tasks.wait().await;
    }
}

/// Tells browsers to come by HTTPS from now on.
fn strict_transport() -> SetResponseHeaderLayer<HeaderValue> {
    let value = HeaderValue::from_static("max-age=31536000");
    SetResponseHeaderLayer::overriding(header::STRICT_TRANSPORT_SECURITY, value)
}

async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

async fn serve(
    stream: WriteTimeoutStream<TcpStream>,
    peer: SocketAddr,
    place: &ConnectionPermit,
    doorway: HttpService,
    certificate: Option<ServerCertificate>,
) {
    let activity = place.activity.clone();
    let Some(certificate) = certificate else {
        return doorway.serve(stream, peer.ip(), activity).await;
    };
    match tokio::time::timeout(HANDSHAKE, tls::accept(&certificate, stream)).await {
        Ok(Ok(stream)) => doorway.serve(stream, peer.ip(), activity).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "A TLS handshake failed."),
        Err(_) => tracing::debug!(%peer, "A TLS handshake took too long."),
    }
}
