//! Accounts: invitations, one's own tokens, and what operators did.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::people::{NewToken, OperatorLogPage, Scope, TokenEntry};
use rookery_coordinator::config::Registration;
use rookery_coordinator::db::{Actor, InvitationDraft, TokenDraft};
use rookery_coordinator::tokens::{InvitationCode, Token};
use serde_json::json;

use crate::support::app::{TestApp, code, params, parse};
use crate::support::{by, noon};

async fn invite(app: &TestApp, uses: u32, expires_at: Option<Timestamp>) -> (i64, String) {
    let code = InvitationCode::generate().unwrap();
    let draft = InvitationDraft {
        hash: code.hash(),
        note: "for the club".to_owned(),
        uses,
        expires_at,
    };
    let id = app.app.db.create_invitation(draft, by("operator"));
    (id.await.unwrap(), code.reveal().to_owned())
}

async fn register(app: &TestApp, name: &str, invitation: Option<&str>) -> Response {
    let body = json!({"name": name, "invitation": invitation}).to_string();
    app.call(Method::POST, "/users", "", body).await
}

#[tokio::test]
async fn an_invitation_admits_as_many_as_it_says() {
    let app = TestApp::with(Registration::Invitation, params()).await;
    let (id, invitation) = invite(&app, 2, None).await;
    for bad in [
        None,
        Some(""),
        Some("ri_00"),
        Some(&*format!("ri_{}", "0".repeat(32))),
    ] {
        let refused = code(register(&app, "carol", bad).await).await;
        assert_eq!(refused, ProblemCode::InvitationNeeded, "{bad:?}");
    }
    let answer = register(&app, "carol", Some(&invitation)).await;
    let token: NewToken = parse(StatusCode::CREATED, answer).await;
    app.submit(0).await;
    app.lease(&token.token).await;
    // A name that is taken costs no use.
    let taken = code(register(&app, "Carol", Some(&invitation)).await).await;
    assert_eq!(taken, ProblemCode::NameTaken);
    let typed = invitation.to_uppercase().replace("RI_", "ri_");
    let dave = register(&app, "dave", Some(&typed)).await;
    assert_eq!(dave.status(), StatusCode::CREATED);
    let used_up = code(register(&app, "erin", Some(&invitation)).await).await;
    assert_eq!(used_up, ProblemCode::InvitationNeeded);
    let list = app.app.db.invitations().await.unwrap();
    assert_eq!((list[0].id, list[0].uses, list[0].used), (id, 2, 2));
}

#[tokio::test]
async fn invitations_expire_and_are_revoked() {
    let app = TestApp::with(Registration::Invitation, params()).await;
    let until = noon() + SignedDuration::from_secs(10);
    let (_, short) = invite(&app, 5, Some(until)).await;
    let (id, revoked) = invite(&app, 5, None).await;
    assert_eq!(
        register(&app, "u1", Some(&short)).await.status(),
        StatusCode::CREATED
    );
    assert_eq!(
        register(&app, "u2", Some(&revoked)).await.status(),
        StatusCode::CREATED
    );
    app.clock.advance_seconds(10);
    let now = app.app.clock.now();
    let db = &app.app.db;
    db.revoke_invitation(id, Actor::new("operator", now))
        .await
        .unwrap();
    assert!(
        db.revoke_invitation(999, Actor::new("operator", now))
            .await
            .is_err()
    );
    for (invitation, why) in [(&short, "expired"), (&revoked, "revoked")] {
        let answer = register(&app, "u3", Some(invitation)).await;
        let problem = crate::support::app::problem(answer).await;
        assert_eq!(problem.code, ProblemCode::InvitationNeeded);
        assert!(problem.detail.contains(why), "{problem}");
    }
}

async fn tokens(app: &TestApp, token: &str) -> Vec<TokenEntry> {
    app.get_as(token, "/tokens").await
}

async fn make(app: &TestApp, token: &str, body: serde_json::Value) -> Response {
    app.call(Method::POST, "/tokens", token, body.to_string())
        .await
}

