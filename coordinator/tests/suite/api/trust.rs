//! Audits and quarantines: who is asked, what is decided, what is held and comes back.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use rookery_common::chunk::{Caps, GameRecord, read};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkPage, Job, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::people::ContributorInfo;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::trust::{ContributorTrust, TrustInfo, TrustLevel};
use rookery_coordinator::blobs::BlobKind;
use rookery_coordinator::trust::drift::{GameSums, Suspicion};
use rookery_coordinator::trust::rate::PROBATION;
use serde_json::json;

use crate::support::app::{TestApp, code, parse, run};
use crate::support::court::{Court, GAMES, PATIENCE, POSITIONS};
use crate::support::games::Found::{Near, Other, Same};
use crate::support::games::Score::{Loss, Win};
use crate::support::games::{audit, chunk, pair_games, selfplay};
use crate::support::noon;

#[tokio::test]
async fn an_honest_chunk_passes_by_one_volunteer_who_is_not_its_author() {
    let mut court = Court::new().await;
    let bob = court.app.bob.clone();
    court.proven(&[&bob]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    let own = court.app.lease(&court.app.alice).await;
    assert_eq!(own.work.kind(), WorkKind::SelfPlay, "not her own");
    court.answer(&court.app.bob, &games, Same).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_passed, alice.audits_failed), (1, 0));
    assert_eq!(alice.level, TrustLevel::Probation);
    assert_eq!(court.holds().await, []);
    let people: Vec<ContributorInfo> = court.app.get("/contributors").await;
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
    let games = court.app.get::<RunInfo>("/runs/main").await.games;
    assert_eq!(games, u64::from((jobs + 1) * GAMES));
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn an_answer_may_be_sent_again() {
    let mut court = Court::new().await;
    let (games, _) = court.alice_plays().await;
    let job = court.app.lease(&court.auditor).await;
    let answer = audit(&job, &games, Same);
    for duplicate in [false, true] {
        let receipt = court.app.accepted(&court.auditor, &answer).await;
        assert_eq!(receipt.duplicate, duplicate);
    }
    let another = audit(&job, &games, Other);
    let late = court.app.upload(&court.auditor, &another).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
    assert_eq!(court.alice().await.audits_passed, 1);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn one_lost_chunk_does_not_keep_the_other_audits() {
    let mut court = Court::new().await;
    let lost = court.app.lease(&court.app.alice).await;
    let bytes = chunk(&lost, &[selfplay(&lost, 0, 7)]);
    court.app.accepted(&court.app.alice, &bytes).await;
    let blobs = &court.app.app.blobs;
    let hash = ContentHash::of(&bytes);
    blobs.remove(BlobKind::Chunk, &hash).await.unwrap();
    let (games, _) = court.alice_plays().await;
    court.answer(&court.auditor, &games, Same).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (0, 1));
}

#[tokio::test]
async fn volunteers_wait_for_the_operators_auditor() {
    let mut court = Court::new().await;
    let bob = court.app.bob.clone();
    court.proven(&[&bob]).await;
    court.alice_plays().await;
    assert_eq!(court.kind(&bob).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&court.auditor).await, WorkKind::Audit);
    // One auditor at a time.
    court.app.clock.advance_seconds(PATIENCE);
    assert_eq!(court.kind(&bob).await, WorkKind::SelfPlay);
}

#[tokio::test]
async fn newcomers_are_given_no_audits_where_others_can_make_them() {
    let mut court = Court::new().await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    assert_eq!(court.kind(&court.app.bob).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&court.auditor).await, WorkKind::Audit);
}

#[tokio::test]
async fn where_nobody_has_a_record_newcomers_acquit_and_do_not_convict() {
    let mut court = Court::of_newcomers().await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    for token in [&court.app.bob, &court.carol, &court.dave] {
        court.answer(token, &games, Other).await;
    }
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    court.answer(&court.app.bob, &games, Same).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_passed), (1, 1));
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_volunteer_holds_two_audits_and_the_operators_auditor_may_take_them() {
    let mut court = Court::new().await;
    let bob = court.app.bob.clone();
    court.proven(&[&bob]).await;
    for _ in 0..3 {
        court.alice_plays().await;
    }
    court.app.clock.advance_seconds(PATIENCE);
    let held = court.app.lease(&bob).await;
    let kinds = [court.kind(&bob).await, court.kind(&bob).await];
    assert_eq!(kinds, [WorkKind::Audit, WorkKind::SelfPlay]);
    assert_eq!(court.beats(&bob, &held).await.status(), StatusCode::OK);
    // The one that is free, then the two that bob holds, and none of them twice.
    for kind in [WorkKind::Audit; 3].into_iter().chain([WorkKind::SelfPlay]) {
        assert_eq!(court.kind(&court.auditor).await, kind);
    }
    let late = court.beats(&bob, &held).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
}

