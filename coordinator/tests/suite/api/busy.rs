//! What is shown, and what waits, while the coordinator is busy.

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::GameInfo;
use rookery_common::protocol::runs::RunInfo;
use rookery_coordinator::concurrency::{ConcurrencyLimit, Permit};
use rookery_coordinator::limits::address::Peer;
use rookery_tests::programs::PATIENCE;
use tokio::time::timeout;

use crate::support::app::{TestApp, body};
use crate::support::games::{chunk, selfplay};
use crate::support::selfplay::started;

/// Takes all places.
async fn all(limit: &ConcurrencyLimit) -> Vec<Permit> {
    let mut permits = Vec::new();
    while limit.free() > 0 {
        permits.push(limit.next().await);
    }
    permits
}

#[tokio::test]
async fn games_are_shown_while_all_cores_verify() {
    let app = started().await;
    let _busy = all(&app.app.verifying).await;
    for path in ["/games/1", "/api/v1/games/1", "/api/v1/games/1/pgn"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = timeout(PATIENCE, app.send(request)).await;
        assert_eq!(answer.unwrap().status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_chunk_counts_and_is_announced_although_its_client_hung_up() {
    let app = started().await;
    let job = app.lease(&app.alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 2)]);
    let mut events = app.app.events.subscribe();
    let busy = all(&app.app.verifying).await;
    let upload = app.upload(&app.alice, &bytes);
    let hung_up = timeout(Duration::from_millis(100), upload).await;
    assert!(hung_up.is_err(), "nothing can be verified yet");
    drop(busy);
    let told = timeout(PATIENCE, events.recv()).await;
    let event = told.unwrap().unwrap();
    assert!(matches!(event, Event::Chunk { .. }), "{event:?}");
    assert!(app.accepted(&app.alice, &bytes).await.duplicate);
}

#[tokio::test]
async fn lists_leave_the_ledger_to_others() {
    let app = TestApp::new().await;
    let busy = all(&app.app.listing).await;
    for path in [
        "/api/v1/games",
        "/runs/main/games",
        "/api/v1/contributors",
        "/runs/main/contributors",
    ] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let waits = timeout(Duration::from_millis(100), app.send(request)).await;
        assert!(waits.is_err(), "{path}");
    }
    assert_eq!(app.get::<Vec<RunInfo>>("/runs").await.len(), 1);
    drop(busy);
    assert!(app.get::<Vec<GameInfo>>("/games").await.is_empty());
}

/// Addresses of somebody who asks for much, and of somebody else.
const MUCH: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

async fn ask(app: &TestApp, peer: Ipv4Addr, path: &str) -> Response {
    let request = Request::get(path).extension(Peer(peer.into()));
    app.send(request.body(Body::empty()).unwrap()).await
}

/// The head of such an answer comes before its games are read.
#[tokio::test]
async fn who_loads_many_files_of_games_waits_behind_itself() {
    let app = started().await;
    let busy = all(&app.app.viewing).await;
    let mut files = Vec::new();
    for _ in 0..16 {
        let file = ask(&app, MUCH, "/api/v1/games/pgn").await;
        assert_eq!(file.status(), StatusCode::OK);
        let mut file = Box::pin(body(file));
        let waits = timeout(Duration::from_millis(20), &mut file).await;
        assert!(waits.is_err(), "no game can be read yet");
        files.push(file);
    }
    let mut next = Box::pin(ask(&app, MUCH, "/api/v1/runs"));
    let waits = timeout(Duration::from_millis(100), &mut next).await;
    assert!(waits.is_err(), "it comes after those before it");
    let served = ask(&app, OTHER, "/api/v1/runs").await;
    assert_eq!(served.status(), StatusCode::OK);
    drop(busy);
    drop(files);
    assert_eq!(next.await.status(), StatusCode::OK);
    let file = ask(&app, MUCH, "/api/v1/games/pgn").await;
    assert!(body(file).await.starts_with(b"[Event "));
}

#[tokio::test]
async fn who_asks_for_much_waits_behind_itself() {
    let app = TestApp::new().await;
    let busy = all(&app.app.listing).await;
    let ask = |peer, path| Box::pin(ask(&app, peer, path));
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let mut list = ask(MUCH, "/api/v1/games");
        let waits = timeout(Duration::from_millis(20), &mut list).await;
        assert!(waits.is_err(), "all lists are taken");
        waiting.push(list);
    }
    let mut next = ask(MUCH, "/api/v1/runs");
    let waits = timeout(Duration::from_millis(100), &mut next).await;
    assert!(waits.is_err(), "it comes after those before it");
    assert_eq!(ask(OTHER, "/api/v1/runs").await.status(), StatusCode::OK);
    drop(busy);
    for list in waiting {
        assert_eq!(list.await.status(), StatusCode::OK);
    }
    assert_eq!(next.await.status(), StatusCode::OK);
}
