//! Clients that ask and do not take the answer, or not soon: what it needs is given back.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use axum::routing::get as route;
use futures_util::StreamExt as _;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use rookery_coordinator::limits::Limits;
use rookery_coordinator::limits::settings::LimitArgs;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::{Site, brisk, get, head, listen, rest};

/// More than fits between a coordinator and a client that reads nothing.
const LARGE: usize = 8 << 20;

/// Bytes that tell when they are given back.
struct Held(
    Vec<u8>,
    #[expect(dead_code, reason = "it is only dropped")] oneshot::Sender<()>,
);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Bodies of one large part and of parts without end, and what ends when each is given back.
fn bodies() -> [(Body, oneshot::Receiver<()>); 2] {
    let (whole, whole_gone) = oneshot::channel();
    let (endless, endless_gone) = oneshot::channel();
    let part = Bytes::from(vec![0; 1 << 16]);
    let parts = futures_util::stream::repeat(part).map(move |part| {
        let _held = &endless;
        Ok::<_, Infallible>(part)
    });
    let whole = Bytes::from_owner(Held(vec![0; LARGE], whole));
    [
        (Body::from(whole), whole_gone),
        (Body::from_stream(parts), endless_gone),
    ]
}

/// A server that gives this body at `/`, once, and little at `/small`.
async fn serve(body: Body, limits: LimitArgs) -> SocketAddr {
    let body = Arc::new(Mutex::new(Some(body)));
    let answer = move || ready(body.lock().unwrap().take().unwrap());
    let router = Router::new()
        .route("/", route(answer))
        .route("/small", route(async || "small"));
    listen(router, Limits::new(limits).into(), None).await
}

/// A client of HTTP/2 that lets so many bytes of each answer come before it takes them.
async fn http2(address: SocketAddr, window: u32) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let shaking = builder.initial_window_size(window).handshake(stream);
    let (client, connection) = shaking.await.unwrap();
    tokio::spawn(connection);
    client
}

async fn ask(client: &SendRequest<Bytes>, path: &str) -> ResponseFuture {
    let request = Request::get(format!("http://x{path}")).body(()).unwrap();
    let mut client = client.clone().ready().await.unwrap();
    client.send_request(request, true).unwrap().0
}

/// Takes an answer to its end: its bytes, or why it broke off.
async fn take(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Only little time to take an answer, and much for all else.
fn impatient() -> LimitArgs {
    LimitArgs {
        stall_seconds: Some(1),
        ..LimitArgs::default()
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_not_kept() {
    let [_, (endless, gone)] = bodies();
    let address = serve(endless, brisk()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = head(&mut stream, &get("/", "")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The client keeps the connection and reads no further.
    gone.await.unwrap_err();
}

#[tokio::test]
async fn an_answer_over_http2_that_is_not_taken_is_not_kept_and_the_next_is_given() {
    for window in [0, 1, 1 << 17] {
        for (body, gone) in bodies() {
            let address = serve(body, impatient()).await;
            let client = http2(address, window).await;
            let answer = ask(&client, "/").await.await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            // The client keeps the connection and lets no more come.
            gone.await.unwrap_err();
            let small = ask(&client, "/small").await.await.unwrap();
            assert_eq!(small.status(), StatusCode::OK);
            let broken = take(answer.into_body()).await.unwrap_err();
            assert_eq!(broken.reason(), Some(Reason::CANCEL));
        }
    }
}

#[tokio::test]
async fn an_answer_over_http2_arrives_whole_however_small_the_window() {
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let address = serve(bytes.clone().into(), LimitArgs::default()).await;
    let client = http2(address, 1000).await;
    let answer = ask(&client, "/").await.await.unwrap();
    assert_eq!(answer.headers()["content-length"], "400000");
    assert!(take(answer.into_body()).await.unwrap() == bytes);
    assert_eq!(client.current_max_send_streams(), 16);
}

#[tokio::test]
async fn events_over_http2_are_waited_for() {
    let site = Site::start(brisk()).await;
    let client = http2(site.address, 1 << 16).await;
    let mut events = ask(&client, "/api/v1/events")
        .await
        .await
        .unwrap()
        .into_body();
    // As long as an answer may be left untaken passes, and nothing happens.
    assert_eq!(rest(&mut site.connect().await).await, "");
    site.app.submit(0).await;
    let mut seen = String::new();
    while !seen.contains("event: network") {
        let part = events.data().await.unwrap().unwrap();
        seen.push_str(std::str::from_utf8(&part).unwrap());
    }
}

#[tokio::test]
async fn files_that_are_sent_leave_others_to_the_ledger_and_the_store() {
    let site = Site::start_with(Limits::default().within(7), None).await;
    site.app.submit(0).await;
    let client = http2(site.address, 0).await;
    let path = "/api/v1/networks/best/file";
    let first = ask(&client, path).await.await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    let second = ask(&client, path).await.await.unwrap();
    assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(second.headers().contains_key("retry-after"));
    drop(first);
    while ask(&client, path).await.await.unwrap().status() != StatusCode::OK {}
}
