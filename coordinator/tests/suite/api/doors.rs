//! Who may do what, and what is refused before anything is done.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{NewToken, Scope};
use rookery_coordinator::config::Registration;
use rookery_coordinator::store::Standing;
use serde_json::json;

use crate::support::app::{TestApp, code, params, parse, problem};
use crate::support::noon;

#[tokio::test]
async fn a_contributor_registers_and_gets_a_job_with_the_token() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let body = json!({"name": "carol", "machine": "laptop"}).to_string();
    let answer = app.call(Method::POST, "/users", "", body.clone()).await;
    let token: NewToken = parse(StatusCode::CREATED, answer).await;
    assert_eq!(
        (token.name.as_str(), &token.scopes[..]),
        ("carol", &[Scope::Contribute][..])
    );
    assert!(token.token.starts_with("rk_"));
    app.lease(&token.token).await;
    let again = app.call(Method::POST, "/users", "", body).await;
    assert_eq!(code(again).await, ProblemCode::NameTaken);
}

#[tokio::test]
async fn names_that_could_mislead_are_refused() {
    let app = TestApp::new().await;
    for name in ["", "a b", "é", "<b>", &"a".repeat(33)] {
        let answer = app
            .call(
                Method::POST,
                "/users",
                "",
                json!({"name": name}).to_string(),
            )
            .await;
        assert_eq!(code(answer).await, ProblemCode::BadRequest, "{name}");
    }
    // Another case would be the same name to a reader.
    let answer = app
        .call(Method::POST, "/users", "", r#"{"name": "ALICE"}"#)
        .await;
    assert_eq!(code(answer).await, ProblemCode::NameTaken);
}

#[tokio::test]
async fn closed_registration_turns_away() {
    let app = TestApp::with(Registration::Closed, params()).await;
    let answer = app
        .call(Method::POST, "/users", "", r#"{"name": "carol"}"#)
        .await;
    assert_eq!(code(answer).await, ProblemCode::RegistrationClosed);
}

#[tokio::test]
async fn without_a_good_token_nothing_is_done() {
    let app = TestApp::new().await;
    let unknown = format!("rk_{}", "0".repeat(64));
    for token in ["", "rk_1", unknown.as_str(), "another"] {
        let answer = app.ask(token).await;
        assert_eq!(answer.headers()[header::WWW_AUTHENTICATE], "Bearer");
        assert_eq!(code(answer).await, ProblemCode::Unauthorized, "{token:?}");
    }
    let bare = Request::post("/api/v1/jobs").body(Body::empty()).unwrap();
    assert_eq!(code(app.send(bare).await).await, ProblemCode::Unauthorized);
}

#[tokio::test]
async fn a_revoked_token_and_a_blocked_user_are_refused() {
    let app = TestApp::new().await;
    let store = &app.app.store;
    store
        .set_standing("alice", Standing::Blocked, "test", noon())
        .await
        .unwrap();
    assert_eq!(code(app.ask(&app.alice).await).await, ProblemCode::Blocked);
    store
        .set_standing("alice", Standing::Good, "test", noon())
        .await
        .unwrap();
    assert_eq!(app.ask(&app.alice).await.status(), StatusCode::NO_CONTENT);
    let token = store.tokens("alice").await.unwrap()[0].id;
    store.revoke_token(token, noon()).await.unwrap();
    assert_eq!(
        code(app.ask(&app.alice).await).await,
        ProblemCode::Unauthorized
    );
}

#[tokio::test]
async fn every_scope_opens_only_its_own_doors() {
    let app = TestApp::new().await;
    let doors = [
        (Method::POST, "/jobs", Scope::Contribute),
        (Method::GET, "/chunks", Scope::Train),
        (Method::POST, "/runs/main/metrics", Scope::Train),
        (Method::PATCH, "/runs/main", Scope::Operate),
        (Method::POST, "/matches", Scope::Operate),
        (Method::PATCH, "/users/alice", Scope::Operate),
    ];
    let tokens = [
        (Scope::Contribute, &app.alice),
        (Scope::Train, &app.trainer),
        (Scope::Operate, &app.operator),
    ];
    for (method, path, needed) in doors {
        for (scope, token) in tokens {
            let answer = app.call(method.clone(), path, token, "{}").await;
            let refused = answer.status() == StatusCode::FORBIDDEN;
            assert_eq!(refused, scope != needed, "{method} {path} with {scope:?}");
        }
    }
}

#[tokio::test]
async fn old_workers_are_told_to_update_and_nonsense_is_named() {
    let app = TestApp::new().await;
    let ask = async |body: &str| {
        problem(
            app.call(Method::POST, "/jobs", &app.alice, body.to_owned())
                .await,
        )
        .await
    };
    let request = json!({"protocol": 0, "version": "0", "worker": "w", "backend": "cpu-f32"});
    assert_eq!(
        ask(&request.to_string()).await.code,
        ProblemCode::UpdateRequired
    );
    let broken = ask("{\"protocol\": 1").await;
    assert_eq!(broken.code, ProblemCode::BadRequest);
    let unknown = json!({"protocol": 1, "version": "0", "worker": "w", "backend": "abacus"});
    let unknown = ask(&unknown.to_string()).await;
    assert_eq!(unknown.code, ProblemCode::BadRequest);
    assert!(unknown.detail.contains("abacus"), "{}", unknown.detail);
    let long = json!({"protocol": 1, "version": "0", "worker": "w".repeat(65), "backend": "mps"});
    assert!(ask(&long.to_string()).await.detail.contains("worker"));
    let run = json!({"protocol": 1, "version": "0", "worker": "w", "backend": "mps", "run": "no"});
    assert_eq!(ask(&run.to_string()).await.code, ProblemCode::NotFound);
}

#[tokio::test]
async fn unknown_addresses_and_methods_are_problems_too() {
    let app = TestApp::new().await;
    let get = |path: &str| Request::get(path).body(Body::empty()).unwrap();
    assert_eq!(
        code(app.send(get("/api/v1/nothing")).await).await,
        ProblemCode::NotFound
    );
    assert_eq!(
        code(app.send(get("/api/v1/jobs/1/heartbeat")).await).await,
        ProblemCode::MethodNotAllowed
    );
    for path in [
        "/networks/one",
        "/runs/No",
        "/matches/x",
        "/games/x",
        "/chunks/abc",
    ] {
        let answer = app
            .call(Method::GET, path, &app.trainer, Body::empty())
            .await;
        assert_eq!(code(answer).await, ProblemCode::BadRequest, "{path}");
    }
    let zeros = "0".repeat(64);
    for path in [
        "/networks/7",
        "/networks/best",
        "/runs/no",
        "/matches/1",
        "/games/1",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([format!("/chunks/{zeros}"), format!("/networks/{zeros}")])
    {
        let answer = app
            .call(Method::GET, &path, &app.trainer, Body::empty())
            .await;
        assert_eq!(code(answer).await, ProblemCode::NotFound, "{path}");
    }
}

#[tokio::test]
async fn bodies_have_limits() {
    let app = TestApp::new().await;
    let large = "x".repeat(300 << 10);
    let json = app.call(
        Method::POST,
        "/jobs",
        &app.alice,
        format!("{{\"worker\": \"{large}\"}}"),
    );
    assert_eq!(code(json.await).await, ProblemCode::TooLarge);
    let chunk = vec![0; (16 << 20) + 1];
    assert_eq!(
        code(app.upload(&app.alice, &chunk).await).await,
        ProblemCode::TooLarge
    );
}
