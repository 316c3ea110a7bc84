//! What audits prove, and which chunks they bring before the auditors next.

use axum::http::StatusCode;
use rookery_common::chunk::GameRecord;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::trust::{ContributorTrust, TrustLevel};
use rookery_coordinator::trust::drift::{GameSums, Suspicion};

use crate::support::app::{parse, run};
use crate::support::court::{Court, FEW, GAMES, PATIENCE};
use crate::support::games::Found::{Near, Other, Same};
use crate::support::games::{audit, selfplay};
use crate::support::noon;

#[tokio::test]
async fn two_volunteers_convict_and_one_does_not() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let before = court.training_positions().await;
    let (games, hash) = court.alice_plays().await;
    court.without_auditor(&[&bob, &carol]).await;
    let first = court.drawn_answers(&games, Other).await;
    assert_eq!(court.alice().await.audits_open, 1);
    let second = court.drawn_answers(&games, Other).await;
    assert!(first != second, "{first} is asked once");
    let alice = court.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_open), (1, 0));
    assert_eq!(court.holds().await, [(hash, true)]);
    assert_eq!(court.training_positions().await, before);
    assert_eq!(alice.level, TrustLevel::Probation, "one may be an accident");
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn volunteers_convict_nobody_while_an_auditor_is_at_work() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    for _ in 0..2 {
        court.drawn_answers(&games, Other).await;
    }
    let alice = court.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_open), (0, 1));
    court.answer(&court.auditor, &games, Same).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_passed), (0, 1));
    assert_eq!(court.holds().await, []);
    for accuser in ["bob", "carol"] {
        let trust = court.app.app.db.trust(accuser).await.unwrap();
        assert_eq!(trust.audits_passed, 0, "{accuser}");
    }
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn an_auditor_who_does_not_come_is_waited_for_an_hour() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let busy = court.app.lease(&court.auditor).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    for _ in 0..2 {
        court.drawn_answers(&games, Other).await;
    }
    assert_eq!(court.alice().await.audits_failed, 0);
    court.app.clock.advance_seconds(3_600);
    court.come(&[&bob, &carol, &dave]).await;
    let beat = court.beats(&court.auditor, &busy).await;
    assert_eq!(beat.status(), StatusCode::OK);
    court.drawn_answers(&games, Other).await;
    assert_eq!(court.alice().await.audits_failed, 1);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_false_accuser_is_overruled_and_loses_trust() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    let accuser = court.drawn_answers(&games, Other).await;
    court.drawn_answers(&games, Same).await;
    assert_eq!(court.alice().await.audits_open, 1, "a tie");
    court.drawn_answers(&games, Same).await;
    assert_eq!(court.alice().await.audits_passed, 1);
    assert_eq!(court.holds().await, []);
    let accuser = court.app.app.db.trust(accuser).await.unwrap();
    assert_eq!(accuser.audits_passed, 0);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn small_chunks_earn_a_pass_together_and_excuse_no_bad_ones() {
    let mut court = Court::new().await;
    let alice = court.app.alice.clone();
    for passed in [0, 0, 0, 1] {
        // A little more than a quarter of a whole pass.
        let (games, _) = court.plays_some(&alice, 51).await;
        court.answer(&court.auditor, &games, Same).await;
        assert_eq!(court.alice().await.audits_passed, passed);
    }
    court.judged(Other).await;
    let (games, _) = court.plays_some(&alice, 51).await;
    court.answer(&court.auditor, &games, Same).await;
    // The small chunks of before are brought before the auditors no more: they passed.
    court.judged(Other).await;
    assert_eq!(court.alice().await.level, TrustLevel::Quarantined);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_large_false_chunk_among_small_honest_ones_is_not_excused() {
    let mut court = Court::new().await;
    let alice = court.app.alice.clone();
    let mut judged = async |games, found| {
        let (games, _) = court.plays_some(&alice, games).await;
        court.answer(&court.auditor, &games, found).await;
        court.alice().await.level
    };
    // Seven pieces have a little less than the false chunk.
    let (large, small) = (GAMES, 25);
    assert_eq!(judged(large, Other).await, TrustLevel::Probation);
    for _ in 0..7 {
        assert_eq!(judged(small, Same).await, TrustLevel::Probation);
    }
    assert_eq!(judged(large, Other).await, TrustLevel::Quarantined);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn as_much_honest_work_excuses_a_failure_in_whatever_pieces() {
    let mut court = Court::new().await;
    let alice = court.app.alice.clone();
    court.judged(Other).await;
    for _ in 0..8 {
        let (games, _) = court.plays_some(&alice, 25).await;
        court.answer(&court.auditor, &games, Same).await;
    }
    court.judged(Other).await;
    assert_eq!(court.alice().await.level, TrustLevel::Probation);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn small_chunks_are_judged_together() {
    let mut court = Court::new().await;
    let alice = court.app.alice.clone();
    let mut judged = async || {
        let (games, _) = court.plays_some(&alice, 1).await;
        court.answer(&court.auditor, &games, Near).await;
        court.app.assert_consistent().await;
        let alice = court.alice().await;
        (alice.audits_failed, alice.level)
    };
    for failed in [0, 0, 1] {
        assert_eq!(judged().await, (failed, TrustLevel::Probation));
    }
    // What has proved it once does not prove it again.
    for (failed, level) in [
        (1, TrustLevel::Probation),
        (1, TrustLevel::Probation),
        (2, TrustLevel::Quarantined),
    ] {
        assert_eq!(judged().await, (failed, level));
    }
    let auditor = court.app.app.db.trust("auditor").await.unwrap();
    assert_eq!(auditor.audits_failed, 0);
}

#[tokio::test]
async fn one_failure_brings_the_recent_chunks_before_the_auditors() {
    let mut court = Court::new().await;
    for _ in 0..10 {
        court.judged(Same).await;
    }
    assert_eq!(court.alice().await.level, TrustLevel::Trusted);
    assert_eq!(court.alice().await.audit_rate, 0.0625);
    // Trusted, she is hardly audited any more.
    let alice = court.app.alice.clone();
    for _ in 0..30 {
        court.plays_some(&alice, FEW).await;
    }
    let open = court.alice().await.audits_open;
    assert!(open < 15, "{open} of 30 at a rate of a tenth");
    // One of these audits fails; if chance opened none, the next chunk's will.
    let token = court.auditor.clone();
    let job = loop {
        let job = court.lease(&token).await;
        if job.work.kind() == WorkKind::Audit {
            break job;
        }
        court.plays_some(&alice, FEW).await;
    };
    let before = court.alice().await.audits_open;
    court.app.accepted(&token, &unlike(&job)).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_passed, alice.audit_rate), (0, 1.0));
    assert!(
        alice.audits_open >= before - 1 + 15,
        "{}",
        alice.audits_open
    );
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn drift_is_measured_and_brings_chunks_before_the_auditors() {
    let mut court = Court::new().await;
    for _ in 0..10 {
        court.judged(Same).await;
    }
    let alice = court.app.alice.clone();
    for _ in 0..30 {
        court.plays_some(&alice, FEW).await;
    }
    let db = &court.app.app.db;
    let samples = db.samples(&run()).await.unwrap();
    assert_eq!(samples.len(), 40);
    let sample = samples.last().unwrap();
    assert_eq!(
        (sample.worker.as_str(), sample.backend.as_str()),
        ("w", "uniform")
    );
    let GameSums {
        games,
        plies,
        draws,
        white_wins,
        searches,
    } = sample.sums;
    assert_eq!(
        (games, plies, draws, white_wins),
        (FEW, u64::from(FEW) * 8, FEW, 0)
    );
    // The tests' searches have nearly all their visits on one move, and a value of a quarter.
    assert_eq!(searches.searches, FEW * 8);
    assert!((0.0..0.25 * f64::from(searches.searches)).contains(&searches.entropy));
    assert_eq!(searches.values[1].searches, FEW * 8);
    assert!((searches.values[1].error - 16.0).abs() < 1e-6);
    let before = court.alice().await.audits_open;
    let found = |z| Suspicion {
        user: sample.user,
        worker: "w".to_owned(),
        backend: "uniform".to_owned(),
        feature: "game length",
        z,
    };
    for z in [9.0, -12.5] {
        let found = vec![found(z)];
        db.suspect(&run(), found, noon()).await.unwrap();
    }
    let after = court.alice().await.audits_open;
    assert!(after >= before + 15, "{before}, then {after}");
    let people = court.people(&court.app.operator).await;
    let people: Vec<ContributorTrust> = parse(StatusCode::OK, people).await;
    assert_eq!(people[0].trust.name, "alice");
    let drift = &people[0].drift;
    assert_eq!(
        (drift.len(), drift[0].z),
        (1, -12.5),
        "the last look counts"
    );
    assert_eq!(drift[0].feature, "game length");
}

/// An audit that finds other searches, whatever was played.
fn unlike(job: &Job) -> Vec<u8> {
    use rookery_common::protocol::jobs::Work;
    let Work::Audit { tasks, .. } = &job.work else {
        panic!("an audit")
    };
    // Any game with the task's moves and seed will do as a basis.
    let games: Vec<_> = tasks
        .iter()
        .map(|task| GameRecord {
            seed: task.seed,
            ..selfplay(job, 0, 1)
        })
        .collect();
    audit(job, &games, Other)
}
