//! Games that are watched while they are played.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures_util::StreamExt as _;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{HeartbeatReply, Job};
use serde_json::json;

use crate::support::app::{TestApp, code, parse};
use crate::support::selfplay::started;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

async fn beat(app: &TestApp, job: &Job, moves: &str) -> axum::response::Response {
    let path = format!("/jobs/{}/heartbeat", job.id);
    let board = json!({"game": 0, "fen": START, "moves": moves, "value": 20});
    let body = json!({"games_finished": 0, "board": board}).to_string();
    app.call(Method::POST, &path, &app.alice, body).await
}

#[tokio::test]
async fn a_shared_game_stands_on_the_runs_page_and_its_moves_are_told() {
    let app = started().await;
    let request = Request::get("/api/v1/events").body(Body::empty()).unwrap();
    let mut stream = app.send(request).await.into_body().into_data_stream();
    let job = app.lease(&app.alice).await;
    assert!(!app.page("/runs/main").await.contains("data-job=\"0"));
    let reply: HeartbeatReply = parse(StatusCode::OK, beat(&app, &job, "e2e4 e7e5").await).await;
    assert!(reply.notices.is_empty());
    let page = app.page("/runs/main").await;
    let shown = "data-fen=\"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2\"";
    for part in [&format!("data-job=\"{}\"", job.id), shown, "height=\"60\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let mut told = String::new();
    while !told.contains("event: board") {
        told.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(told.contains("\"last\":[\"e7\",\"e5\"]"), "{told}");
    app.clock.advance_seconds(181);
    assert!(
        !app.page("/runs/main").await.contains(shown),
        "it is heard of no more"
    );
}

/// Each goes to everybody who listens: a contributor's flood would become a flood for all of them.
#[tokio::test]
async fn a_flood_of_boards_is_not_told_on() {
    let app = started().await;
    let job = app.lease(&app.alice).await;
    let mut events = app.app.events.subscribe();
    for _ in 0..50 {
        let answer = beat(&app, &job, "e2e4").await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
    let mut boards = 0;
    while let Ok(event) = events.try_recv() {
        boards += usize::from(event.kind() == "board");
    }
    assert_eq!(boards, 1, "the clock stands still");
    app.clock.advance_seconds(3);
    beat(&app, &job, "e2e4 e7e5").await;
    assert_eq!(events.try_recv().unwrap().kind(), "board");
}

#[tokio::test]
async fn a_board_that_no_game_can_have_is_refused() {
    let app = started().await;
    let job = app.lease(&app.alice).await;
    for moves in ["e2e5", "e2e4 e2e4", "<script>"] {
        let answer = beat(&app, &job, moves).await;
        assert_eq!(code(answer).await, ProblemCode::BadRequest, "{moves}");
    }
    let long = beat(&app, &job, &"g1f3 g8f6 ".repeat(20)).await;
    assert_eq!(code(long).await, ProblemCode::BadRequest);
    assert!(!app.page("/runs/main").await.contains(&job.id.to_string()));
}
