//! What only S3 does: downloads from the store itself, and its failures.

use std::fs::File;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_coordinator::blobs::{BlobKind, BlobStore as _, Downloads, Marking, ObjectBlobs};

use crate::support::app::{TestApp, problem};
use crate::support::games::{chunk, selfplay};
use crate::support::networks::network_file;
use crate::support::s3::{S3, S3Fault};
use crate::support::selfplay::selfplays;

fn direct() -> Downloads {
    Downloads {
        public: None,
        direct: true,
    }
}

/// The answer to a request for a file, and where it sends the client.
async fn ask(
    app: &TestApp,
    method: Method,
    path: &str,
    range: Option<&str>,
) -> (StatusCode, String) {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::AUTHORIZATION, format!("Bearer {}", app.trainer));
    if let Some(range) = range {
        request = request.header(header::RANGE, range);
    }
    let response = app.send(request.body(Body::empty()).unwrap()).await;
    let location = response.headers().get(header::LOCATION);
    let location = location
        .map_or("", |value| value.to_str().unwrap())
        .to_owned();
    (response.status(), location)
}

#[tokio::test]
async fn clients_get_files_from_the_store_itself() {
    let s3 = S3::start().await;
    let app = TestApp::on(s3.blobs(direct())).await;
    let hash = app.submit(0).await.hash;
    let path = format!("/networks/{hash}/file");
    let (status, location) = ask(&app, Method::GET, &path, Some("bytes=10-19")).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    let client = reqwest::Client::new();
    let whole = client.get(&location).send().await.unwrap();
    assert_eq!(whole.status(), StatusCode::OK);
    assert_eq!(whole.bytes().await.unwrap(), network_file(0));
    let part = client.get(&location).header(header::RANGE, "bytes=10-19");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.unwrap(), network_file(0)[10..20]);
    let changed = location.replace("X-Amz-Expires=3600", "X-Amz-Expires=36000");
    let forged = client.get(changed).send().await.unwrap();
    assert_eq!(forged.status(), StatusCode::FORBIDDEN);
    // A web page may not follow to another host.
    let through = format!("{path}?path=through");
    let (status, location) = ask(&app, Method::GET, &through, None).await;
    assert_eq!((status, location.as_str()), (StatusCode::OK, ""));
    // What the coordinator knows by itself needs no way to the store.
    let (status, _) = ask(&app, Method::HEAD, &path, None).await;
    assert_eq!(status, StatusCode::OK);
    let (status, _) = ask(&app, Method::GET, &path, Some("bytes=99999999-")).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    let bytes = selfplays(&app, &app.alice, &[1]).await;
    let path = format!("/chunks/{}", ContentHash::of(&bytes));
    let (status, location) = ask(&app, Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    let got = client.get(&location).send().await.unwrap();
    assert_eq!(got.bytes().await.unwrap(), bytes);
}

#[tokio::test]
async fn a_public_address_serves_networks_and_no_chunks() {
    let s3 = S3::start().await;
    let downloads = Downloads {
        public: Some("https://cdn.example.org/rookery/".to_owned()),
        direct: false,
    };
    let app = TestApp::on(s3.blobs(downloads)).await;
    let hash = app.submit(0).await.hash.to_string();
    let (status, location) = ask(&app, Method::GET, "/networks/best/file", None).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    let named = app.open("/api/v1/networks/best/file").await;
    let named = &named.headers()[header::CONTENT_DISPOSITION];
    assert_eq!(
        named, "attachment; filename=\"main-0.safetensors\"",
        "the store has no names"
    );
    let expected = format!(
        "https://cdn.example.org/rookery/networks/{}/{hash}",
        &hash[..2]
    );
    assert_eq!(location, expected);
    let bytes = selfplays(&app, &app.alice, &[1]).await;
    let path = format!("/chunks/{}", ContentHash::of(&bytes));
    let (status, _) = ask(&app, Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn uploads_to_a_store_that_fails_are_answered_503_and_not_counted() {
    let s3 = S3::start().await;
    let mut settings = s3.settings();
    settings.push(("AWS_TIMEOUT".to_owned(), "1 second".to_owned()));
    let store = ObjectBlobs::open(&S3::url(), settings, Downloads::default()).unwrap();
    let app = TestApp::on(store).await;
    app.submit(0).await;
    let job = app.lease(&app.alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    for fault in [S3Fault::Failing, S3Fault::Hanging] {
        s3.set_fault(fault);
        let problem = problem(app.upload(&app.alice, &bytes).await).await;
        assert_eq!(problem.code, ProblemCode::Unavailable, "{fault:?}");
        let known = app.app.db.receipt(&ContentHash::of(&bytes)).await.unwrap();
        assert!(known.is_none(), "{fault:?}");
    }
    s3.set_fault(S3Fault::None);
    app.accepted(&app.alice, &bytes).await;
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_an_error_and_no_short_file() {
    let s3 = S3::start().await;
    let store = s3.blobs(Downloads::default());
    let bytes = Bytes::from(vec![7; 100_000]);
    let hash = ContentHash::of(&bytes);
    store
        .put(BlobKind::Chunk, &hash, bytes.clone())
        .await
        .unwrap();
    s3.set_fault(S3Fault::Cutting);
    let got = store.get(BlobKind::Chunk, &hash).await;
    assert!(got.is_err(), "{} bytes", got.unwrap().len());
    if let Ok(stream) = store.read(BlobKind::Chunk, &hash, 0..100_000).await {
        let read: Result<Vec<Bytes>, _> = stream.try_collect().await;
        assert!(read.is_err());
    }
}

#[tokio::test]
async fn an_address_to_read_is_none_to_write() {
    let s3 = S3::start().await;
    let app = TestApp::on(s3.blobs(direct())).await;
    let hash = app.submit(0).await.hash;
    let (_, location) = ask(&app, Method::GET, &format!("/networks/{hash}/file"), None).await;
    let client = reqwest::Client::new();
    let put = client.put(&location).body("other").send().await.unwrap();
    assert_eq!(put.status(), StatusCode::FORBIDDEN);
    let whole = client.get(&location).send().await.unwrap();
    assert_eq!(whole.bytes().await.unwrap(), network_file(0));
}

#[tokio::test]
async fn asking_whether_the_store_answers_does_not_write_each_time() {
    let s3 = S3::start().await;
    let store = s3.blobs(Downloads::default());
    store.ping().await.unwrap();
    let marker = s3.root().join("ping");
    let file = File::options().write(true).open(&marker).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    drop(file);
    store.ping().await.unwrap();
    let modified = marker.metadata().unwrap().modified().unwrap();
    assert_eq!(modified, SystemTime::UNIX_EPOCH, "it was written again");
    std::fs::remove_file(&marker).unwrap();
    store.ping().await.unwrap();
    assert!(marker.exists(), "what was removed is written again");
    s3.set_fault(S3Fault::Failing);
    assert!(store.ping().await.is_err());
}

#[tokio::test]
async fn a_store_that_knows_no_conditions_is_marked_too() {
    let s3 = S3::start().await;
    let mut settings = s3.settings();
    settings.push(("AWS_CONDITIONAL_PUT".to_owned(), "disabled".to_owned()));
    let store = ObjectBlobs::open(&S3::url(), settings, Downloads::default()).unwrap();
    let text = Bytes::from_static(b"mark\n");
    let marked = store.set_mark(text.clone(), Marking::First).await;
    marked.unwrap();
    assert_eq!(store.mark().await.unwrap(), Some(text));
    s3.set_fault(S3Fault::Failing);
    assert!(store.mark().await.is_err(), "that is not to have no mark");
}
