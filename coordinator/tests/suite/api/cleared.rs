//! Contributors who are cleared: what their quarantine kept from auditors and matches counts after all.

use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::trust::plan::plan_waiting;

use crate::support::audit_scenario::AuditScenario;
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::Win;
use crate::support::games::pair_games;
use crate::support::matches::{gated, statuses};

#[tokio::test]
async fn audits_that_a_quarantine_has_ended_go_on_when_it_ends() {
    let scenario = AuditScenario::new().await;
    let mut played = Vec::new();
    for _ in 0..3 {
        played.push(scenario.alice_plays().await.0);
    }
    let first = scenario.lease(&scenario.auditor).await;
    assert_eq!(first.work.kind(), WorkKind::Audit);
    assert_eq!(scenario.app.order("/users/alice", true).await, 204);
    // What comes in now is held, and not drawn for an audit.
    played.push(scenario.alice_plays().await.0);
    assert_eq!(scenario.alice().await.audits_open, 0);
    assert_eq!(scenario.app.order("/users/alice", false).await, 204);
    assert_eq!(scenario.alice().await.audits_open, 4);
    plan_waiting(&scenario.app.app).await.unwrap();
    // Also the one that somebody was at work on.
    for games in &played {
        scenario.answer(&scenario.auditor, games, Same).await;
    }
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (0, 4));
    assert_eq!(scenario.kind(&scenario.auditor).await, WorkKind::SelfPlay);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn audits_that_nobody_could_make_are_over_for_good() {
    let scenario = AuditScenario::new().await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(25 * 60 * 60);
    plan_waiting(&scenario.app.app).await.unwrap();
    assert_eq!(scenario.alice().await.audits_open, 0);
    assert_eq!(scenario.app.order("/users/alice", true).await, 204);
    assert_eq!(scenario.app.order("/users/alice", false).await, 204);
    assert_eq!(scenario.alice().await.audits_open, 0);
}

#[tokio::test]
async fn failures_of_chunks_that_were_let_go_are_held_against_nobody() {
    let scenario = AuditScenario::new().await;
    scenario.judged(Other).await;
    scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.level, TrustLevel::Quarantined);
    assert_eq!(scenario.app.order("/users/alice", false).await, 204);
    scenario.judged(Other).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.level, alice.held_chunks), (TrustLevel::Probation, 1));
    assert_eq!(alice.audits_failed, 3, "they are not forgotten");
    scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.level, TrustLevel::Quarantined);
}

#[tokio::test]
async fn a_match_ends_once_its_last_pairs_count_again() {
    let app = gated().await;
    let jobs = [app.lease(&app.alice).await, app.lease(&app.alice).await];
    assert_eq!(app.order("/users/alice", true).await, 204);
    for job in &jobs {
        let games = pair_games(job, 0, [Win, Win]);
        app.hand_in(&app.alice, job, &games).await;
    }
    assert_eq!(statuses(&app).await[1], NetworkStatus::Candidate);
    let mut events = app.app.events.subscribe();
    assert_eq!(app.order("/users/alice", false).await, 204);
    assert_eq!(statuses(&app).await[1], NetworkStatus::Promoted);
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let promoted = told.filter(|event| matches!(event, Event::Promotion { .. }));
    assert_eq!(promoted.count(), 1);
    app.assert_consistent().await;
}
