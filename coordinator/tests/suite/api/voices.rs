//! Whose word counts in audits: not that of somebody in quarantine, and the operator's auditor's before volunteers'.

use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{Backend, WorkKind};
use rookery_common::protocol::people::Scope;
use rookery_coordinator::trust::plan::decide_overdue;

use crate::support::app::{code, user};
use crate::support::court::{Court, PATIENCE};
use crate::support::games::Found::{Near, Other, Same};
use crate::support::games::{again, chunk_on};
use crate::support::noon;

#[tokio::test]
async fn the_word_of_somebody_in_quarantine_counts_for_nothing() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.without_auditor(&[&bob, &carol]).await;
    let first = court.drawn_answers(&games, Other).await;
    let path = format!("/users/{first}");
    assert_eq!(court.app.order(&path, true).await, 204);
    court.drawn_answers(&games, Other).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
}

#[tokio::test]
async fn those_in_quarantine_do_not_keep_newcomers_from_auditing() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let db = court.app.app.db.clone();
    let auditors = db.tokens("auditor").await.unwrap();
    let revoked = db.revoke_token(auditors[0].id, "test", noon());
    revoked.await.unwrap();
    for name in ["bob", "carol", "dave"] {
        let path = format!("/users/{name}");
        assert_eq!(court.app.order(&path, true).await, 204);
    }
    let erin = user(&court.app.app, "erin", &[Scope::Contribute]).await;
    court.come(&[&erin]).await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    assert_eq!(court.kind(&erin).await, WorkKind::Audit);
}

#[tokio::test]
async fn what_volunteers_find_in_many_audits_waits_for_the_operators_auditor() {
    let mut court = Court::new().await;
    let [alice, bob, carol] = [&court.app.alice, &court.app.bob, &court.carol].map(Clone::clone);
    court.proven(&[&bob, &carol]).await;
    let mut last = Vec::new();
    for volunteer in [&bob, &carol, &bob, &carol, &bob, &carol] {
        assert_eq!(court.alice().await.audits_open, 0);
        last = court.plays_some(&alice, 1).await.0;
        court.app.clock.advance_seconds(PATIENCE);
        court.answer(volunteer, &last, Near).await;
    }
    let trust = court.alice().await;
    assert_eq!((trust.audits_open, trust.audits_failed), (1, 0));
    court.answer(&court.auditor, &last, Same).await;
    let trust = court.alice().await;
    assert_eq!((trust.audits_open, trust.audits_failed), (0, 0));
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn what_the_operators_auditor_does_not_look_at_in_time_is_decided_without_it() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    for volunteer in [&bob, &carol] {
        court.answer(volunteer, &games, Other).await;
    }
    let state = async || {
        decide_overdue(&court.app.app).await.unwrap();
        let trust = court.alice().await;
        (trust.audits_open, trust.audits_failed)
    };
    assert_eq!(state().await, (1, 0));
    court.app.clock.advance_seconds(60 * 60);
    assert_eq!(state().await, (0, 1));
    assert_eq!(court.holds().await.len(), 1);
    court.app.assert_consistent().await;
}

/// Answers that agree by limits ten times as wide say nothing of searches that must agree to the visit.
#[tokio::test]
async fn who_objects_in_32_bits_loses_no_trust_by_the_word_of_16_bits() {
    for (backend, passed) in [(Backend::CudaBf16, 10), (Backend::CudaF32, 0)] {
        let mut court = Court::new().await;
        let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
        court.proven(&[&bob, &carol, &dave]).await;
        let (games, _) = court.alice_plays().await;
        court.app.clock.advance_seconds(PATIENCE);
        court.answer(&bob, &games, Other).await;
        for token in [&carol, &dave] {
            let job = court.lease(token).await;
            assert_eq!(job.work.kind(), WorkKind::Audit);
            let answer = chunk_on(backend, &job, &again(&job, &games, Same));
            court.app.accepted(token, &answer).await;
        }
        assert_eq!(court.alice().await.audits_passed, 1);
        let bob = court.app.app.db.trust("bob").await.unwrap();
        assert_eq!(bob.audits_passed, passed, "{backend:?}");
        court.app.assert_consistent().await;
    }
}

#[tokio::test]
async fn an_audit_is_of_one_backend() {
    let mut court = Court::new().await;
    let (games, _) = court.alice_plays().await;
    let job = court.lease(&court.auditor).await;
    let parts = again(&job, &games, Same);
    let (first, rest) = parts.split_at(1);
    let part = chunk_on(Backend::Uniform, &job, first);
    court.app.accepted(&court.auditor, &part).await;
    let other = chunk_on(Backend::CudaBf16, &job, rest);
    let refused = court.app.upload(&court.auditor, &other).await;
    assert_eq!(code(refused).await, ProblemCode::Conflict);
    assert_eq!(court.alice().await.audits_open, 1);
    let same = chunk_on(Backend::Uniform, &job, rest);
    court.app.accepted(&court.auditor, &same).await;
    assert_eq!(court.alice().await.audits_passed, 1);
    court.app.assert_consistent().await;
}
