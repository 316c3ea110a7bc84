//! Quarantine: what is held and comes back, who is told, who may order it.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use rookery_common::ids::{ContentHash, Seed};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{ChunkPage, Job, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::trust::{TrustInfo, TrustLevel};
use rookery_coordinator::config::{AccessConfig, Registration};
use rookery_coordinator::db::{ChunkStatus, ExclusionOrder};
use rookery_coordinator::limits::Limits;
use rookery_coordinator::limits::address::Peer;
use rookery_coordinator::limits::settings::LimitArgs;
use serde_json::json;

use crate::support::app::{TestApp, code, params};
use crate::support::audit_scenario::{AuditScenario, GAMES, POSITIONS};
use crate::support::by;
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::{Loss, Win};
use crate::support::games::{chunk, pair_games, selfplay};

#[tokio::test]
async fn a_liar_is_quarantined_and_everything_comes_back_when_cleared() {
    let scenario = AuditScenario::new().await;
    let good = scenario.judged(Same).await;
    let first = scenario.judged(Other).await;
    assert_eq!(scenario.holds().await, [(first, true)]);
    assert_eq!(scenario.training_positions().await, POSITIONS);
    let second = scenario.judged(Other).await;
    let alice = scenario.alice().await;
    assert_eq!(
        (alice.level, alice.held_chunks),
        (TrustLevel::Quarantined, 3)
    );
    assert_eq!(alice.quarantine.unwrap().by, "audits");
    let held = [(first, true), (good, true), (second, true)];
    assert_eq!(scenario.holds().await, held);
    assert_eq!(scenario.training_positions().await, 0);
    // What she plays from now on is taken, and held.
    let job = scenario.lease(&scenario.app.alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 999)]);
    scenario.app.accepted(&scenario.app.alice, &bytes).await;
    assert_eq!(scenario.training_positions().await, 0);
    let page: ChunkPage = scenario.app.get_as(&scenario.app.trainer, "/chunks").await;
    let training = page.chunks.iter().filter(|row| row.kind.is_training());
    assert!(training.clone().count() == 4 && training.clone().all(|row| row.held));
    scenario.app.assert_consistent().await;

    assert_eq!(scenario.app.order("/users/alice", false).await, 204);
    assert_eq!(scenario.training_positions().await, 3 * POSITIONS + 8);
    assert_eq!(scenario.alice().await.held_chunks, 0);
    assert_eq!(scenario.holds().await.len(), 8, "nothing is deleted");
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn nobody_is_kept_busy_with_audits_of_those_in_quarantine() {
    let scenario = AuditScenario::new().await;
    for _ in 0..3 {
        scenario.alice_plays().await;
    }
    let held = scenario.lease(&scenario.auditor).await;
    assert_eq!(held.work.kind(), WorkKind::Audit);
    assert_eq!(scenario.app.order("/users/alice", true).await, 204);
    assert_eq!(scenario.alice().await.audits_open, 0);
    assert_eq!(scenario.kind(&scenario.auditor).await, WorkKind::SelfPlay);
    let late = scenario.app.beat(&scenario.auditor, &held).await;
    assert_eq!(code(late).await, ProblemCode::LeaseEnded);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn operators_see_everybody_and_contributors_what_is_held() {
    let scenario = AuditScenario::new().await;
    scenario.judged(Same).await;
    let bad = scenario.judged(Other).await;
    let people = scenario.people().await;
    let names: Vec<_> = people
        .iter()
        .map(|person| person.trust.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["alice", "auditor"],
        "who has sent nothing is left out"
    );
    let token = &scenario.app.alice;
    let own: TrustInfo = scenario.app.get_as(token, "/trust").await;
    assert_eq!(own, people[0].trust);
    assert_eq!((own.audited_positions, own.held_chunks), (128, 1));
    let held = &own.held[0];
    assert_eq!((held.chunk, held.run.as_str()), (bad, "main"));
    assert_eq!((held.games, held.positions), (GAMES, GAMES * 8));
    assert!(held.reason.contains("audit"), "{}", held.reason);
    let refused = scenario.app.look(token, "/trust/contributors").await;
    assert_eq!(code(refused).await, ProblemCode::Forbidden);
}

#[tokio::test]
async fn held_match_games_leave_the_tally_and_their_pairs_are_played_again() {
    let scenario = AuditScenario::new().await;
    scenario.app.submit(1).await;
    let job = scenario.lease(&scenario.app.alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    let games = pair_games(&job, 0, [Win, Loss]);
    scenario
        .app
        .hand_in(&scenario.app.alice, &job, &games)
        .await;
    let tally = async || {
        scenario
            .app
            .get::<Vec<MatchInfo>>("/matches")
            .await
            .remove(0)
    };
    assert_eq!(tally().await.tally.losses, 1);
    assert_eq!(scenario.app.order("/users/alice", true).await, 204);
    assert_eq!(tally().await.tally.losses, 0);
    scenario.app.assert_consistent().await;
    let none = scenario.lease(&scenario.app.alice).await;
    assert_eq!(
        none.work.kind(),
        WorkKind::SelfPlay,
        "no more matches for her"
    );
    let before = pair(&job);
    let again = scenario.lease(&scenario.app.bob).await;
    assert_eq!(pair(&again), before, "her pair goes to another");
    for token in [&scenario.app.bob, &scenario.carol] {
        let job = if token == &scenario.app.bob {
            again.clone()
        } else {
            scenario.lease(token).await
        };
        let games = pair_games(&job, 0, [Win, Win]);
        scenario.app.hand_in(token, &job, &games).await;
    }
    assert_eq!(tally().await.status, MatchStatus::Promoted);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_pair_whose_last_game_comes_after_all_is_cleared_counts() {
    let scenario = AuditScenario::new().await;
    scenario.app.submit(1).await;
    let (app, alice) = (&scenario.app, &scenario.app.alice);
    let job = app.lease(alice).await;
    let [first, last] = pair_games(&job, 0, [Win, Win]);
    app.hand_in(alice, &job, &[first]).await;
    for quarantined in [true, false] {
        assert_eq!(app.order("/users/alice", quarantined).await, 204);
        app.assert_consistent().await;
    }
    app.hand_in(alice, &job, &[last]).await;
    let tally = app.get::<Vec<MatchInfo>>("/matches").await.remove(0).tally;
    assert_eq!((tally.wins, tally.losses), (2, 0));
    app.assert_consistent().await;
}

fn pair(job: &Job) -> u32 {
    crate::support::games::pairs(job)[0].pair
}

#[tokio::test]
async fn orders_need_an_operator_a_reason_and_someone_to_hold() {
    let scenario = AuditScenario::new().await;
    assert_eq!(scenario.app.order("/users/nobody", true).await, 404);
    let order = json!({"quarantined": true, "reason": " "}).to_string();
    let path = "/users/alice/quarantine";
    let app = &scenario.app;
    let answer = app.call(Method::PUT, path, &app.operator, order.clone());
    assert_eq!(code(answer.await).await, ProblemCode::BadRequest);
    let answer = app.call(Method::PUT, path, &app.trainer, order);
    assert_eq!(code(answer.await).await, ProblemCode::Forbidden);
    let own: TrustInfo = app.get_as(&app.alice, "/trust").await;
    assert_eq!((own.name.as_str(), own.audit_rate), ("alice", 1.0));
}

#[tokio::test]
async fn names_and_reasons_that_no_database_can_keep_are_refused() {
    let app = TestApp::new().await;
    let order = async |path: &str, reason: &str| {
        let order = json!({"quarantined": true, "reason": reason}).to_string();
        app.call(Method::PUT, path, &app.operator, order).await
    };
    let nobody = order("/users/x%00/quarantine", "odd").await;
    assert_eq!(code(nobody).await, ProblemCode::NotFound);
    let look = app.look(&app.operator, "/users/x%00/trust");
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
    let alice: TrustInfo = app.get_as(&app.operator, "/users/alice/trust").await;
    assert_eq!(alice.quarantine.unwrap().reason, "Stockfish's moves");
}

#[tokio::test]
async fn no_ratings_are_fitted_of_a_run_that_is_deleted() {
    let scenario = AuditScenario::new().await;
    scenario.app.submit(1).await;
    let (app, alice) = (&scenario.app, &scenario.app.alice);
    let job = app.lease(alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    let games = pair_games(&job, 0, [Win, Loss]);
    app.hand_in(alice, &job, &games).await;
    for (method, body) in [
        (Method::PATCH, r#"{"archived": true}"#),
        (Method::DELETE, ""),
    ] {
        let done = app.call(method, "/runs/main", &app.operator, body).await;
        assert!(done.status().is_success(), "{}", done.status());
    }
    let order = ExclusionOrder {
        state: ChunkStatus::Excluded,
        reason: "test".to_owned(),
    };
    let db = &app.app.db;
    let effects = db.quarantine("alice", order, Seed(0), by("test")).await;
    assert_eq!(effects.unwrap().unwrap().stale, []);
}

/// Uploads a chunk from a stranger's address.
async fn upload_from_afar(app: &TestApp, token: &str, chunk: Vec<u8>) -> StatusCode {
    let request = Request::put(format!("/api/v1/chunks/{}", ContentHash::of(&chunk)))
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .extension(Peer([192, 0, 2, 1].into()))
        .body(Body::from(chunk))
        .unwrap();
    app.send(request).await.status()
}

#[tokio::test]
async fn nobody_fills_the_disk_with_chunks_that_are_held() {
    // One MiB of refused and held chunks an hour, of which each counts as a quarter at least.
    let limits = LimitArgs {
        upload_mib: Some(64.0),
        ..LimitArgs::default()
    };
    let doors = AccessConfig {
        registration: Registration::Open,
        limits: Limits::new(limits).into(),
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    app.submit(0).await;
    assert_eq!(app.order("/users/alice", true).await, 204);
    for (salt, token) in [(0, &app.alice), (100, &app.bob)] {
        let mut answers = Vec::new();
        for salt in salt..salt + 6 {
            let job = app.lease(token).await;
            let bytes = chunk(&job, &[selfplay(&job, 0, salt)]);
            answers.push(upload_from_afar(&app, token, bytes).await);
        }
        let last = match token == &app.alice {
            true => StatusCode::TOO_MANY_REQUESTS,
            false => StatusCode::OK,
        };
        assert_eq!(answers[..5], [StatusCode::OK; 5]);
        assert_eq!(answers[5], last);
    }
}
