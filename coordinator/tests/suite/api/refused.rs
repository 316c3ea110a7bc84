//! What is refused leaves nothing behind, and what is not for everybody is not there.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_coordinator::blobs::{BlobError, BlobKind};

use crate::support::app::{TestApp, code};
use crate::support::games::{chunk, selfplay};

#[tokio::test]
async fn a_chunk_that_the_ledger_refuses_leaves_the_store() {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    let good = chunk(&job, &[selfplay(&job, 0, 1)]);
    app.accepted(&app.alice, &good).await;
    // The first game again, with other visits, and a new one.
    let bad = chunk(&job, &[selfplay(&job, 0, 2), selfplay(&job, 1, 3)]);
    let refused = app.upload(&app.alice, &bad).await;
    assert_eq!(code(refused).await, ProblemCode::ChunkRefused);
    let blobs = &app.app.blobs;
    let gone = blobs.get(BlobKind::Chunk, &ContentHash::of(&bad)).await;
    assert!(matches!(gone, Err(BlobError::Missing(_))), "{gone:?}");
    // Sent again, what counts stays.
    assert!(app.accepted(&app.alice, &good).await.duplicate);
    let kept = blobs.get(BlobKind::Chunk, &ContentHash::of(&good)).await;
    assert_eq!(kept.unwrap(), good);
}

#[tokio::test]
async fn metrics_are_not_beside_the_api() {
    let app = TestApp::new().await;
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = app.send(request).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_has_one_host() {
    let app = TestApp::new().await;
    let hosts = |hosts: &[&str]| {
        let request = Request::get("/healthz");
        let request = hosts
            .iter()
            .fold(request, |request, host| request.header(header::HOST, *host));
        request.body(Body::empty()).unwrap()
    };
    let one = app.send(hosts(&["a.example"])).await;
    assert_eq!(one.status(), StatusCode::OK);
    let two = app.send(hosts(&["a.example", "b.example"])).await;
    assert_eq!(code(two).await, ProblemCode::BadRequest);
}
