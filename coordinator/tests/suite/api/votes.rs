//! Whose word counts in audits: not that of somebody in quarantine, and the operator's auditor's before volunteers'.

use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{Backend, WorkKind};
use rookery_common::protocol::people::Scope;
use rookery_coordinator::blobs::{BlobError, BlobKind};
use rookery_coordinator::trust::plan::decide_overdue;

use crate::support::app::{code, user};
use crate::support::audit_scenario::{AuditScenario, PATIENCE};
use crate::support::games::Found::{Near, Other, Same};
use crate::support::games::{again, chunk_on};

#[tokio::test]
async fn the_word_of_somebody_in_quarantine_counts_for_nothing() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.without_auditor(&[bob, carol]).await;
    let first = scenario.drawn_answers(&games, Other).await;
    let path = format!("/users/{first}");
    assert_eq!(scenario.app.order(&path, true).await, 204);
    scenario.drawn_answers(&games, Other).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
}

#[tokio::test]
async fn those_in_quarantine_do_not_keep_newcomers_from_auditing() {
    let scenario = AuditScenario::new().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    scenario.revoke_auditor().await;
    for name in ["bob", "carol", "dave"] {
        let path = format!("/users/{name}");
        assert_eq!(scenario.app.order(&path, true).await, 204);
    }
    let erin = user(&scenario.app.app, "erin", &[Scope::Contribute]).await;
    scenario.come(&[&erin]).await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    assert_eq!(scenario.kind(&erin).await, WorkKind::Audit);
}

#[tokio::test]
async fn what_volunteers_find_in_many_audits_waits_for_the_operators_auditor() {
    let scenario = AuditScenario::new().await;
    let [alice, bob, carol] = [&scenario.app.alice, &scenario.app.bob, &scenario.carol];
    scenario.proven(&[bob, carol]).await;
    let mut last = Vec::new();
    for volunteer in [bob, carol, bob, carol, bob, carol] {
        assert_eq!(scenario.alice().await.audits_open, 0);
        last = scenario.plays_some(alice, 1).await.0;
        scenario.app.clock.advance_seconds(PATIENCE);
        scenario.answer(volunteer, &last, Near).await;
    }
    let trust = scenario.alice().await;
    assert_eq!((trust.audits_open, trust.audits_failed), (1, 0));
    scenario.answer(&scenario.auditor, &last, Same).await;
    let trust = scenario.alice().await;
    assert_eq!((trust.audits_open, trust.audits_failed), (0, 0));
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn what_the_operators_auditor_does_not_look_at_in_time_is_decided_without_it() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for volunteer in [bob, carol] {
        scenario.answer(volunteer, &games, Other).await;
    }
    let state = async || {
        decide_overdue(&scenario.app.app).await.unwrap();
        let trust = scenario.alice().await;
        (trust.audits_open, trust.audits_failed)
    };
    assert_eq!(state().await, (1, 0));
    scenario.app.clock.advance_seconds(60 * 60);
    assert_eq!(state().await, (0, 1));
    assert_eq!(scenario.holds().await.len(), 1);
    scenario.app.assert_consistent().await;
}

/// Answers that agree by limits ten times as wide say nothing of searches that must agree to the visit.
#[tokio::test]
async fn who_objects_in_32_bits_loses_no_trust_by_the_word_of_16_bits() {
    for (backend, passed) in [(Backend::CudaBf16, 10), (Backend::CudaF32, 0)] {
        let scenario = AuditScenario::new().await;
        let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
        scenario.proven(&[bob, carol, dave]).await;
        let (games, _) = scenario.alice_plays().await;
        scenario.app.clock.advance_seconds(PATIENCE);
        scenario.answer(bob, &games, Other).await;
        for token in [carol, dave] {
            let job = scenario.lease(token).await;
            assert_eq!(job.work.kind(), WorkKind::Audit);
            let answer = chunk_on(backend, &job, &again(&job, &games, Same));
            scenario.app.accepted(token, &answer).await;
        }
        assert_eq!(scenario.alice().await.audits_passed, 1);
        let bob = scenario.app.app.db.trust("bob").await.unwrap();
        assert_eq!(bob.audits_passed, passed, "{backend:?}");
        scenario.app.assert_consistent().await;
    }
}

#[tokio::test]
async fn an_audit_is_of_one_backend() {
    let scenario = AuditScenario::new().await;
    let (games, _) = scenario.alice_plays().await;
    let job = scenario.lease(&scenario.auditor).await;
    let parts = again(&job, &games, Same);
    let (first, rest) = parts.split_at(1);
    let part = chunk_on(Backend::Uniform, &job, first);
    scenario.app.accepted(&scenario.auditor, &part).await;
    let other = chunk_on(Backend::CudaBf16, &job, rest);
    let refused = scenario.app.upload(&scenario.auditor, &other).await;
    assert_eq!(code(refused).await, ProblemCode::Conflict);
    let hash = ContentHash::of(&other);
    let stored = scenario.app.app.blobs.get(BlobKind::Chunk, &hash).await;
    assert!(matches!(stored, Err(BlobError::Missing(_))));
    assert_eq!(scenario.alice().await.audits_open, 1);
    let same = chunk_on(Backend::Uniform, &job, rest);
    scenario.app.accepted(&scenario.auditor, &same).await;
    assert_eq!(scenario.alice().await.audits_passed, 1);
    scenario.app.assert_consistent().await;
}
