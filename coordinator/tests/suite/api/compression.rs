//! Which answers are compressed, as clients ask for it.

use std::io::Read as _;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header};
use flate2::read::GzDecoder;

use crate::support::app::{TestApp, body};
use crate::support::selfplay::started;

/// The answer to a request that takes gzip: its head and its bytes as they are sent.
async fn ask(
    app: &TestApp,
    method: Method,
    path: &str,
    token: Option<&str>,
) -> (HeaderMap, Vec<u8>) {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT_ENCODING, "gzip, deflate");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    // Long enough for an answer that would be compressed, were it not for its secret.
    let json = format!(r#"{{"name": "eve", "note": "{}"}}"#, "x".repeat(2_000));
    let answer = app.send(request.body(Body::from(json)).unwrap()).await;
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    (answer.headers().clone(), body(answer).await)
}

#[tokio::test]
async fn texts_that_everybody_may_read_are_compressed_for_those_who_ask() {
    let app = started().await;
    for path in ["/runs/main", "/api/v1/runs/main", "/api/v1/openapi.json"] {
        let plain = body(app.open(path).await).await;
        let (headers, bytes) = ask(&app, Method::GET, path, None).await;
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip", "{path}");
        let mut varies = headers.get_all(header::VARY).iter();
        assert!(varies.any(|value| value == "accept-encoding"), "{path}");
        assert!(!headers.contains_key(header::CONTENT_LENGTH), "{path}");
        assert!(bytes.len() < plain.len() / 2, "{path}: {}", bytes.len());
        let mut text = Vec::new();
        GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text, plain, "{path}");
    }
}

#[tokio::test]
async fn files_and_answers_to_tokens_are_sent_as_they_are() {
    let app = started().await;
    let operator = Some(app.operator.as_str());
    for (method, path, token) in [
        (Method::GET, "/api/v1/networks/best/file", None),
        (Method::GET, "/api/v1/runs/main", operator),
        (Method::GET, "/api/v1/tokens", operator),
        (Method::POST, "/api/v1/users", None),
        (Method::HEAD, "/runs/main", None),
    ] {
        let (headers, _) = ask(&app, method, path, token).await;
        assert!(!headers.contains_key(header::CONTENT_ENCODING), "{path}");
    }
    let events = Request::get("/api/v1/events").header(header::ACCEPT_ENCODING, "gzip");
    let events = app.send(events.body(Body::empty()).unwrap()).await;
    assert_eq!(events.headers()[header::CONTENT_TYPE], "text/event-stream");
    assert!(!events.headers().contains_key(header::CONTENT_ENCODING));
}
