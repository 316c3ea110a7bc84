//! Clients that take their time, or say nothing at all: each is shown the door, and others are
//! served meanwhile.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Site, brisk, get, head, rest, send_until_closed};

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
