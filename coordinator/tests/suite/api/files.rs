//! Networks in and files out.

use std::task::Poll;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Method, Request, StatusCode, header};
use axum::response::Response;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::networks::{
    ExportReceipt, NetworkInfo, NetworkReceipt, NetworkStatus,
};
use rookery_coordinator::telemetry;

use crate::support::app::{TestApp, body, code, parse, problem};
use crate::support::networks::network_file;
use crate::support::selfplay::selfplays;

#[tokio::test]
async fn the_first_network_is_best_and_counts_once() {
    let app = TestApp::new().await;
    let receipt = app.submit(0).await;
    assert_eq!(
        (receipt.number, receipt.status),
        (NetworkNumber(0), NetworkStatus::Initial)
    );
    let path = format!("/networks/{}?run=main", receipt.hash);
    let again = app
        .call(Method::PUT, &path, &app.trainer, network_file(0))
        .await;
    let again: NetworkReceipt = parse(StatusCode::OK, again).await;
    assert!(again.duplicate);
    let list: Vec<NetworkInfo> = app.get("/networks?run=main").await;
    assert_eq!(list.len(), 1);
    for name in ["best", "0", &receipt.hash.to_string()] {
        let info: NetworkInfo = app.get(&format!("/networks/{name}")).await;
        assert_eq!(info.hash, receipt.hash);
        assert_eq!(info.spec, NetworkSpec::resnet(1, 8));
    }
}

#[tokio::test]
async fn bad_network_files_are_refused() {
    let app = TestApp::new().await;
    let put = async |hash: ContentHash, bytes: Vec<u8>, run: &str| {
        let path = format!("/networks/{hash}?run={run}");
        problem(app.call(Method::PUT, &path, &app.trainer, bytes).await).await
    };
    let file = network_file(1);
    let cut = file[..file.len() - 1].to_vec();
    let refused = put(ContentHash::of(&cut), cut, "main").await;
    assert_eq!(refused.code, ProblemCode::NetworkRefused);
    let mismatch = put(ContentHash::of(b"x"), file.clone(), "main").await;
    assert_eq!(mismatch.code, ProblemCode::HashMismatch);
    let run = put(ContentHash::of(&file), file, "other").await;
    assert_eq!(run.code, ProblemCode::NotFound);
    assert!(app.get::<Vec<NetworkInfo>>("/networks").await.is_empty());
}

