//! Contributors on probation: which matches they play.

use axum::http::{Method, StatusCode};
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::TrustLevel;
use rookery_common::rating::gate::GateRule;
use serde_json::json;

use crate::support::app::params;
use crate::support::court::Court;
use crate::support::games::Found::Other;

#[tokio::test]
async fn newcomers_do_not_decide_gates_while_enough_others_are_at_work() {
    let mut court = Court::new().await;
    let [alice, bob] = [&court.app.alice, &court.app.bob].map(Clone::clone);
    let [carol, dave] = [&court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    court.app.submit(1).await;
    assert_eq!(court.kind(&alice).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&dave).await, WorkKind::Match);
    assert_eq!(court.kind(&court.auditor).await, WorkKind::Match);
    // The others have gone, and their leases are over.
    court.app.clock.advance_seconds(601);
    assert_eq!(court.kind(&alice).await, WorkKind::Match);
}

#[tokio::test]
async fn who_has_failed_an_audit_waits_for_gates_twice_as_long() {
    let mut court = Court::new().await;
    let [alice, bob] = [&court.app.alice, &court.app.bob].map(Clone::clone);
    let [carol, dave] = [&court.carol, &court.dave].map(Clone::clone);
    court.judged(Other).await;
    court.proven(&[&alice]).await;
    assert_eq!(court.alice().await.level, TrustLevel::Trusted);
    court.proven(&[&bob, &carol, &dave]).await;
    court.app.submit(1).await;
    assert_eq!(court.kind(&alice).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&bob).await, WorkKind::Match);
}

#[tokio::test]
async fn newcomers_play_gates_where_others_are_few_or_in_quarantine() {
    let mut court = Court::new().await;
    let [alice, bob] = [&court.app.alice, &court.app.bob].map(Clone::clone);
    let [carol, dave] = [&court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    assert_eq!(court.app.order("/users/dave", true).await, 204);
    court.app.submit(1).await;
    assert_eq!(court.kind(&alice).await, WorkKind::Match);
}

#[tokio::test]
async fn newcomers_play_rating_matches_unless_these_may_move_best() {
    let mut court = Court::new().await;
    let [alice, bob] = [&court.app.alice, &court.app.bob].map(Clone::clone);
    let [carol, dave] = [&court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let operator = court.app.operator.clone();
    let rolls_back = async |rollback| {
        let params = RunParams {
            gate: GateRule::None,
            rollback,
            ..params()
        };
        let change = json!({ "params": params }).to_string();
        let answer = court
            .app
            .call(Method::PATCH, "/runs/main", &operator, change);
        assert_eq!(answer.await.status(), StatusCode::OK);
    };
    rolls_back(None).await;
    court.app.submit(1).await;
    let new = json!({"run": "main", "candidate": 1, "opponent": 0, "pairs": 4}).to_string();
    let opened = court.app.call(Method::POST, "/matches", &operator, new);
    assert_eq!(opened.await.status(), StatusCode::CREATED);
    assert_eq!(court.kind(&alice).await, WorkKind::Match);
    rolls_back(Some(0.99)).await;
    assert_eq!(court.kind(&alice).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&bob).await, WorkKind::Match);
}