#[tokio::test]
async fn an_owner_lists_makes_changes_and_revokes_tokens() {
    let app = TestApp::new().await;
    let answer = make(&app, &app.alice, json!({"machine": "laptop"})).await;
    let laptop: NewToken = parse(StatusCode::CREATED, answer).await;
    assert_eq!(laptop.scopes, [Scope::Contribute]);
    let list = tokens(&app, &laptop.token).await;
    let shown: Vec<_> = list
        .iter()
        .map(|t| (t.machine.as_str(), t.in_use))
        .collect();
    assert_eq!(shown, [("laptop", true), ("test", false)]);
    let path = format!("/tokens/{}/rotation", laptop.id.unwrap());
    let answer = app.call(Method::POST, &path, &app.alice, "").await;
    let rotated: NewToken = parse(StatusCode::CREATED, answer).await;
    assert_ne!(rotated.token, laptop.token);
    let old = app.look(&laptop.token, "/tokens").await;
    assert_eq!(code(old).await, ProblemCode::Unauthorized);
    let list = tokens(&app, &rotated.token).await;
    let shown: Vec<_> = list
        .iter()
        .map(|t| (t.machine.as_str(), t.revoked_at.is_some()))
        .collect();
    let expected = [("laptop", false), ("test", false), ("laptop", true)];
    assert_eq!(shown, expected, "valid ones first, the newest first");
    let again = app.call(Method::POST, &path, &app.alice, "").await;
    assert_eq!(code(again).await, ProblemCode::Conflict);
    let path = format!("/tokens/{}", rotated.id.unwrap());
    let gone = app.call(Method::DELETE, &path, &rotated.token, "").await;
    assert_eq!(gone.status(), StatusCode::NO_CONTENT);
    let refused = app.look(&rotated.token, "/tokens").await;
    assert_eq!(code(refused).await, ProblemCode::Unauthorized);
    let list = tokens(&app, &app.alice).await;
    assert_eq!(
        list.iter()
            .filter(|token| token.revoked_at.is_none())
            .count(),
        1
    );
    for (body, expected) in [
        (json!({"machine": "x".repeat(65)}), ProblemCode::BadRequest),
        (json!({"machine": "\u{202e}x"}), ProblemCode::BadRequest),
        (json!({"scopes": []}), ProblemCode::BadRequest),
        (json!({"scopes": ["rule"]}), ProblemCode::BadRequest),
    ] {
        assert_eq!(code(make(&app, &app.alice, body).await).await, expected);
    }
}

#[tokio::test]
async fn nobody_fills_the_ledger_with_tokens() {
    let app = TestApp::new().await;
    let answer = make(&app, &app.alice, json!({"machine": "last"})).await;
    let last: NewToken = parse(StatusCode::CREATED, answer).await;
    let db = &app.app.db;
    let alice = app.holder(&app.alice).await;
    for number in 2..200 {
        let draft = TokenDraft {
            hash: Token::generate().unwrap().hash(),
            scopes: vec![Scope::Contribute],
            machine: format!("machine {number}"),
        };
        db.issue_token(&alice, draft, noon()).await.unwrap();
    }
    let path = format!("/tokens/{}", last.id.unwrap());
    let rotation = format!("{path}/rotation");
    let rotate = async || app.call(Method::POST, &rotation, &app.alice, "").await;
    for refused in [make(&app, &app.alice, json!({})).await, rotate().await] {
        let problem = crate::support::app::problem(refused).await;
        assert_eq!(problem.code, ProblemCode::Conflict);
        assert!(problem.detail.contains("24 hours"), "{problem}");
    }
    let bobs = make(&app, &app.bob, json!({})).await;
    assert_eq!(bobs.status(), StatusCode::CREATED, "others may");
    app.clock.advance_seconds(24 * 60 * 60);
    assert_eq!(rotate().await.status(), StatusCode::CREATED);
    // What is revoked is not revoked again.
    let acts = app.operator_log().await.entries.len();
    let gone = app.call(Method::DELETE, &path, &app.alice, "");
    assert_eq!(gone.await.status(), StatusCode::NO_CONTENT);
    assert_eq!(app.operator_log().await.entries.len(), acts);
}