async fn get(app: &TestApp, path: &str, headers: &[(HeaderName, &str)]) -> Response {
    let mut request = Request::get(format!("/api/v1{path}"));
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    app.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn files_come_whole_in_ranges_and_not_again() {
    let app = TestApp::new().await;
    let hash = app.submit(0).await.hash;
    let file = network_file(0);
    let (path, tag) = (format!("/networks/{hash}/file"), format!("\"{hash}\""));
    let whole = get(&app, &path, &[]).await;
    assert_eq!(whole.status(), StatusCode::OK);
    assert_eq!(whole.headers()[header::ETAG], tag.as_str());
    assert_eq!(whole.headers()[header::ACCEPT_RANGES], "bytes");
    let named = &whole.headers()[header::CONTENT_DISPOSITION];
    assert_eq!(named, "attachment; filename=\"main-0.safetensors\"");
    let caching = &whole.headers()[header::CACHE_CONTROL];
    assert_eq!(caching, "public, max-age=31536000, immutable");
    assert_eq!(body(whole).await, file);
    let range = [
        (header::RANGE, "bytes=100-199"),
        (header::IF_RANGE, tag.as_str()),
    ];
    let part = get(&app, &path, &range).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    let expected = format!("bytes 100-199/{}", file.len());
    assert_eq!(part.headers()[header::CONTENT_RANGE], expected.as_str());
    assert_eq!(part.headers()[header::CONTENT_LENGTH], "100");
    assert_eq!(body(part).await, file[100..200]);
    let other = [
        (header::RANGE, "bytes=100-199"),
        (header::IF_RANGE, "\"other\""),
    ];
    assert_eq!(
        body(get(&app, &path, &other).await).await,
        file,
        "another file: whole"
    );
    let known = get(&app, &path, &[(header::IF_NONE_MATCH, tag.as_str())]).await;
    assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
    let rest = format!("bytes={}-", file.len());
    let beyond = get(&app, &path, &[(header::RANGE, rest.as_str())]).await;
    let expected = format!("bytes */{}", file.len());
    assert_eq!(beyond.headers()[header::CONTENT_RANGE], expected.as_str());
    assert_eq!(code(beyond).await, ProblemCode::BadRange);
    let changed = get(&app, &path, &[(header::IF_MATCH, "\"other\"")]).await;
    assert_eq!(code(changed).await, ProblemCode::Conflict);
}

#[tokio::test]
async fn a_file_in_another_programs_format_has_its_name() {
    let app = TestApp::new().await;
    let network = app.submit(0).await.hash;
    for (format, name, file) in [
        ("lc0", "main-0.pb.gz", &b"\x1f\x8b a network"[..]),
        ("onnx", "main-0.onnx", b"\x08\x08 a model"),
    ] {
        let sha256 = ContentHash::of(file);
        let put = format!("/networks/{network}/file?format={format}&sha256={sha256}");
        let put = app.call(Method::PUT, &put, &app.trainer, file.to_vec());
        assert_eq!(put.await.status(), StatusCode::CREATED);
        let answer = get(&app, &format!("/networks/best/file?format={format}"), &[]).await;
        let named = &answer.headers()[header::CONTENT_DISPOSITION];
        assert_eq!(named, &format!("attachment; filename=\"{name}\""));
    }
}

#[tokio::test]
async fn chunks_are_kept_by_those_who_may_have_them_only() {
    let app = TestApp::with_network().await;
    let chunk = selfplays(&app, &app.alice, &[1]).await;
    let path = format!("/chunks/{}", ContentHash::of(&chunk));
    let answer = app.look(&app.trainer, &path);
    let caching = answer.await.headers()[header::CACHE_CONTROL].clone();
    assert_eq!(caching, "private, max-age=31536000, immutable");
}

#[tokio::test]
async fn the_file_of_someone_who_may_not_submit_is_not_read() {
    let app = TestApp::new().await;
    let unread = || {
        let parts = futures_util::stream::poll_fn(|_| -> Poll<Option<std::io::Result<Bytes>>> {
            panic!("the body was read")
        });
        Body::from_stream(parts)
    };
    for (token, anchor) in [(&app.alice, ""), (&app.trainer, "?anchor=maia")] {
        let path = format!("/networks/{}{anchor}", ContentHash::of(&[]));
        let answer = app.call(Method::PUT, &path, token, unread()).await;
        assert_eq!(code(answer).await, ProblemCode::Forbidden);
    }
}

#[tokio::test]
async fn head_tells_the_size_without_the_file() {
    let app = TestApp::with_network().await;
    let request = Request::head("/api/v1/networks/best/file")
        .body(Body::empty())
        .unwrap();
    let head = app.send(request).await;
    assert_eq!(head.status(), StatusCode::OK);
    let size = network_file(0).len().to_string();
    assert_eq!(head.headers()[header::CONTENT_LENGTH], size.as_str());
    assert_eq!(
        head.headers()[header::CACHE_CONTROL],
        "no-cache",
        "best changes"
    );
    assert!(body(head).await.is_empty());
}

/// Adds an export of a network; the address names `hash`.
async fn put_export(
    app: &TestApp,
    token: &str,
    format: &str,
    hash: ContentHash,
    bytes: &[u8],
) -> Response {
    let network = ContentHash::of(&network_file(0));
    let path = format!("/networks/{network}/file?format={format}&sha256={hash}");
    app.call(Method::PUT, &path, token, bytes.to_vec()).await
}

#[tokio::test]
async fn networks_come_in_the_formats_of_other_programs() {
    telemetry::begin_metrics().unwrap();
    let app = TestApp::new().await;
    let network = app.submit(0).await.hash;
    let path = format!("/networks/{network}/file?format=onnx");
    let none = get(&app, &path, &[]).await;
    assert_eq!(code(none).await, ProblemCode::NotFound);
    let onnx = b"\x08\x08 a model";
    let hash = ContentHash::of(onnx);
    for (status, duplicate) in [(StatusCode::CREATED, false), (StatusCode::OK, true)] {
        let put = put_export(&app, &app.trainer, "onnx", hash, onnx).await;
        let receipt: ExportReceipt = parse(status, put).await;
        assert_eq!((receipt.hash, receipt.duplicate), (hash, duplicate));
    }
    let measured = "rookery_blob_duration_seconds_count{operation=\"put\",kind=\"exports\"} ";
    assert!(telemetry::render().contains(measured));
    let info: NetworkInfo = app.get("/networks/0").await;
    assert_eq!(info.exports.len(), 1);
    assert_eq!(info.exports[0].file, format!("/api/v1{path}"));
    app.submit(1).await;
    let other: NetworkInfo = app.get("/networks/1").await;
    let list: Vec<NetworkInfo> = app.get("/networks").await;
    assert_eq!(list, [other, info], "each with its own");
    let file = get(&app, &path, &[]).await;
    assert_eq!(file.headers()[header::ETAG], format!("\"{hash}\"").as_str());
    assert_eq!(body(file).await, onnx);
    let best = get(&app, "/networks/best/file?format=onnx", &[]).await;
    assert_eq!(best.headers()[header::CACHE_CONTROL], "no-cache");
    let own = get(&app, "/networks/best/file", &[]).await;
    assert_eq!(body(own).await, network_file(0));
}

#[tokio::test]
async fn exports_are_added_once_and_by_trainers() {
    let app = TestApp::new().await;
    let (file, other) = (b"\x1f\x8b1", b"\x1f\x8b2");
    let (hash, other_hash) = (ContentHash::of(file), ContentHash::of(other));
    let early = put_export(&app, &app.trainer, "lc0", hash, file).await;
    assert_eq!(code(early).await, ProblemCode::NotFound);
    app.submit(0).await;
    let stranger = put_export(&app, &app.alice, "lc0", hash, file).await;
    assert_eq!(code(stranger).await, ProblemCode::Forbidden);
    let wrong = put_export(&app, &app.trainer, "lc0", other_hash, file).await;
    assert_eq!(code(wrong).await, ProblemCode::HashMismatch);
    let onnx = put_export(&app, &app.trainer, "onnx", hash, file).await;
    assert_eq!(code(onnx).await, ProblemCode::NetworkRefused);
    let unknown = put_export(&app, &app.trainer, "gguf", hash, file).await;
    assert_eq!(code(unknown).await, ProblemCode::BadRequest);
    let first = put_export(&app, &app.trainer, "lc0", hash, file).await;
    assert_eq!(first.status(), StatusCode::CREATED);
    let second = put_export(&app, &app.trainer, "lc0", other_hash, other).await;
    assert_eq!(code(second).await, ProblemCode::Conflict);
    let info: NetworkInfo = app.get("/networks/0").await;
    assert_eq!(info.exports[0].hash, hash);
}
