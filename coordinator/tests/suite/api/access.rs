//! Who may do what, and what is refused before anything is done.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{ContributorDetail, NewToken, Scope};
use rookery_coordinator::config::{AccessConfig, Origins, Registration};
use rookery_coordinator::db::{Standing, UserChange};
use serde_json::json;

use crate::support::app::{TestApp, code, params, parse, problem};
use crate::support::by;

#[tokio::test]
async fn a_contributor_registers_and_gets_a_job_with_the_token() {
    let app = TestApp::with_network().await;
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
    let long = "a".repeat(33);
    for name in [
        "",
        "a b",
        "<b>",
        &long,
        "coordinator",
        "Audits",
        "\u{200b}",
        "ann\u{200b}",
        "\u{202e}nna",
        "аlice", // Cyrillic а
        "admin",
        "аdmin",
        "Adrnin",
        "0perator",
        "auditor",
        "rookery",
        "deleted-1",
        "YOUR-NAME",
    ] {
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
    // So would one that looks the same.
    for name in ["aIice", "a1ice", "B0b"] {
        let body = json!({"name": name}).to_string();
        let answer = app.call(Method::POST, "/users", "", body).await;
        let refused = problem(answer).await;
        assert_eq!(refused.code, ProblemCode::NameTaken, "{name}");
        assert!(refused.detail.contains("looks like"), "{}", refused.detail);
    }
    // One who had such a name before it was refused is found by it.
    let scopes = [Scope::Contribute];
    let audits = crate::support::app::user(&app.app, "audits", &scopes).await;
    let body = json!({"blocked": true}).to_string();
    let blocked = app
        .call(Method::PATCH, "/users/audits", &app.operator, body)
        .await;
    assert_eq!(blocked.status(), StatusCode::NO_CONTENT);
    assert_eq!(code(app.ask(&audits).await).await, ProblemCode::Blocked);
}

#[tokio::test]
async fn names_are_of_any_script_and_stand_in_addresses() {
    let app = TestApp::with_network().await;
    for (sent, kept, address) in [
        ("Åse", "Åse", "%C3%85se"),
        ("A\u{30a}sa", "Åsa", "%C3%85sa"),
        ("жанна", "жанна", "%D0%B6%D0%B0%D0%BD%D0%BD%D0%B0"),
        ("山田", "山田", "%E5%B1%B1%E7%94%B0"),
        ("אורי", "אורי", "%D7%90%D7%95%D7%A8%D7%99"),
    ] {
        let body = json!({"name": sent}).to_string();
        let answer = app.call(Method::POST, "/users", "", body).await;
        let token: NewToken = parse(StatusCode::CREATED, answer).await;
        assert_eq!(token.name, kept);
        app.lease(&token.token).await;
        let found: ContributorDetail = app.get(&format!("/contributors/{address}")).await;
        assert_eq!(found.info.name, kept);
        let page = app
            .page(&format!("/runs/main/contributors/{address}"))
            .await;
        assert!(
            page.contains(kept) && page.contains(&format!("contributor={address}")),
            "{page}"
        );
        app.page(&format!("/runs/main/games?contributor={address}"))
            .await;
        assert!(
            app.page("/runs/main")
                .await
                .contains(&format!("/contributors/{address}"))
        );
    }
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
    let db = &app.app.db;
    db.change_user("alice", UserChange::standing(Standing::Blocked), by("test"))
        .await
        .unwrap();
    assert_eq!(code(app.ask(&app.alice).await).await, ProblemCode::Blocked);
    db.change_user("alice", UserChange::standing(Standing::Good), by("test"))
        .await
        .unwrap();
    assert_eq!(app.ask(&app.alice).await.status(), StatusCode::NO_CONTENT);
    let token = db.tokens("alice").await.unwrap()[0].id;
    db.revoke_token(token, by("test")).await.unwrap();
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
        (Method::POST, "/networks/1/rejection", Scope::Operate),
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
async fn an_old_worker_learns_that_it_must_update_and_errors_name_bad_fields() {
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
    let unknown = json!({"protocol": 2, "version": "0", "worker": "w", "backend": "abacus"});
    let unknown = ask(&unknown.to_string()).await;
    assert_eq!(unknown.code, ProblemCode::BadRequest);
    assert!(unknown.detail.contains("abacus"), "{}", unknown.detail);
    let long = json!({"protocol": 2, "version": "0", "worker": "w".repeat(65), "backend": "mps"});
    assert!(ask(&long.to_string()).await.detail.contains("worker"));
    // Pages and the operator's terminal show both.
    for (what, worker, version) in [("worker", "\u{202e}w", "0"), ("version", "w", "\u{2067}0")] {
        let odd = json!({"protocol": 2, "version": version, "worker": worker, "backend": "mps"});
        assert!(ask(&odd.to_string()).await.detail.contains(what));
    }
    let run = json!({"protocol": 2, "version": "0", "worker": "w", "backend": "mps", "run": "no"});
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
        let answer = app.look(&app.trainer, path).await;
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
        let answer = app.look(&app.trainer, &path).await;
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
    let name = "x".repeat(5 << 10);
    let registration = json!({"name": "carol", "machine": name}).to_string();
    let registered = app.call(Method::POST, "/users", "", registration);
    assert_eq!(code(registered.await).await, ProblemCode::TooLarge);
    let chunk = vec![0; (16 << 20) + 1];
    assert_eq!(
        code(app.upload(&app.alice, &chunk).await).await,
        ProblemCode::TooLarge
    );
}

#[tokio::test]
async fn answers_tell_browsers_to_run_and_load_nothing() {
    let app = TestApp::new().await;
    for (path, policy) in [
        ("/api/v1/runs", "default-src 'none'; frame-ancestors 'none'"),
        (
            "/api/v1/nothing",
            "default-src 'none'; frame-ancestors 'none'",
        ),
        ("/", "script-src 'self'; style-src 'self'"),
    ] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = app.send(request).await;
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let found = header("content-security-policy");
        for part in [policy, "default-src 'none'", "frame-ancestors 'none'"] {
            assert!(found.contains(part), "{found}");
        }
        for wide in ["unsafe", "*", "http"] {
            assert!(!found.contains(wide), "{found}");
        }
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("referrer-policy"), "no-referrer");
    }
}