#[tokio::test]
async fn a_token_reaches_only_what_it_may_do_itself() {
    let app = TestApp::new().await;
    // An operator who also contributes has a token for that.
    let answer = make(&app, &app.operator, json!({"scopes": ["operate"]})).await;
    let second: NewToken = parse(StatusCode::CREATED, answer).await;
    for scopes in [json!(["operate"]), json!(["contribute", "train"])] {
        let refused = make(&app, &app.alice, json!({"scopes": scopes})).await;
        assert_eq!(code(refused).await, ProblemCode::Forbidden);
    }
    let id = second.id.unwrap();
    // Somebody else's token is not there, neither to be seen nor to be touched.
    assert!(
        tokens(&app, &app.alice)
            .await
            .iter()
            .all(|token| token.id != id)
    );
    for (method, path) in [
        (Method::DELETE, format!("/tokens/{id}")),
        (Method::POST, format!("/tokens/{id}/rotation")),
    ] {
        let refused = app.call(method, &path, &app.alice, "").await;
        assert_eq!(code(refused).await, ProblemCode::NotFound);
    }
    // Nor is one of the same user that may do more.
    let db = &app.app.db;
    let narrow = Token::generate().unwrap();
    let draft = TokenDraft {
        hash: narrow.hash(),
        scopes: vec![Scope::Contribute],
        machine: "worker".to_owned(),
    };
    let added = db.add_token("operator", draft, by("operator"));
    added.await.unwrap();
    assert_eq!(tokens(&app, narrow.reveal()).await.len(), 1);
    let path = format!("/tokens/{id}");
    let refused = app.call(Method::DELETE, &path, narrow.reveal(), "").await;
    assert_eq!(code(refused).await, ProblemCode::NotFound);
}

#[tokio::test]
async fn tokens_that_reach_far_are_in_the_operator_log_and_plain_ones_are_not() {
    let app = TestApp::new().await;
    let before = app.operator_log().await.entries.len();
    let carol = register(&app, "carol", None).await;
    assert_eq!(carol.status(), StatusCode::CREATED);
    let plain = make(&app, &app.alice, json!({"machine": "laptop"})).await;
    let plain: NewToken = parse(StatusCode::CREATED, plain).await;
    let path = format!("/tokens/{}/rotation", plain.id.unwrap());
    let answer = app.call(Method::POST, &path, &app.alice, "");
    let rotated: NewToken = parse(StatusCode::CREATED, answer.await).await;
    let path = format!("/tokens/{}", rotated.id.unwrap());
    let gone = app.call(Method::DELETE, &path, &app.alice, "");
    assert_eq!(gone.await.status(), StatusCode::NO_CONTENT);
    assert_eq!(app.operator_log().await.entries.len(), before);
    let answer = make(&app, &app.operator, json!({"scopes": ["operate"]})).await;
    let far: NewToken = parse(StatusCode::CREATED, answer).await;
    let first = far.id.unwrap();
    let path = format!("/tokens/{first}/rotation");
    let answer = app.call(Method::POST, &path, &app.operator, "");
    let rotated: NewToken = parse(StatusCode::CREATED, answer.await).await;
    let second = rotated.id.unwrap();
    let entries = app.operator_log().await.entries;
    let shown: Vec<_> = entries[..entries.len() - before]
        .iter()
        .map(|act| (&*act.actor, &*act.action, &*act.subject, &*act.detail))
        .collect();
    let (made, revoked) = (format!("token {first}: operate"), first.to_string());
    let changed = format!("token {second} in place of {first}: operate");
    let expected = [
        ("operator", "rotate-token", "operator", &*changed),
        ("operator", "revoke-token", &*revoked, ""),
        ("operator", "add-token", "operator", &*made),
    ];
    assert_eq!(shown, expected);
    // What others do to a plain token is noted.
    let plain = tokens(&app, &app.alice).await[0].id;
    let revoked = app.app.db.revoke_token(plain, by("operator"));
    revoked.await.unwrap();
    let newest = &app.operator_log().await.entries[0];
    let shown = (&*newest.action, &*newest.subject);
    assert_eq!(shown, ("revoke-token", &*plain.to_string()));
}

