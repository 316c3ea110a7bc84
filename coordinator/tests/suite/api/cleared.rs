//! Contributors who are cleared: what their quarantine kept from the auditors is looked at after all.

use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::trust::plan::plan_waiting;

use crate::support::court::Court;
use crate::support::games::Found::{Other, Same};

#[tokio::test]
async fn audits_that_a_quarantine_has_ended_go_on_when_it_ends() {
    let mut court = Court::new().await;
    let mut played = Vec::new();
    for _ in 0..3 {
        played.push(court.alice_plays().await.0);
    }
    let first = court.lease(&court.auditor).await;
    assert_eq!(first.work.kind(), WorkKind::Audit);
    assert_eq!(court.app.order("/users/alice", true).await, 204);
    // What comes in now is held, and not drawn for an audit.
    played.push(court.alice_plays().await.0);
    assert_eq!(court.alice().await.audits_open, 0);
    assert_eq!(court.app.order("/users/alice", false).await, 204);
    assert_eq!(court.alice().await.audits_open, 4);
    plan_waiting(&court.app.app).await.unwrap();
    // Also the one that somebody was at work on.
    for games in &played {
        court.answer(&court.auditor, games, Same).await;
    }
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (0, 4));
    assert_eq!(court.kind(&court.auditor).await, WorkKind::SelfPlay);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn audits_that_nobody_could_make_are_over_for_good() {
    let mut court = Court::new().await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(25 * 60 * 60);
    plan_waiting(&court.app.app).await.unwrap();
    assert_eq!(court.alice().await.audits_open, 0);
    assert_eq!(court.app.order("/users/alice", true).await, 204);
    assert_eq!(court.app.order("/users/alice", false).await, 204);
    assert_eq!(court.alice().await.audits_open, 0);
}

#[tokio::test]
async fn failures_of_chunks_that_were_let_go_are_held_against_nobody() {
    let mut court = Court::new().await;
    court.judged(Other).await;
    court.judged(Other).await;
    assert_eq!(court.alice().await.level, TrustLevel::Quarantined);
    assert_eq!(court.app.order("/users/alice", false).await, 204);
    court.judged(Other).await;
    let alice = court.alice().await;
    assert_eq!((alice.level, alice.held_chunks), (TrustLevel::Probation, 1));
    assert_eq!(alice.audits_failed, 3, "they are not forgotten");
    court.judged(Other).await;
    assert_eq!(court.alice().await.level, TrustLevel::Quarantined);
}
