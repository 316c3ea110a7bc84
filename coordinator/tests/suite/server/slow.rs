//! Clients that take their time, or say nothing at all: each is shown the door, and others are
//! served meanwhile.

use std::convert::Infallible;
use std::future::ready;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get as route;
use futures_util::StreamExt as _;
use rookery_coordinator::limits::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::{Site, brisk, get, head, listen, rest, send_until_closed};

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let site = Site::start(brisk()).await;
    let mut stream = site.connect().await;
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n")
        .await
        .unwrap();
    let answer = send_until_closed(stream, b"X-Slow: 1\r\n").await;
    assert_eq!(answer, "");
    site.assert_serves().await;
}

#[tokio::test]
async fn connections_that_begin_nothing_or_half_of_something_are_closed() {
    let site = Site::start(brisk()).await;
    let h2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // The head of a request on stream 1, without the flag that ends it.
    let half_a_head = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
    let begun_h2 = [&h2[..], &settings, &half_a_head].concat();
    for begun in [&b""[..], b"P", b"PRI * HTT", b"GET /", &begun_h2] {
        let mut stream = site.connect().await;
        stream.write_all(begun).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(!answer.contains("HTTP/1.1 2"), "{answer}");
    }
    site.assert_serves().await;
}

#[tokio::test]
async fn a_kept_connection_is_closed_when_nothing_more_is_asked() {
    let site = Site::start(brisk()).await;
    let mut stream = site.connect().await;
    for _ in 0..2 {
        let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(head(&mut stream, request).await.starts_with("HTTP/1.1 200"));
        let mut body = [0; 3];
        stream.read_exact(&mut body).await.unwrap();
    }
    assert_eq!(rest(&mut stream).await, "");
}

#[tokio::test]
async fn a_body_that_pauses_is_refused_and_the_connection_closed() {
    let site = Site::start(brisk()).await;
    for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut stream = site.connect().await;
        let request = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\n{framing}\r\n\r\n1\r\n{{\r\n",
            site.app.alice
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.contains("request-timeout"), "{answer}");
    }
    site.assert_serves().await;
}

/// Tells that it was dropped.
struct Gone(Option<oneshot::Sender<()>>);

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_not_kept() {
    let (sender, gone) = oneshot::channel();
    let gone_sender = Gone(Some(sender));
    let part = Bytes::from(vec![0; 1 << 16]);
    let endless = futures_util::stream::repeat(part).map(move |part| {
        let _held = &gone_sender;
        Ok::<_, Infallible>(part)
    });
    let endless = Arc::new(Mutex::new(Some(Body::from_stream(endless))));
    let answer = move || ready(endless.lock().unwrap().take().unwrap());
    let router = Router::new().route("/endless", route(answer));
    let address = listen(router, Limits::new(brisk()).into(), None).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = head(&mut stream, &get("/endless", "")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The client keeps the connection and reads no further.
    gone.await.unwrap();
}

#[tokio::test]
async fn a_stream_of_events_is_not_taken_for_an_idle_connection() {
    let site = Site::start(brisk()).await;
    let mut stream = site.connect().await;
    let begun = head(&mut stream, &get("/api/v1/events", "")).await;
    assert!(begun.starts_with("HTTP/1.1 200"), "{begun}");
    // Another connection that is idle for as long is closed; this one still brings the news.
    assert_eq!(rest(&mut site.connect().await).await, "");
    site.app.submit(0).await;
    let mut seen = String::new();
    while !seen.contains("event: network") {
        let byte = stream.read_u8().await.unwrap();
        seen.push(byte.into());
    }
}