#[tokio::test]
async fn to_clear_somebody_who_is_not_held_is_not_in_the_operator_log() {
    let app = TestApp::new().await;
    let acts_after = async |quarantined: bool| {
        assert_eq!(app.order("/users/bob", quarantined).await, 204);
        app.operator_log().await.entries.len()
    };
    let before = app.operator_log().await.entries.len();
    assert_eq!(acts_after(false).await, before);
    assert_eq!(acts_after(true).await, before + 1);
    assert_eq!(acts_after(false).await, before + 2);
    assert_eq!(acts_after(false).await, before + 2);
}

#[tokio::test]
async fn what_operators_did_is_read_page_by_page() {
    let app = TestApp::new().await;
    for blocked in [true, false, true] {
        let body = json!({"blocked": blocked}).to_string();
        let done = app
            .call(Method::PATCH, "/users/bob", &app.operator, body)
            .await;
        assert_eq!(done.status(), StatusCode::NO_CONTENT);
    }
    app.patch_run(&json!({"versions": {"minimum": "9.0.0"}}))
        .await;
    let page = async |query: &str| -> OperatorLogPage {
        let path = format!("/operator-log{query}");
        app.get_as(&app.operator, &path).await
    };
    let first = page("?limit=2").await;
    let second = page(&format!("?limit=2&before={}", first.next.unwrap())).await;
    let acts: Vec<_> = first.entries.iter().chain(&second.entries).collect();
    let shown: Vec<_> = acts
        .iter()
        .map(|act| (act.action.as_str(), act.subject.as_str()))
        .collect();
    let expected = [
        ("change-run", "main"),
        ("block-user", "bob"),
        ("unblock-user", "bob"),
        ("block-user", "bob"),
    ];
    assert_eq!(shown, expected);
    assert!(acts.iter().all(|act| act.actor == "operator"));
    assert!(acts[0].detail.contains("9.0.0"), "{}", acts[0].detail);
    let rest = page(&format!("?before={}", second.next.unwrap())).await;
    assert_eq!(rest.next, None);
    assert_eq!(rest.entries.last().unwrap().action, "create-run");
    let refused = app.look(&app.trainer, "/operator-log").await;
    assert_eq!(code(refused).await, ProblemCode::Forbidden);
}

#[tokio::test]
async fn operators_rename_and_delete_users() {
    let app = TestApp::with_network().await;
    let call = async |method: Method, name: &str, token: &str, body: &str| {
        let path = format!("/users/{name}");
        app.call(method, &path, token, body.to_owned()).await
    };
    let rename = r#"{"name": "alina"}"#;
    let refused = call(Method::PATCH, "alice", &app.alice, rename).await;
    assert_eq!(code(refused).await, ProblemCode::Forbidden);
    for (body, expected) in [
        ("{}", ProblemCode::BadRequest),
        (r#"{"name": "a b"}"#, ProblemCode::BadRequest),
        (r#"{"name": "B0B"}"#, ProblemCode::NameTaken),
        (
            r#"{"name": "B0B", "blocked": true}"#,
            ProblemCode::NameTaken,
        ),
    ] {
        let refused = call(Method::PATCH, "alice", &app.operator, body).await;
        assert_eq!(code(refused).await, expected, "{body}");
    }
    // A change that is refused changes nothing: alice is not blocked.
    app.lease(&app.alice).await;
    let renamed = call(Method::PATCH, "alice", &app.operator, rename).await;
    assert_eq!(renamed.status(), 204);
    app.lease(&app.alice).await;
    let refused = call(Method::DELETE, "alina", &app.alice, "").await;
    assert_eq!(code(refused).await, ProblemCode::Forbidden);
    let deleted = call(Method::DELETE, "alina", &app.operator, "").await;
    assert_eq!(deleted.status(), 204);
    assert_eq!(
        code(app.ask(&app.alice).await).await,
        ProblemCode::Unauthorized
    );
    let gone = app.look("", "/contributors/alina");
    assert_eq!(code(gone.await).await, ProblemCode::NotFound);
    let log = app.operator_log().await;
    assert_eq!(log.entries[0].action, "delete-user");
    assert!(!format!("{log:?}").contains("alina"), "{log:?}");
}
