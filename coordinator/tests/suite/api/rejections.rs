//! Candidates that an operator rejects.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};
use rookery_coordinator::blobs::BlobKind;
use rookery_coordinator::db::CANDIDATES;

use crate::support::app::{TestApp, code, parse, problem};
use crate::support::games::Score::{Loss, Win};
use crate::support::games::pair_games;
use crate::support::matches::{gated, play};
use crate::support::networks::network_file;

async fn reject(app: &TestApp, network: &str) -> Response {
    let path = format!("/networks/{network}/rejection");
    let order = r#"{"reason": " no worker can compute it "}"#;
    app.call(Method::POST, &path, &app.operator, order).await
}

#[tokio::test]
async fn a_candidate_that_nobody_can_compute_is_rejected_by_an_operator() {
    let app = gated().await;
    app.submit(3).await;
    let half = app.lease(&app.alice).await;
    let games = pair_games(&half, 0, [Win, Loss]);
    app.hand_in(&app.alice, &half, &games[..1]).await;
    play(&app, &app.bob, [Win, Loss]).await;
    let mut events = app.app.events.subscribe();
    // One that waits has no match to close.
    let waiting: NetworkInfo = parse(StatusCode::OK, reject(&app, "2").await).await;
    assert_eq!(
        (waiting.status, waiting.gate),
        (NetworkStatus::Rejected, None)
    );
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!(open.status, MatchStatus::Open);
    let gate: NetworkInfo = parse(StatusCode::OK, reject(&app, "1").await).await;
    assert_eq!(gate.status, NetworkStatus::Rejected);
    let closed: MatchInfo = app.get("/matches/1").await;
    assert_eq!(closed.status, MatchStatus::Rejected);
    assert_eq!(closed.reason.as_deref(), Some("no worker can compute it"));
    assert!(closed.decided_at.is_some());
    let told = loop {
        if let Event::Match { id, status, .. } = events.recv().await.unwrap() {
            break (id, status);
        }
    };
    assert_eq!(told, (closed.id, MatchStatus::Rejected));
    let next: MatchInfo = app.get("/matches/2").await;
    assert_eq!(
        (next.status, next.candidate, next.opponent),
        (MatchStatus::Open, NetworkNumber(3), NetworkNumber(0))
    );
    // What comes later counts for nothing.
    app.hand_in(&app.alice, &half, &games[1..]).await;
    assert_eq!(app.get::<MatchInfo>("/matches/1").await.tally, closed.tally);
    let log = app.operator_log().await;
    let entry = &log.entries[0];
    assert_eq!(
        (&*entry.action, &*entry.subject, &*entry.detail),
        (
            "reject-network",
            "main",
            "network 1: no worker can compute it"
        )
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_candidate_too_many_is_refused_before_its_file_is_kept() {
    let app = gated().await;
    let most = u64::from(CANDIDATES);
    for number in 3..=most {
        app.submit(number).await;
    }
    let file = network_file(most + 1);
    let path = format!("/networks/{}", ContentHash::of(&file));
    let refused = app.call(Method::PUT, &path, &app.trainer, file).await;
    let refused = problem(refused).await;
    assert_eq!(refused.code, ProblemCode::TooManyCandidates);
    assert!(refused.detail.contains("run reject"), "{refused}");
    let kept = app.app.blobs.list(BlobKind::Network).await.unwrap();
    assert_eq!(kept.len() as u64, most + 1);
    parse::<NetworkInfo>(StatusCode::OK, reject(&app, "2").await).await;
    app.submit(most + 1).await;
}

#[tokio::test]
async fn only_candidates_are_rejected() {
    let app = gated().await;
    for (network, told) in [("0", "change the run's gate"), ("best", "is best")] {
        let refused = problem(reject(&app, network).await).await;
        assert_eq!(refused.code, ProblemCode::Conflict);
        assert!(refused.detail.contains(told), "{refused}");
    }
    parse::<NetworkInfo>(StatusCode::OK, reject(&app, "1").await).await;
    let again = problem(reject(&app, "1").await).await;
    assert_eq!(again.code, ProblemCode::Conflict);
    assert!(again.detail.contains("only a candidate"), "{again}");
    assert_eq!(code(reject(&app, "9").await).await, ProblemCode::NotFound);
    let path = "/networks/2/rejection";
    let silent = app.call(Method::POST, path, &app.operator, r#"{"reason": " "}"#);
    assert_eq!(code(silent.await).await, ProblemCode::BadRequest);
    app.assert_consistent().await;
}
