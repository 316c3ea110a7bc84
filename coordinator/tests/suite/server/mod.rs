//! The coordinator behind a real socket, as strangers find it: how it is attacked, and how it
//! speaks TLS.

mod flood;
mod limits;
mod slow;
mod tls;
mod untaken;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use rookery_coordinator::api;
use rookery_coordinator::config::{AccessConfig, Registration};
use rookery_coordinator::limits::Limits;
use rookery_coordinator::limits::settings::LimitArgs;
use rookery_coordinator::server::Server;
use rookery_tls::ServerCertificate;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::app::{TestApp, params};

/// Short limits of time, so that tests are; all others as operators get them.
fn brisk() -> LimitArgs {
    LimitArgs {
        idle_seconds: Some(1),
        stall_seconds: Some(1),
        ..LimitArgs::default()
    }
}

/// A coordinator that listens.
struct Site {
    app: TestApp,
    address: SocketAddr,
}

impl Site {
    async fn start(limits: LimitArgs) -> Self {
        Self::start_with(Limits::new(limits), None).await
    }

    async fn start_with(limits: Limits, tls: Option<ServerCertificate>) -> Self {
        let doors = AccessConfig {
            registration: Registration::Open,
            limits: limits.into(),
            ..AccessConfig::default()
        };
        let app = TestApp::with(doors, params()).await;
        let address = listen(api::router(app.app.clone()), app.app.limits.clone(), tls).await;
        Self { app, address }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The answer to a whole request, on a connection of its own.
    async fn ask(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        rest(&mut stream).await
    }

    /// Whether somebody who behaves is served.
    async fn assert_serves(&self) {
        let answer = self.ask(&get("/api/v1/runs", "")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Serves a router at a free port.
async fn listen(router: Router, limits: Arc<Limits>, tls: Option<ServerCertificate>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server {
        router,
        limits,
        tls,
        stopping: CancellationToken::new(),
    };
    tokio::spawn(server.run(listener));
    address
}

/// A request without a body, after whose answer the connection ends.
fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n")
}

/// All that arrives until the other side closes the connection, in order or not.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends the same part again and again until the other side ends the connection; gives what it
/// answered.
async fn send_until_closed(stream: TcpStream, part: &[u8]) -> String {
    let (mut read, mut write) = stream.into_split();
    let sending = async {
        while write.write_all(part).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = rest(&mut read) => answer,
        () = sending => String::new(),
    }
}

/// Sends a request and reads the head of the answer, which may go on for ever.
async fn head(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}