#[tokio::test]
async fn nobody_looks_through_the_audits_by_giving_them_back() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    // Answered in part, it was in hand as well.
    let first = court.app.lease(&bob).await;
    let (_, again) = read(&audit(&first, &games, Same), &Caps::default()).unwrap();
    court.app.accepted(&bob, &chunk(&first, &again[..1])).await;
    court.gives_back(&bob, &first).await;
    let second = court.app.lease(&bob).await;
    assert_eq!(second.work.kind(), WorkKind::Audit);
    court.gives_back(&bob, &second).await;
    assert_eq!(court.kind(&bob).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&carol).await, WorkKind::Audit);
    // The leases would have ended.
    court.app.clock.advance_seconds(61);
    assert_eq!(court.kind(&bob).await, WorkKind::Audit);
}

#[tokio::test]
async fn heartbeats_do_not_hold_an_audit_for_ever() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    let held = court.app.lease(&bob).await;
    assert_eq!(held.work.kind(), WorkKind::Audit);
    let minutes = async |minutes| {
        for _ in 0..minutes {
            court.app.clock.advance_seconds(60);
            court.beats(&bob, &held).await;
        }
        court.kind(&carol).await
    };
    assert_eq!(minutes(60).await, WorkKind::SelfPlay);
    assert_eq!(minutes(2).await, WorkKind::Audit);
}