/// What a browser learns that asks on behalf of a page at `origin`.
async fn allowed_origin(app: &TestApp, method: Method, origin: &str) -> Option<String> {
    let request = Request::builder()
        .method(method)
        .uri("/api/v1/runs")
        .header(header::ORIGIN, origin)
        .header(header::ACCESS_CONTROL_REQUEST_METHOD, "GET")
        .body(Body::empty())
        .unwrap();
    let answer = app.send(request).await;
    assert!(
        !answer
            .headers()
            .contains_key("access-control-allow-credentials")
    );
    let allowed = answer.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    allowed.map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn pages_of_other_sites_read_only_if_the_operator_names_them() {
    let friend = "https://friend.example";
    let with = async |origins: &[&str]| {
        let origins: Vec<String> = origins.iter().map(ToString::to_string).collect();
        let doors = AccessConfig {
            origins: Origins::read(&origins).unwrap(),
            ..AccessConfig::default()
        };
        TestApp::with(doors, params()).await
    };
    let closed = with(&[]).await;
    let listed = with(&[friend]).await;
    let open = with(&["*"]).await;
    for method in [Method::GET, Method::OPTIONS] {
        let ask = async |app, origin| allowed_origin(app, method.clone(), origin).await;
        assert_eq!(ask(&closed, friend).await, None);
        assert_eq!(ask(&listed, friend).await.as_deref(), Some(friend));
        assert_eq!(ask(&listed, "https://other.example").await, None);
        assert_eq!(ask(&open, friend).await.as_deref(), Some("*"));
    }
    for text in ["friend.example", "https://", "https://a/b", "https://*"] {
        assert!(Origins::read(&[text.to_owned()]).is_err(), "{text}");
    }
}

#[tokio::test]
async fn the_name_of_a_request_is_the_clients_if_it_is_a_name() {
    let app = TestApp::new().await;
    let name = async |given: &str| {
        let request = Request::get("/api/v1/nothing").header("x-request-id", given);
        let answer = app.send(request.body(Body::empty()).unwrap()).await;
        problem(answer).await.request_id.unwrap()
    };
    assert_eq!(name("my-request.1").await, "my-request.1");
    for bad in ["a b", "<script>", &"a".repeat(65)] {
        assert_ne!(name(bad).await, bad);
    }
}
