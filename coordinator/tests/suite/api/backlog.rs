//! Contributors who send more than auditors can look at.

use axum::http::{Method, StatusCode};
use rookery_common::chunk::GameRecord;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Job, Work, WorkKind};
use rookery_coordinator::background::retention::prune;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::trust::plan::plan_waiting;
use serde_json::json;

use crate::support::audit_scenario::{AuditScenario, GAMES, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::selfplay;
use crate::support::networks::network_file;

/// More chunks than audits of one contributor are open at once.
const FLOOD: usize = 220;

/// Whether an audit is of one of these games.
fn is_of(job: &Job, games: &[GameRecord]) -> bool {
    let Work::Audit { tasks, .. } = &job.work else {
        panic!("no audit: {:?}", job.work)
    };
    games.iter().any(|game| game.seed == tasks[0].seed)
}

#[tokio::test]
async fn a_flood_of_small_chunks_hides_no_large_one_and_holds_up_nobody() {
    let scenario = AuditScenario::new().await;
    let (alice, bob) = (&scenario.app.alice, &scenario.app.bob);
    let (large, _) = scenario.plays(alice).await;
    for _ in 0..FLOOD {
        scenario.plays_some(alice, 1).await;
    }
    assert_eq!(scenario.alice().await.audits_open, 200);
    let (others, _) = scenario.plays(bob).await;
    // The oldest comes first, and it is still there.
    let job = scenario.answer(&scenario.auditor, &large, Same).await;
    assert!(is_of(&job, &large));
    // Bob's first has its turn before most of hers.
    plan_waiting(&scenario.app.app).await.unwrap();
    let mut before = 0;
    while !is_of(&scenario.lease(&scenario.auditor).await, &others) {
        before += 1;
    }
    assert!(before < 20, "{before}");
    scenario.app.assert_consistent().await;
}

/// Takes a job as a worker that claims to be fast: its games.
async fn boasts(scenario: &AuditScenario, token: &str) -> u32 {
    let claims = json!({"concurrent_games": 512, "evals_per_second": 1e9});
    scenario.app.lease_with(token, &claims).await.work.games()
}

#[tokio::test]
async fn newcomers_get_jobs_of_the_runs_size_while_somebody_audits() {
    let scenario = AuditScenario::new().await;
    let alice = &scenario.app.alice;
    assert_eq!(boasts(&scenario, alice).await, 16 * GAMES, "nobody audits");
    scenario.come(&[&scenario.auditor]).await;
    assert_eq!(boasts(&scenario, alice).await, GAMES);
    scenario.proven(&[alice]).await;
    assert_eq!(boasts(&scenario, alice).await, 16 * GAMES);
}

#[tokio::test]
async fn what_nobody_could_look_at_in_time_is_looked_at_after_a_failure() {
    let scenario = AuditScenario::new().await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(25 * 60 * 60);
    plan_waiting(&scenario.app.app).await.unwrap();
    assert_eq!(scenario.alice().await.audits_open, 0, "given up");
    scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.audits_open, 1);
}

#[tokio::test]
async fn audits_wait_while_nobody_can_make_them() {
    let scenario = AuditScenario::new().await;
    let (games, _) = scenario.alice_plays().await;
    let app = &scenario.app;
    let day = async || {
        app.clock.advance_seconds(25 * 60 * 60);
        plan_waiting(&app.app).await.unwrap();
    };
    for (status, passes) in [("paused", true), ("open", false)] {
        set_status(&scenario, status).await;
        if passes {
            day().await;
        }
        plan_waiting(&app.app).await.unwrap();
        assert_eq!(scenario.alice().await.audits_open, 1, "{status}");
    }
    // The coordinator is away for as long, and nobody is heard.
    app.clock.advance_seconds(25 * 60 * 60);
    let now = app.clock.now();
    app.app.db.outlast_outage(now).await.unwrap();
    plan_waiting(&app.app).await.unwrap();
    assert_eq!(scenario.alice().await.audits_open, 1);
    scenario.answer(&scenario.auditor, &games, Same).await;
    assert_eq!(scenario.alice().await.audits_passed, 1);
}

/// Pauses the run, or lets it go on.
async fn set_status(scenario: &AuditScenario, status: &str) {
    scenario.app.patch_run(&json!({"status": status})).await;
}

#[tokio::test]
async fn an_audit_whose_job_was_forgotten_in_a_long_pause_is_given_to_volunteers() {
    let scenario = AuditScenario::new().await;
    let bob = &scenario.app.bob;
    scenario.proven(&[bob]).await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    assert_eq!(scenario.kind(bob).await, WorkKind::Audit);
    set_status(&scenario, "paused").await;
    scenario.app.clock.advance_seconds(31 * 24 * 60 * 60);
    assert_eq!(prune(&scenario.app.app).await.unwrap().jobs, 1);
    set_status(&scenario, "open").await;
    scenario.app.clock.advance_seconds(PATIENCE);
    // Nobody is drawn who was not heard lately.
    assert_eq!(scenario.kind(bob).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(bob).await, WorkKind::Audit);
    scenario.app.assert_consistent().await;
}

async fn lease_in(scenario: &AuditScenario, run: &str, token: &str) -> Job {
    scenario.app.lease_with(token, &json!({"run": run})).await
}

#[tokio::test]
async fn a_run_in_which_nobody_audits_holds_up_no_other() {
    let scenario = AuditScenario::new().await;
    let (app, alice) = (&scenario.app, &scenario.app.alice);
    app.create_run("other").await;
    let file = network_file(0);
    let path = format!("/networks/{}?run=other", ContentHash::of(&file));
    let added = app.call(Method::PUT, &path, &app.trainer, file);
    assert_eq!(added.await.status(), StatusCode::CREATED);
    for (run, chunks) in [("other", 20), ("main", 1)] {
        for salt in 1..=chunks {
            let job = lease_in(&scenario, run, alice).await;
            app.hand_in(alice, &job, &[selfplay(&job, 0, salt)]).await;
        }
        plan_waiting(&app.app).await.unwrap();
    }
    let job = lease_in(&scenario, "main", &scenario.auditor).await;
    assert_eq!(job.work.kind(), WorkKind::Audit);
}
