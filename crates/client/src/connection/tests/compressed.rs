//! Answers that a proxy compressed.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::answer::collect;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn an_answer_that_was_compressed_on_the_way_is_read() {
    let kind = "application/json\r\ncontent-encoding: gzip";
    let connection = answered_with(200, kind, &gzip(b"[]")).await;
    assert!(runs(&connection).await.unwrap().is_empty());
    let problem = Problem::new(ProblemCode::NotFound, "gone");
    let body = gzip(&serde_json::to_vec(&problem).unwrap());
    let connection = answered_with(404, kind, &body).await;
    let error = runs(&connection).await.unwrap_err();
    assert_eq!(error.code(), Some(ProblemCode::NotFound), "{error}");
}

#[tokio::test]
async fn a_file_that_was_compressed_on_the_way_is_read_up_to_its_limit() {
    let file: Vec<u8> = (0..500_000_u32)
        .flat_map(|n| (n / 977).to_le_bytes())
        .collect();
    let kind = "application/octet-stream\r\ncontent-encoding: gzip";
    let body = async || {
        let connection = answered_with(200, kind, &gzip(&file)).await;
        let body = connection
            .download("networks/1/file", &[], 0)
            .await
            .unwrap();
        assert_eq!(body.content_length(), None);
        body
    };
    let whole = collect(body().await, file.len() as u64).await.unwrap();
    assert!(whole == file);
    let error = collect(body().await, 1_000_000).await.unwrap_err();
    assert!(error.to_string().contains("longer than 1000000"), "{error}");
}

#[tokio::test]
async fn a_compressed_answer_that_cannot_be_read_names_its_header() {
    let mut damaged = gzip(b"[]");
    damaged.truncate(12);
    for (encoding, body) in [
        ("br", b"[]".to_vec()),
        ("gzip, br", gzip(b"[]")),
        ("gzip", b"[]".to_vec()),
        ("gzip", damaged),
        ("gzip", [gzip(b"[]"), b"rest".to_vec()].concat()),
    ] {
        let kind = format!("application/json\r\ncontent-encoding: {encoding}");
        let error = runs(&answered_with(200, &kind, &body).await)
            .await
            .unwrap_err();
        assert_eq!(error.remedy(), Remedy::Retry);
        let text = error.to_string();
        assert!(
            text.contains("Content-Encoding") && text.contains(encoding),
            "{text}"
        );
        assert!(text.contains("proxy"), "{text}");
    }
}

#[tokio::test]
async fn no_request_asks_for_a_compressed_answer() {
    let server = Server::answering(vec![Answer::new(200, "[]")]).await;
    let connection = connection(&server.url, READ_TIMEOUT);
    runs(&connection).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].header("accept-encoding"), Some("identity"));
}
