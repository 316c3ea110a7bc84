//! What audits prove, and which chunks they bring before the auditors next.

use rookery_common::chunk::GameRecord;
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::trust::drift::{GameSums, Suspicion};

use crate::support::app::run;
use crate::support::audit_scenario::{AuditScenario, FEW, GAMES, PATIENCE};
use crate::support::games::Found::{Near, Other, Same};
use crate::support::games::{audit, selfplay};
use crate::support::noon;

#[tokio::test]
async fn two_volunteers_convict_and_one_does_not() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    let before = scenario.training_positions().await;
    let (games, hash) = scenario.alice_plays().await;
    scenario.without_auditor(&[bob, carol]).await;
    let first = scenario.drawn_answers(&games, Other).await;
    assert_eq!(scenario.alice().await.audits_open, 1);
    let second = scenario.drawn_answers(&games, Other).await;
    assert!(first != second, "{first} is asked once");
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_open), (1, 0));
    assert_eq!(scenario.holds().await, [(hash, true)]);
    assert_eq!(scenario.training_positions().await, before);
    assert_eq!(alice.level, TrustLevel::Probation, "one may be an accident");
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn volunteers_convict_nobody_while_an_auditor_is_at_work() {
    let scenario = AuditScenario::new().await;
    let (bob, carol) = (&scenario.app.bob, &scenario.carol);
    scenario.proven(&[bob, carol]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for _ in 0..2 {
        scenario.drawn_answers(&games, Other).await;
    }
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_open), (0, 1));
    scenario.answer(&scenario.auditor, &games, Same).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_passed), (0, 1));
    assert_eq!(scenario.holds().await, []);
    for accuser in ["bob", "carol"] {
        let trust = scenario.app.app.db.trust(accuser).await.unwrap();
        assert_eq!(trust.audits_passed, 0, "{accuser}");
    }
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn an_auditor_who_does_not_come_is_waited_for_an_hour() {
    let scenario = AuditScenario::new().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    let busy = scenario.app.lease(&scenario.auditor).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for _ in 0..2 {
        scenario.drawn_answers(&games, Other).await;
    }
    assert_eq!(scenario.alice().await.audits_failed, 0);
    scenario.app.clock.advance_seconds(3_600);
    scenario.come(&[bob, carol, dave]).await;
    scenario.app.keep(&scenario.auditor, &busy).await;
    scenario.drawn_answers(&games, Other).await;
    assert_eq!(scenario.alice().await.audits_failed, 1);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_false_accuser_is_overruled_and_loses_trust() {
    let scenario = AuditScenario::new().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    let accuser = scenario.drawn_answers(&games, Other).await;
    scenario.drawn_answers(&games, Same).await;
    assert_eq!(scenario.alice().await.audits_open, 1, "a tie");
    scenario.drawn_answers(&games, Same).await;
    assert_eq!(scenario.alice().await.audits_passed, 1);
    assert_eq!(scenario.holds().await, []);
    let accuser = scenario.app.app.db.trust(accuser).await.unwrap();
    assert_eq!(accuser.audits_passed, 0);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn small_chunks_earn_a_pass_together_and_excuse_no_bad_ones() {
    let scenario = AuditScenario::new().await;
    let alice = &scenario.app.alice;
    for passed in [0, 0, 0, 1] {
        // A little more than a quarter of a whole pass.
        let (games, _) = scenario.plays_some(alice, 51).await;
        scenario.answer(&scenario.auditor, &games, Same).await;
        assert_eq!(scenario.alice().await.audits_passed, passed);
    }
    scenario.judged(Other).await;
    let (games, _) = scenario.plays_some(alice, 51).await;
    scenario.answer(&scenario.auditor, &games, Same).await;
    // The small chunks of before are brought before the auditors no more: they passed.
    scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.level, TrustLevel::Quarantined);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_large_false_chunk_among_small_honest_ones_is_not_excused() {
    let scenario = AuditScenario::new().await;
    let alice = &scenario.app.alice;
    let judged = async |games, found| {
        let (games, _) = scenario.plays_some(alice, games).await;
        scenario.answer(&scenario.auditor, &games, found).await;
        scenario.alice().await.level
    };
    // Seven pieces have a little less than the false chunk.
    let (large, small) = (GAMES, 25);
    assert_eq!(judged(large, Other).await, TrustLevel::Probation);
    for _ in 0..7 {
        assert_eq!(judged(small, Same).await, TrustLevel::Probation);
    }
    assert_eq!(judged(large, Other).await, TrustLevel::Quarantined);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn as_much_honest_work_excuses_a_failure_in_whatever_pieces() {
    let scenario = AuditScenario::new().await;
    let alice = &scenario.app.alice;
    scenario.judged(Other).await;
    for _ in 0..8 {
        let (games, _) = scenario.plays_some(alice, 25).await;
        scenario.answer(&scenario.auditor, &games, Same).await;
    }
    scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.level, TrustLevel::Probation);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn small_chunks_are_judged_together() {
    let scenario = AuditScenario::new().await;
    let alice = &scenario.app.alice;
    let judged = async || {
        let (games, _) = scenario.plays_some(alice, 1).await;
        scenario.answer(&scenario.auditor, &games, Near).await;
        scenario.app.assert_consistent().await;
        let alice = scenario.alice().await;
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
    let auditor = scenario.app.app.db.trust("auditor").await.unwrap();
    assert_eq!(auditor.audits_failed, 0);
}

#[tokio::test]
async fn one_failure_brings_the_recent_chunks_before_the_auditors() {
    let scenario = AuditScenario::new().await;
    for _ in 0..10 {
        scenario.judged(Same).await;
    }
    assert_eq!(scenario.alice().await.level, TrustLevel::Trusted);
    assert_eq!(scenario.alice().await.audit_rate, 0.0625);
    // Trusted, she is hardly audited any more.
    let alice = &scenario.app.alice;
    for _ in 0..30 {
        scenario.plays_some(alice, FEW).await;
    }
    let open = scenario.alice().await.audits_open;
    assert!(open < 15, "{open} of 30 at a rate of a tenth");
    // One of these audits fails; if chance opened none, the next chunk's will.
    let token = &scenario.auditor;
    let job = loop {
        let job = scenario.lease(token).await;
        if job.work.kind() == WorkKind::Audit {
            break job;
        }
        scenario.plays_some(alice, FEW).await;
    };
    let before = scenario.alice().await.audits_open;
    scenario.app.accepted(token, &unlike(&job)).await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_passed, alice.audit_rate), (0, 1.0));
    assert!(
        alice.audits_open >= before - 1 + 15,
        "{}",
        alice.audits_open
    );
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn drift_is_measured_and_brings_chunks_before_the_auditors() {
    let scenario = AuditScenario::new().await;
    for _ in 0..10 {
        scenario.judged(Same).await;
    }
    let alice = &scenario.app.alice;
    for _ in 0..30 {
        scenario.plays_some(alice, FEW).await;
    }
    let db = &scenario.app.app.db;
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
    let before = scenario.alice().await.audits_open;
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
    let after = scenario.alice().await.audits_open;
    assert!(after >= before + 15, "{before}, then {after}");
    let people = scenario.people().await;
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