#[tokio::test]
async fn two_volunteers_convict_and_one_does_not() {
    let mut court = Court::new().await;
    let (bob, carol) = (court.app.bob.clone(), court.carol.clone());
    court.proven(&[&bob, &carol]).await;
    let before = court.training_positions().await;
    let (games, hash) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    court.answer(&court.app.bob, &games, Other).await;
    assert_eq!(court.alice().await.audits_open, 1);
    let again = court.app.lease(&court.app.bob).await;
    assert_eq!(again.work.kind(), WorkKind::SelfPlay, "asked once");
    court.answer(&court.carol, &games, Other).await;
    let alice = court.alice().await;
    assert_eq!((alice.audits_failed, alice.audits_open), (1, 0));
    assert_eq!(court.holds().await, [(hash, true)]);
    assert_eq!(court.training_positions().await, before);
    assert_eq!(alice.level, TrustLevel::Probation, "one may be an accident");
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_false_accuser_is_overruled_and_loses_trust() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    court.answer(&court.app.bob, &games, Other).await;
    court.answer(&court.carol, &games, Same).await;
    assert_eq!(court.alice().await.audits_open, 1, "a tie");
    court.answer(&court.dave, &games, Same).await;
    assert_eq!(court.alice().await.audits_passed, 1);
    assert_eq!(court.holds().await, []);
    let bob = court.app.app.store.trust("bob").await.unwrap();
    assert_eq!(bob.audits_passed, 0);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_liar_is_quarantined_and_everything_comes_back_when_cleared() {
    let mut court = Court::new().await;
    let good = court.judged(Same).await;
    let first = court.judged(Other).await;
    assert_eq!(court.holds().await, [(first, true)]);
    assert_eq!(court.training_positions().await, POSITIONS);
    let second = court.judged(Other).await;
    let alice = court.alice().await;
    assert_eq!(
        (alice.level, alice.held_chunks),
        (TrustLevel::Quarantined, 3)
    );
    assert_eq!(alice.quarantine.unwrap().by, "audits");
    let held = [(first, true), (good, true), (second, true)];
    assert_eq!(court.holds().await, held);
    assert_eq!(court.training_positions().await, 0);
    // What she plays from now on is taken, and held.
    let job = court.app.lease(&court.app.alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 999)]);
    court.app.accepted(&court.app.alice, &bytes).await;
    assert_eq!(court.training_positions().await, 0);
    let page = court
        .app
        .call(Method::GET, "/chunks", &court.app.trainer, Body::empty());
    let page: ChunkPage = parse(StatusCode::OK, page.await).await;
    let training = page.chunks.iter().filter(|row| row.kind.is_training());
    assert!(training.clone().count() == 4 && training.clone().all(|row| row.held));
    court.app.assert_consistent().await;

    assert_eq!(court.app.order("/users/alice", false).await, 204);
    assert_eq!(court.training_positions().await, 3 * POSITIONS + 8);
    assert_eq!(court.alice().await.held_chunks, 0);
    assert_eq!(court.holds().await.len(), 8, "nothing is deleted");
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn nobody_is_kept_busy_with_audits_of_those_in_quarantine() {
    let mut court = Court::new().await;
    for _ in 0..3 {
        court.alice_plays().await;
    }
    let held = court.app.lease(&court.auditor).await;
    assert_eq!(held.work.kind(), WorkKind::Audit);
    assert_eq!(court.app.order("/users/alice", true).await, 204);
    assert_eq!(court.alice().await.audits_open, 0);
    assert_eq!(court.kind(&court.auditor).await, WorkKind::SelfPlay);
    let late = court.beats(&court.auditor, &held).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn small_chunks_earn_a_pass_together_and_excuse_no_bad_ones() {
    let mut court = Court::new().await;
    let alice = court.app.alice.clone();
    for passed in [0, 0, 0, 1] {
        // Seven games of eight positions: a little more than a quarter of a whole pass.
        let (games, _) = court.plays_some(&alice, 7).await;
        court.answer(&court.auditor, &games, Same).await;
        assert_eq!(court.alice().await.audits_passed, passed);
    }
    court.judged(Other).await;
    let (games, _) = court.plays_some(&alice, 7).await;
    court.answer(&court.auditor, &games, Same).await;
    // The small chunks of before are brought before the auditors no more: they passed.
    court.judged(Other).await;
    assert_eq!(court.alice().await.level, TrustLevel::Quarantined);
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
    let auditor = court.app.app.store.trust("auditor").await.unwrap();
    assert_eq!(auditor.audits_failed, 0);
}

#[tokio::test]
async fn one_failure_brings_the_recent_chunks_before_the_auditors() {
    let mut court = Court::new().await;
    for _ in 0..10 {
        court.judged(Same).await;
    }
    assert_eq!(court.alice().await.level, TrustLevel::Trusted);
    assert_eq!(court.alice().await.audit_rate, 0.1);
    // Trusted, she is hardly audited any more.
    for _ in 0..30 {
        court.alice_plays().await;
    }
    let open = court.alice().await.audits_open;
    assert!(open < 15, "{open} of 30 at a rate of a tenth");
    // One of these audits fails; if chance opened none, the next chunk's will.
    let token = court.auditor.clone();
    let job = loop {
        let job = court.app.lease(&token).await;
        if job.work.kind() == WorkKind::Audit {
            break job;
        }
        court.alice_plays().await;
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
    for _ in 0..30 {
        court.alice_plays().await;
    }
    let store = &court.app.app.store;
    let samples = store.samples(&run()).await.unwrap();
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
        (GAMES, POSITIONS, GAMES, 0)
    );
    // The tests' searches have all their visits on one move, and a value of a quarter.
    assert_eq!(searches.searches, GAMES * 8);
    assert!(searches.entropy.abs() < 1e-6);
    assert_eq!(searches.values[1].searches, GAMES * 8);
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
        store.suspect(&run(), found, noon()).await.unwrap();
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

#[tokio::test]
async fn operators_see_everybody_and_contributors_what_is_held() {
    let mut court = Court::new().await;
    court.judged(Same).await;
    let bad = court.judged(Other).await;
    let people = court.people(&court.app.operator).await;
    let people: Vec<ContributorTrust> = parse(StatusCode::OK, people).await;
    let names: Vec<_> = people
        .iter()
        .map(|person| person.trust.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["alice", "auditor"],
        "who has sent nothing is left out"
    );
    let token = &court.app.alice;
    let own = court.app.call(Method::GET, "/trust", token, Body::empty());
    let own: TrustInfo = parse(StatusCode::OK, own.await).await;
    assert_eq!(own, people[0].trust);
    assert_eq!((own.audited_positions, own.held_chunks), (128, 1));
    let held = &own.held[0];
    assert_eq!((held.chunk, held.run.as_str()), (bad, "main"));
    assert_eq!((held.games, held.positions), (GAMES, GAMES * 8));
    assert!(held.reason.contains("audit"), "{}", held.reason);
    let refused = court.people(token).await;
    assert_eq!(code(refused).await, ProblemCode::Forbidden);
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

#[tokio::test]
async fn held_match_games_leave_the_tally_and_their_pairs_are_played_again() {
    let court = Court::new().await;
    court.app.submit(1).await;
    let job = court.app.lease(&court.app.alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    let games = pair_games(&job, 0, [Win, Loss]);
    court
        .app
        .accepted(&court.app.alice, &chunk(&job, &games))
        .await;
    let tally = async || court.app.get::<Vec<MatchInfo>>("/matches").await.remove(0);
    assert_eq!(tally().await.tally.losses, 1);
    assert_eq!(court.app.order("/users/alice", true).await, 204);
    assert_eq!(tally().await.tally.losses, 0);
    court.app.assert_consistent().await;
    let none = court.app.lease(&court.app.alice).await;
    assert_eq!(
        none.work.kind(),
        WorkKind::SelfPlay,
        "no more matches for her"
    );
    let before = pair(&job);
    let again = court.app.lease(&court.app.bob).await;
    assert_eq!(pair(&again), before, "her pair goes to another");
    for token in [&court.app.bob, &court.carol] {
        let job = if token == &court.app.bob {
            again.clone()
        } else {
            court.app.lease(token).await
        };
        let games = pair_games(&job, 0, [Win, Win]);
        court.app.accepted(token, &chunk(&job, &games)).await;
    }
    assert_eq!(tally().await.status, MatchStatus::Promoted);
    court.app.assert_consistent().await;
}

fn pair(job: &Job) -> u32 {
    crate::support::games::pairs(job)[0].pair
}

#[tokio::test]
async fn orders_need_an_operator_a_reason_and_someone_to_hold() {
    let court = Court::new().await;
    assert_eq!(court.app.order("/users/nobody", true).await, 404);
    let order = json!({"quarantined": true, "reason": " "}).to_string();
    let path = "/users/alice/quarantine";
    let app = &court.app;
    let answer = app.call(Method::PUT, path, &app.operator, order.clone());
    assert_eq!(code(answer.await).await, ProblemCode::BadRequest);
    let answer = app.call(Method::PUT, path, &app.trainer, order);
    assert_eq!(code(answer.await).await, ProblemCode::Forbidden);
    let own = app.call(Method::GET, "/trust", &app.alice, Body::empty());
    let own: TrustInfo = parse(StatusCode::OK, own.await).await;
    assert_eq!((own.name.as_str(), own.audit_rate), ("alice", 1.0));
}

#[tokio::test]
async fn names_and_reasons_that_no_database_can_keep_are_told_apart() {
    let app = TestApp::new().await;
    let order = async |path: &str, reason: &str| {
        let order = json!({"quarantined": true, "reason": reason}).to_string();
        app.call(Method::PUT, path, &app.operator, order).await
    };
    let nobody = order("/users/x%00/quarantine", "odd").await;
    assert_eq!(code(nobody).await, ProblemCode::NotFound);
    let look = app.call(
        Method::GET,
        "/users/x%00/trust",
        &app.operator,
        Body::empty(),
    );
    assert_eq!(code(look.await).await, ProblemCode::NotFound);
    let zeros = format!("/chunks/{}/quarantine", "0".repeat(64));
    for path in ["/users/alice/quarantine", &zeros] {
        for reason in ["\u{0}", "a\u{1b}[2J", &"x".repeat(501)] {
            let refused = order(path, reason).await;
            assert_eq!(code(refused).await, ProblemCode::BadRequest, "{reason:?}");
        }
    }
    let done = order("/users/alice/quarantine", " Stockfish's moves ").await;
    assert_eq!(done.status(), StatusCode::NO_CONTENT);
    let alice = app.call(
        Method::GET,
        "/users/alice/trust",
        &app.operator,
        Body::empty(),
    );
    let alice: TrustInfo = parse(StatusCode::OK, alice.await).await;
    assert_eq!(alice.quarantine.unwrap().reason, "Stockfish's moves");
}
