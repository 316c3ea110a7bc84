//! Contributors who send more than auditors can look at.

use axum::http::{Method, StatusCode};
use rookery_common::chunk::GameRecord;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{Job, Work, WorkKind};
use rookery_coordinator::background::retention::forget;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::trust::plan::plan_waiting;
use serde_json::json;

use crate::support::court::{Court, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::{chunk, selfplay};
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
    let mut court = Court::new().await;
    let (alice, bob) = (court.app.alice.clone(), court.app.bob.clone());
    let (large, _) = court.plays(&alice).await;
    for _ in 0..FLOOD {
        court.plays_some(&alice, 1).await;
    }
    assert_eq!(court.alice().await.audits_open, 200);
    let (others, _) = court.plays(&bob).await;
    // The oldest comes first, and it is still there.
    let job = court.answer(&court.auditor, &large, Same).await;
    assert!(is_of(&job, &large));
    // Bob's first has its turn before most of hers.
    plan_waiting(&court.app.app).await.unwrap();
    let mut before = 0;
    while !is_of(&court.lease(&court.auditor).await, &others) {
        before += 1;
    }
    assert!(before < 20, "{before}");
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn what_nobody_could_look_at_in_time_is_looked_at_after_a_failure() {
    let mut court = Court::new().await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(25 * 60 * 60);
    plan_waiting(&court.app.app).await.unwrap();
    assert_eq!(court.alice().await.audits_open, 0, "given up");
    court.judged(Other).await;
    assert_eq!(court.alice().await.audits_open, 1);
}

#[tokio::test]
async fn audits_wait_while_nobody_can_make_them() {
    let mut court = Court::new().await;
    let (games, _) = court.alice_plays().await;
    let app = &court.app;
    let day = async || {
        app.clock.advance_seconds(25 * 60 * 60);
        plan_waiting(&app.app).await.unwrap();
    };
    for (status, passes) in [("paused", true), ("open", false)] {
        set_status(&court, status).await;
        if passes {
            day().await;
        }
        plan_waiting(&app.app).await.unwrap();
        assert_eq!(court.alice().await.audits_open, 1, "{status}");
    }
    // The coordinator is away for as long, and nobody is heard.
    app.clock.advance_seconds(25 * 60 * 60);
    let now = app.clock.now();
    app.app.db.outlast_outage(now).await.unwrap();
    plan_waiting(&app.app).await.unwrap();
    assert_eq!(court.alice().await.audits_open, 1);
    court.answer(&court.auditor, &games, Same).await;
    assert_eq!(court.alice().await.audits_passed, 1);
}

/// Pauses the run, or lets it go on.
async fn set_status(court: &Court, status: &str) {
    let patch = json!({"status": status}).to_string();
    let (app, operator) = (&court.app, &court.app.operator);
    let done = app.call(Method::PATCH, "/runs/main", operator, patch).await;
    assert_eq!(done.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_audit_whose_job_was_forgotten_in_a_long_pause_is_given_to_volunteers() {
    let mut court = Court::new().await;
    let bob = court.app.bob.clone();
    court.proven(&[&bob]).await;
    court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    assert_eq!(court.kind(&bob).await, WorkKind::Audit);
    set_status(&court, "paused").await;
    court.app.clock.advance_seconds(31 * 24 * 60 * 60);
    assert_eq!(forget(&court.app.app).await.unwrap().jobs, 1);
    set_status(&court, "open").await;
    court.app.clock.advance_seconds(PATIENCE);
    // Nobody is drawn who was not heard lately.
    assert_eq!(court.kind(&bob).await, WorkKind::SelfPlay);
    assert_eq!(court.kind(&bob).await, WorkKind::Audit);
    court.app.assert_consistent().await;
}

/// Takes a job of a run.
async fn lease_in(court: &Court, run: &str, token: &str) -> Job {
    court.app.lease_with(token, &json!({"run": run})).await
}

#[tokio::test]
async fn a_run_in_which_nobody_audits_holds_up_no_other() {
    let court = Court::new().await;
    let (app, alice) = (&court.app, &court.app.alice);
    app.create_run("other").await;
    let file = network_file(0);
    let path = format!("/networks/{}?run=other", ContentHash::of(&file));
    let added = app.call(Method::PUT, &path, &app.trainer, file);
    assert_eq!(added.await.status(), StatusCode::CREATED);
    for (run, chunks) in [("other", 20), ("main", 1)] {
        for salt in 1..=chunks {
            let job = lease_in(&court, run, alice).await;
            let bytes = chunk(&job, &[selfplay(&job, 0, salt)]);
            app.accepted(alice, &bytes).await;
        }
        plan_waiting(&app.app).await.unwrap();
    }
    let job = lease_in(&court, "main", &court.auditor).await;
    assert_eq!(job.work.kind(), WorkKind::Audit);
}
