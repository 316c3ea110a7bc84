//! Audits: who is given which, and for how long.

use rookery_common::chunk::{Caps, read};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::{ContributorDetail, ContributorInfo};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::blobs::BlobKind;
use rookery_coordinator::trust::rate::PROBATION;

use crate::support::app::code;
use crate::support::audit_scenario::{AuditScenario, GAMES, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::{audit, chunk, selfplay};

#[tokio::test]
async fn an_honest_chunk_passes_by_one_volunteer_who_is_not_its_author() {
    let scenario = AuditScenario::new().await;
    let bob = &scenario.app.bob;
    scenario.proven(&[bob]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    assert_eq!(
        scenario.drawn_answers(&games, Same).await,
        "bob",
        "not her own"
    );
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_passed, alice.audits_failed), (1, 0));
    assert_eq!(alice.level, TrustLevel::Probation);
    assert_eq!(scenario.holds().await, []);
    let people: Vec<ContributorInfo> = scenario.app.get("/contributors").await;
    let bob = people.iter().find(|person| person.name == "bob").unwrap();
    let (jobs, searched) = (PROBATION, 64);
    assert_eq!(
        (bob.games, bob.positions),
        (
            u64::from(jobs * GAMES),
            u64::from(jobs * GAMES * 8 + searched)
        ),
        "audits are credited, and are no games"
    );
    assert_eq!((bob.audits, bob.audit_positions), (8, u64::from(searched)));
    let detail: ContributorDetail = scenario.app.get("/contributors/bob").await;
    for given in &detail.credit {
        assert_eq!(given.credit, bob.credit(), "{:?}", given.span);
    }
    let games = scenario.app.get::<RunInfo>("/runs/main").await.games;
    assert_eq!(games, u64::from((jobs + 1) * GAMES));
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn an_answer_may_be_sent_again() {
    let scenario = AuditScenario::new().await;
    let (games, _) = scenario.alice_plays().await;
    let job = scenario.lease(&scenario.auditor).await;
    let answer = audit(&job, &games, Same);
    for duplicate in [false, true] {
        let receipt = scenario.app.accepted(&scenario.auditor, &answer).await;
        assert_eq!(receipt.duplicate, duplicate);
    }
    let another = audit(&job, &games, Other);
    let late = scenario.app.upload(&scenario.auditor, &another).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
    assert_eq!(scenario.alice().await.audits_passed, 1);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn one_lost_chunk_does_not_keep_the_other_audits() {
    let scenario = AuditScenario::new().await;
    let lost = scenario.lease(&scenario.app.alice).await;
    let bytes = chunk(&lost, &[selfplay(&lost, 0, 7)]);
    scenario.app.accepted(&scenario.app.alice, &bytes).await;
    let blobs = &scenario.app.app.blobs;
    let hash = ContentHash::of(&bytes);
    blobs.remove(BlobKind::Chunk, &hash).await.unwrap();
    let (games, _) = scenario.alice_plays().await;
    scenario.answer(&scenario.auditor, &games, Same).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (0, 1));
}

#[tokio::test]
async fn volunteers_wait_for_the_operators_auditor() {
    let scenario = AuditScenario::new().await;
    let bob = &scenario.app.bob;
    scenario.proven(&[bob]).await;
    scenario.alice_plays().await;
    assert_eq!(scenario.kind(bob).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(&scenario.auditor).await, WorkKind::Audit);
    // One auditor at a time.
    scenario.app.clock.advance_seconds(PATIENCE);
    assert_eq!(scenario.kind(bob).await, WorkKind::SelfPlay);
}

#[tokio::test]
async fn newcomers_are_given_no_audits_where_others_can_make_them() {
    let scenario = AuditScenario::new().await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    assert_eq!(scenario.kind(&scenario.app.bob).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(&scenario.auditor).await, WorkKind::Audit);
}

#[tokio::test]
async fn where_nobody_has_a_record_newcomers_acquit_and_do_not_convict() {
    let scenario = AuditScenario::of_newcomers().await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for _ in 0..3 {
        scenario.drawn_answers(&games, Other).await;
    }
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    scenario.drawn_answers(&games, Same).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (1, 1));
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_volunteers_audits_may_be_taken_by_the_operators_auditor() {
    let scenario = AuditScenario::new().await;
    let bob = &scenario.app.bob;
    scenario.proven(&[bob]).await;
    for _ in 0..3 {
        scenario.alice_plays().await;
    }
    scenario.app.clock.advance_seconds(PATIENCE);
    let held = scenario.lease(bob).await;
    assert_eq!(scenario.kind(bob).await, WorkKind::Audit);
    scenario.app.keep(bob, &held).await;
    // The one that is free, then the two that bob holds, and none of them twice.
    for kind in [WorkKind::Audit; 3].into_iter().chain([WorkKind::SelfPlay]) {
        assert_eq!(scenario.kind(&scenario.auditor).await, kind);
    }
    let late = scenario.app.beat(bob, &held).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
}

#[tokio::test]
async fn an_audit_that_is_given_back_is_drawn_for_again() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    let first = scenario.lease(bob).await;
    // Answered in part.
    let (_, again) = read(&audit(&first, &games, Same), &Caps::default()).unwrap();
    scenario.app.hand_in(bob, &first, &again[..1]).await;
    scenario.app.give_back(bob, &first).await;
    for token in [bob, carol] {
        let job = scenario.app.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::SelfPlay, "nobody was drawn");
    }
    assert_eq!(scenario.kind(carol).await, WorkKind::Audit);
}

#[tokio::test]
async fn heartbeats_do_not_hold_an_audit_for_ever() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    let held = scenario.lease(bob).await;
    assert_eq!(held.work.kind(), WorkKind::Audit);
    let minutes = async |minutes| {
        for _ in 0..minutes {
            scenario.app.clock.advance_seconds(60);
            scenario.app.beat(bob, &held).await;
        }
        scenario.kind(carol).await
    };
    assert_eq!(minutes(60).await, WorkKind::SelfPlay);
    assert_eq!(minutes(2).await, WorkKind::Audit);
}
