//! Games that are watched while they are played.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures_util::StreamExt as _;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{HeartbeatReply, Instruction, Job};
use rookery_common::protocol::people::Scope;
use serde_json::json;

use crate::support::app::{TestApp, code, parse, user};
use crate::support::games::{pairs, selfplay};
use crate::support::matches::gated;
use crate::support::selfplay::started;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

async fn beat(app: &TestApp, job: &Job, moves: &str) -> axum::response::Response {
    let path = format!("/jobs/{}/heartbeat", job.id);
    let board = json!({"game": 0, "fen": START, "moves": moves, "value": 20});
    let body = json!({"games_finished": 0, "board": board}).to_string();
    app.call(Method::POST, &path, &app.alice, body).await
}

#[tokio::test]
async fn a_shared_game_is_on_the_runs_page_and_listeners_get_its_moves() {
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
async fn listeners_get_few_of_a_flood_of_boards() {
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

/// The kinds of the events that have come, but for those of chunks.
fn kinds(events: &mut tokio::sync::broadcast::Receiver<Event>) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    while let Ok(event) = events.try_recv() {
        kinds.push(event.kind());
    }
    kinds.retain(|kind| *kind != "chunk");
    kinds
}

#[tokio::test]
async fn a_board_leaves_with_the_last_game_of_its_job() {
    let app = started().await;
    let job = app.lease(&app.alice).await;
    let is_shown = async || app.page("/runs/main").await.contains(&job.id.to_string());
    let mut events = app.app.events.subscribe();
    beat(&app, &job, "e2e4").await;
    let games: Vec<_> = (0..job.work.games())
        .map(|index| selfplay(&job, index, 2 + index))
        .collect();
    let [first, others @ ..] = &games[..] else {
        panic!("a job has games");
    };
    app.hand_in(&app.alice, &job, std::slice::from_ref(first))
        .await;
    assert!(is_shown().await, "there are games left");
    app.hand_in(&app.alice, &job, others).await;
    assert!(!is_shown().await);
    assert_eq!(kinds(&mut events), ["board", "board-ended"]);
    // A heartbeat that was on its way.
    app.clock.advance_seconds(30);
    beat(&app, &job, "e2e4 e7e5").await;
    assert!(!is_shown().await);
}

#[tokio::test]
async fn a_board_leaves_when_its_job_is_given_back_or_no_longer_wanted() {
    let app = started().await;
    let mut events = app.app.events.subscribe();
    let job = app.lease(&app.alice).await;
    beat(&app, &job, "e2e4").await;
    let path = format!("/jobs/{}", job.id);
    let others = app.call(Method::DELETE, &path, &app.bob, "").await;
    assert_eq!(code(others).await, ProblemCode::NotFound);
    assert_eq!(kinds(&mut events), ["board"], "it is alice's");
    app.give_back(&app.alice, &job).await;
    assert_eq!(kinds(&mut events), ["board-ended"]);

    app.clock.advance_seconds(30);
    let job = app.lease(&app.alice).await;
    beat(&app, &job, "e2e4").await;
    assert_eq!(kinds(&mut events), ["board"]);
    app.patch_run(&json!({"status": "paused"})).await;
    app.clock.advance_seconds(3);
    let reply: HeartbeatReply = parse(StatusCode::OK, beat(&app, &job, "e2e4 e7e5").await).await;
    assert_eq!(reply.instruction, Instruction::Abandon);
    assert_eq!(kinds(&mut events), ["board-ended"]);
    assert!(!app.page("/runs/main").await.contains(&job.id.to_string()));
}

#[tokio::test]
async fn a_board_leaves_when_the_pairs_of_its_job_go_to_another() {
    let app = gated().await;
    let lost = app.lease(&app.alice).await;
    assert_eq!(beat(&app, &lost, "e2e4").await.status(), StatusCode::OK);
    app.lease(&app.bob).await;
    app.clock.advance_seconds(121);
    assert!(app.page("/runs/main").await.contains(&lost.id.to_string()));
    let carol = user(&app.app, "carol", &[Scope::Contribute]).await;
    assert_eq!(pairs(&app.lease(&carol).await), pairs(&lost));
    let answer = beat(&app, &lost, "e2e4 e7e5").await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
    assert!(!app.page("/runs/main").await.contains(&lost.id.to_string()));
}
