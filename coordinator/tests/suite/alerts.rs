//! What the coordinator alerts its operator to, and where that is posted.

use axum::Json;
use axum::http::StatusCode;
use axum::routing::post;
use rookery_coordinator::alerts::{AlertKind, AlertState};
use rookery_coordinator::background::alerts::Watch;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{broadcast, mpsc};

use crate::support::app::TestApp;
use crate::support::audit_scenario::AuditScenario;
use crate::support::database::TestDatabase;
use crate::support::games::Found::Other;
use crate::support::games::selfplay;
use crate::support::s3::{S3, S3Fault};

type Changes = broadcast::Receiver<rookery_coordinator::alerts::Alert>;

/// What was announced until now.
fn announced(changes: &mut Changes) -> Vec<(AlertKind, String, AlertState)> {
    std::iter::from_fn(|| changes.try_recv().ok())
        .map(|alert| (alert.kind, alert.subject, alert.state))
        .collect()
}

#[tokio::test]
async fn whom_audits_put_into_quarantine_is_an_alert_until_cleared() {
    let scenario = AuditScenario::new().await;
    let (_, mut changes) = scenario.app.app.alerts.subscribe();
    let (mut watch, mut later) = (Watch::default(), Watch::default());
    watch.look(&scenario.app.app).await.unwrap();
    scenario.judged(Other).await;
    watch.look(&scenario.app.app).await.unwrap();
    assert_eq!(
        announced(&mut changes),
        [],
        "one failed audit may be an accident"
    );
    scenario.judged(Other).await;
    // What an operator orders is no news for operators.
    assert_eq!(scenario.app.order("/users/bob", true).await, 204);
    for _ in 0..2 {
        watch.look(&scenario.app.app).await.unwrap();
    }
    let alice = |state| (AlertKind::Quarantine, "alice".to_owned(), state);
    assert_eq!(announced(&mut changes), [alice(AlertState::Firing)]);
    // As after a restart of the coordinator.
    later.look(&scenario.app.app).await.unwrap();
    assert_eq!(announced(&mut changes), []);
    assert_eq!(scenario.app.order("/users/alice", false).await, 204);
    later.look(&scenario.app.app).await.unwrap();
    assert_eq!(announced(&mut changes), [alice(AlertState::Resolved)]);
}

#[tokio::test]
async fn an_open_run_without_games_is_an_alert_until_one_comes_in() {
    let app = TestApp::with_network().await;
    let (_, mut changes) = app.app.alerts.subscribe();
    let mut watch = Watch::default();
    let mut look = async |minutes: i64| {
        app.clock.advance_seconds(minutes * 60);
        watch.look(&app.app).await.unwrap();
        announced(&mut changes)
    };
    let main = |state| (AlertKind::NoGames, "main".to_owned(), state);
    assert_eq!(look(0).await, [], "the coordinator has only begun");
    assert_eq!(look(29).await, []);
    assert_eq!(look(1).await, [main(AlertState::Firing)]);
    assert_eq!(look(5).await, []);
    let job = app.lease(&app.alice).await;
    app.hand_in(&app.alice, &job, &[selfplay(&job, 0, 1)]).await;
    assert_eq!(look(0).await, [main(AlertState::Resolved)]);
    app.patch_run(&json!({"status": "paused"})).await;
    assert_eq!(
        look(60).await,
        [],
        "nobody wants games of a run that is paused"
    );
    app.patch_run(&json!({"status": "open"})).await;
    assert_eq!(look(0).await, [], "it has only been opened again");
    assert_eq!(look(30).await, [main(AlertState::Firing)]);
}

/// The program, with a store that fails and then works.
#[tokio::test]
async fn the_program_posts_to_the_webhook_of_alerts_when_its_store_fails() {
    let (database, s3) = (TestDatabase::new().await, S3::start().await);
    let (sent, mut got) = mpsc::unbounded_channel::<Value>();
    let handler = async move |Json(body): Json<Value>| {
        sent.send(body).unwrap();
        StatusCode::NO_CONTENT
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/hook", post(handler));
    tokio::spawn(async move { axum::serve(listener, router).await });
    s3.set_fault(S3Fault::Failing);
    let _program = Command::new(env!("CARGO_BIN_EXE_rookery-coordinator"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("ROOKERY_DATABASE", database.url())
        .env("ROOKERY_STORAGE", S3::url())
        .env("ROOKERY_ALERTS_WEBHOOK", hook)
        .envs(s3.settings())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let first = got.recv().await.unwrap();
    let text = first["content"].as_str().unwrap();
    assert!(
        text.starts_with("Alert: The store cannot be used: "),
        "{text}"
    );
    s3.set_fault(S3Fault::None);
    let second = got.recv().await.unwrap();
    let text = second["content"].as_str().unwrap();
    assert!(
        text.starts_with("Resolved: The store cannot be used: "),
        "{text}"
    );
}
