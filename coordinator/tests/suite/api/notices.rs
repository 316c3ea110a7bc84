//! What contributors are told: quarantines, blocked workers, names that two machines use.

use axum::http::{Method, StatusCode};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::Instruction;
use rookery_common::protocol::server::Presentation;
use rookery_common::protocol::trust::TrustInfo;
use rookery_coordinator::config::AccessConfig;
use rookery_coordinator::notices::UNNAMED;
use serde_json::json;

use crate::support::app::{TestApp, code, params, parse, problem};

/// A coordinator with an operator who can be reached, and a network to play with.
async fn reachable() -> TestApp {
    let doors = AccessConfig {
        presentation: Presentation {
            contact: Some("ann@example.org".to_owned()),
            ..Presentation::default()
        },
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    app.submit(0).await;
    app
}

#[tokio::test]
async fn a_contributor_in_quarantine_learns_of_it_with_every_answer() {
    let app = reachable().await;
    let before = app.lease(&app.alice).await;
    assert!(before.notices.is_empty(), "{:?}", before.notices);
    assert_eq!(app.order("/users/alice", true).await, 204);
    let job = app.lease(&app.alice).await;
    let [notice] = &job.notices[..] else {
        panic!("one notice: {:?}", job.notices)
    };
    for part in [
        "held back since",
        "do not count",
        "/trust",
        "ann@example.org",
    ] {
        assert!(notice.contains(part), "{part}: {notice}");
    }
    let reply = app.keep(&app.alice, &before).await;
    assert_eq!(
        reply.notices, job.notices,
        "the same words: workers show them once"
    );
    assert!(app.lease(&app.bob).await.notices.is_empty());
    assert_eq!(app.order("/users/alice", false).await, 204);
    assert!(app.lease(&app.alice).await.notices.is_empty());
    assert!(app.keep(&app.alice, &before).await.notices.is_empty());
}

#[tokio::test]
async fn a_blocked_worker_gets_no_jobs_and_its_contributors_others_do() {
    let app = reachable().await;
    let rig = json!({"worker": "rig 2"});
    let job = app.lease_with(&app.alice, &rig).await;
    let path = "/users/alice/workers/rig%202/block";
    let order = json!({"reason": "audits of this machine failed"}).to_string();
    let block =
        async |path: &str, token: &str| app.call(Method::PUT, path, token, order.clone()).await;
    assert_eq!(
        code(block(path, &app.alice).await).await,
        ProblemCode::Forbidden
    );
    let other = "/users/alice/workers/rig/block";
    assert_eq!(
        code(block(other, &app.operator).await).await,
        ProblemCode::NotFound
    );
    assert_eq!(block(path, &app.operator).await.status(), 204);

    let refused = problem(app.ask_with(&app.alice, &rig).await).await;
    assert_eq!(refused.code, ProblemCode::Blocked);
    for part in ["rig 2", "audits of this machine failed", "ann@example.org"] {
        assert!(refused.detail.contains(part), "{part}: {}", refused.detail);
    }
    let reply = app.keep(&app.alice, &job).await;
    assert_eq!(
        (reply.instruction, reply.notices.len()),
        (Instruction::Abandon, 1)
    );
    let elsewhere = app.lease(&app.alice).await;
    assert!(
        elsewhere.notices[0].contains("rig 2"),
        "{:?}",
        elsewhere.notices
    );
    assert_eq!(
        app.keep(&app.alice, &elsewhere).await.instruction,
        Instruction::Continue
    );
    let own: TrustInfo = app.get_as(&app.alice, "/trust").await;
    assert_eq!(own.blocked_workers[0].worker, "rig 2");
    assert_eq!(app.lease_with(&app.bob, &rig).await.notices, [""; 0]);

    let unblock = async || app.call(Method::DELETE, path, &app.operator, "").await;
    assert_eq!(unblock().await.status(), 204);
    assert!(app.lease_with(&app.alice, &rig).await.notices.is_empty());
    assert_eq!(code(unblock().await).await, ProblemCode::NotFound);
    let log = app.operator_log().await;
    let acts: Vec<_> = log.entries.iter().map(|act| act.action.as_str()).collect();
    assert_eq!(acts[..2], ["unblock-worker", "block-worker"]);
}

#[tokio::test]
async fn a_contributor_learns_that_two_machines_share_a_worker_name() {
    let app = reachable().await;
    let second = app.call(
        Method::POST,
        "/tokens",
        &app.alice,
        r#"{"machine": "second"}"#,
    );
    let second: serde_json::Value = parse(StatusCode::CREATED, second.await).await;
    let second = second["token"].as_str().unwrap();
    let mut told = Vec::new();
    for token in [&app.alice, second, &app.alice, second, &app.bob] {
        told.push(app.lease(token).await.notices);
    }
    assert!(
        told[0].is_empty() && told[1].is_empty() && told[4].is_empty(),
        "{told:?}"
    );
    for notices in &told[2..4] {
        assert!(notices[0].contains("--worker"), "{notices:?}");
    }
}

#[tokio::test]
async fn a_worker_whose_name_shows_nothing_is_called_unnamed() {
    let app = reachable().await;
    for name in ["", "  ", "\u{200b}"] {
        let job = app.lease_with(&app.alice, &json!({"worker": name})).await;
        assert!(job.notices[0].contains(UNNAMED), "{:?}", job.notices);
    }
    let alice: serde_json::Value = app.get("/contributors/alice").await;
    assert_eq!(alice["workers"][0]["name"], UNNAMED);
    assert_eq!(alice["workers"].as_array().unwrap().len(), 1);
}
