//! Tokens that another process revokes: what they do cannot outlive them.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use futures_util::stream;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::people::{NewToken, Scope};
use rookery_coordinator::db::{DbError, TokenDraft};
use rookery_coordinator::tokens::Token;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::app::{TestApp, code, parse};
use crate::support::audit_scenario::AuditScenario;
use crate::support::games::Found::Other;
use crate::support::games::audit;
use crate::support::{by, noon};

/// Revokes the newest token of a user, as the command line or another coordinator does: the
/// coordinator that is asked next is not told.
async fn revoke_elsewhere(app: &TestApp, user: &str) {
    let elsewhere = app.database.open().await;
    let tokens = elsewhere.tokens(user).await.unwrap();
    let revoked = elsewhere.revoke_token(tokens[0].id, by("test"));
    revoked.await.unwrap();
    elsewhere.close().await;
}

fn draft() -> TokenDraft {
    TokenDraft {
        hash: Token::generate().unwrap().hash(),
        scopes: vec![Scope::Contribute],
        machine: String::new(),
    }
}

#[tokio::test]
async fn a_revoked_token_neither_makes_tokens_nor_gives_orders_anywhere() {
    let app = TestApp::new().await;
    let second = app.call(Method::POST, "/tokens", &app.alice, "{}").await;
    let second: NewToken = parse(StatusCode::CREATED, second).await;
    let rotation = format!("/tokens/{}/rotation", second.id.unwrap());
    // Both are remembered here.
    for token in [&second.token, &app.operator] {
        app.holder(token).await;
    }
    revoke_elsewhere(&app, "alice").await;
    revoke_elsewhere(&app, "operator").await;
    for (method, path, token, body) in [
        (Method::GET, "/tokens", &second.token, ""),
        (Method::POST, "/tokens", &second.token, "{}"),
        (Method::POST, &*rotation, &second.token, ""),
        (
            Method::PATCH,
            "/users/bob",
            &app.operator,
            r#"{"blocked": true}"#,
        ),
    ] {
        let refused = app.call(method, path, token, body).await;
        assert_eq!(code(refused).await, ProblemCode::Unauthorized, "{path}");
    }
    assert_eq!(app.app.db.tokens("alice").await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_token_that_was_revoked_meanwhile_makes_no_other() {
    let app = TestApp::new().await;
    let db = &app.app.db;
    let alice = app.holder(&app.alice).await;
    revoke_elsewhere(&app, "alice").await;
    let made = db.issue_token(&alice, draft(), noon()).await;
    assert!(matches!(made, Err(DbError::Revoked)), "{made:?}");
    let changed = db.change_token(&alice, alice.token, draft(), noon());
    let changed = changed.await;
    assert!(matches!(changed, Err(DbError::Revoked)), "{changed:?}");
    assert_eq!(db.tokens_of(alice.user).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_whose_body_comes_slowly_is_not_done_for_a_token_revoked_meanwhile() {
    let app = TestApp::new().await;
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go_on) = (begun.clone(), go_on.clone());
        Body::from_stream(stream::once(async move {
            begun.notify_one();
            go_on.notified().await;
            Ok::<_, Infallible>(json!({"blocked": true}).to_string())
        }))
    };
    let order = app.call(Method::PATCH, "/users/bob", &app.operator, slow);
    let meanwhile = async {
        begun.notified().await;
        revoke_elsewhere(&app, "operator").await;
        go_on.notify_one();
    };
    let (refused, ()) = tokio::join!(order, meanwhile);
    assert_eq!(code(refused).await, ProblemCode::Unauthorized);
    let bob = app.look(&app.bob, "/trust");
    assert_eq!(bob.await.status(), StatusCode::OK, "bob is not blocked");
}

#[tokio::test]
async fn an_auditor_whose_token_was_revoked_convicts_nobody() {
    let scenario = AuditScenario::new().await;
    let (games, _) = scenario.alice_plays().await;
    let job = scenario.lease(&scenario.auditor).await;
    assert_eq!(job.work.kind(), WorkKind::Audit);
    revoke_elsewhere(&scenario.app, "auditor").await;
    // Taken as a newcomer's, as long as the token is remembered.
    scenario
        .app
        .upload(&scenario.auditor, &audit(&job, &games, Other))
        .await;
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (1, 0));
}
