//! Runs: their parameters, and which one is meant where none is named.

use axum::http::Method;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::Job;
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::server::{Link, Presentation, ServerInfo};
use rookery_coordinator::config::{AccessConfig, Registration};
use serde_json::json;

use crate::support::app::{TestApp, code, params, value};
use crate::support::games::{chunk, selfplay};

#[tokio::test]
async fn parameters_out_of_range_do_not_reach_a_run() {
    let app = TestApp::new().await;
    let patch = async |body: serde_json::Value| {
        app.call(Method::PATCH, "/runs/main", &app.operator, body.to_string())
            .await
    };
    let bad = json!({"params": {"selfplay": {"search": {"visits": 0}}}});
    assert_eq!(code(patch(bad).await).await, ProblemCode::BadRequest);
    let bad = json!({"params": {"gate": {"kind": "fixed", "games": 0, "threshold": 0.5}}});
    assert_eq!(code(patch(bad).await).await, ProblemCode::BadRequest);
    let good = value(patch(json!({"description": "new"})).await).await;
    assert_eq!(good["description"], "new");
    assert_eq!(
        good["params"]["scheduling"]["match_games"], 2,
        "the rest stays"
    );
}

#[tokio::test]
async fn the_number_of_runs_decides_whether_one_must_be_named() {
    let app = TestApp::with_network().await;
    app.create_run("second").await;
    let answer = app.look("", "/networks").await;
    assert_eq!(code(answer).await, ProblemCode::BadRequest);
    let best: NetworkInfo = app.get("/networks/best?run=main").await;
    assert_eq!(best.number, NetworkNumber(0));
}

#[tokio::test]
async fn a_run_without_title_contact_and_links_has_the_coordinators() {
    let links = vec![Link::parse("Chat=https://example.org/chat").unwrap()];
    let doors = AccessConfig {
        registration: Registration::Invitation,
        presentation: Presentation {
            title: Some("Club chess".to_owned()),
            contact: Some("ann@example.org".to_owned()),
            links: links.clone(),
        },
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    let server: ServerInfo = app.get("/server").await;
    assert_eq!(server.title.as_deref(), Some("Club chess"));
    assert_eq!(server.registration, Registration::Invitation);
    assert_eq!(server.links, links);
    let patch = async |body: serde_json::Value| {
        app.call(Method::PATCH, "/runs/main", &app.operator, body.to_string())
            .await
    };
    let own =
        json!({"title": "Main", "links": [{"text": "Code", "url": "https://example.org/code"}]});
    let changed = value(patch(own).await).await;
    assert_eq!(changed["contact"], "ann@example.org");
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!(
        (run.title.as_deref(), &*run.links[0].text),
        (Some("Main"), "Code")
    );
    value(patch(json!({"title": "", "links": []})).await).await;
    let runs: Vec<RunInfo> = app.get("/runs").await;
    assert_eq!(runs[0].title.as_deref(), Some("Club chess"));
    assert_eq!(runs[0].links, links);
}

#[tokio::test]
async fn what_would_mislead_people_does_not_present_a_run() {
    let app = TestApp::new().await;
    let link = json!({"text": "Chat", "url": "https://example.org/chat"});
    for body in [
        json!({"title": "a\u{202e}b"}),
        json!({"title": "x".repeat(81)}),
        json!({"contact": "ask around"}),
        json!({"links": [{"text": "Chat", "url": "javascript:alert(1)"}]}),
        json!({"links": [{"text": "a\nb", "url": "https://example.org/chat"}]}),
        json!({"links": vec![link; 9]}),
    ] {
        let answer = app.call(Method::PATCH, "/runs/main", &app.operator, body.to_string());
        assert_eq!(code(answer.await).await, ProblemCode::BadRequest, "{body}");
    }
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!(
        (run.title, run.contact, run.links),
        (None, None, Vec::new())
    );
}

/// Nobody audits games of an archived run, and a deleted one has forgotten which were counted.
#[tokio::test]
async fn games_of_a_run_that_is_over_are_refused_under_any_name() {
    let app = TestApp::with_network().await;
    let [first, second] = [app.lease(&app.alice).await, app.lease(&app.alice).await];
    app.hand_in(&app.alice, &first, &[selfplay(&first, 0, 1)])
        .await;
    let archive = |archived: &str| {
        let body = format!(r#"{{"archived": {archived}}}"#);
        app.call(Method::PATCH, "/runs/main", &app.operator, body)
    };
    value(archive("true").await).await;
    let late = async |chunk: Vec<u8>| code(app.upload(&app.alice, &chunk).await).await;
    assert_eq!(
        late(chunk(&second, &[selfplay(&second, 0, 2)])).await,
        ProblemCode::LeaseEnded
    );
    // What was acknowledged still is.
    app.hand_in(&app.alice, &first, &[selfplay(&first, 0, 1)])
        .await;
    value(archive("false").await).await;
    app.hand_in(&app.alice, &second, &[selfplay(&second, 0, 2)])
        .await;
    value(archive("true").await).await;
    let deleted = app.call(Method::DELETE, "/runs/main", &app.operator, "");
    assert_eq!(deleted.await.status(), 204);
    let renamed = Job {
        run: "deleted-1".parse().unwrap(),
        ..first.clone()
    };
    assert_eq!(
        late(chunk(&renamed, &[selfplay(&renamed, 0, 1)])).await,
        ProblemCode::LeaseEnded
    );
}

#[tokio::test]
async fn an_archived_run_is_in_no_list_and_readable_by_its_address() {
    let app = TestApp::with_network().await;
    app.create_run("second").await;
    let patch = async |body: &str| {
        let body = body.to_owned();
        app.call(Method::PATCH, "/runs/second", &app.operator, body)
            .await
    };
    let delete = async |token: &str| app.call(Method::DELETE, "/runs/second", token, "").await;
    assert_eq!(
        code(delete(&app.operator).await).await,
        ProblemCode::Conflict
    );
    value(patch(r#"{"archived": true}"#).await).await;
    let names = async |path: &str| -> Vec<String> {
        let runs: Vec<RunInfo> = app.get(path).await;
        runs.into_iter().map(|run| run.name.to_string()).collect()
    };
    assert_eq!(names("/runs").await, ["main"]);
    assert_eq!(names("/runs?archived=true").await, ["main", "second"]);
    let run: RunInfo = app.get("/runs/second").await;
    assert!(run.archived_at.is_some());
    app.page("/runs/second").await;
    let page = app.page("/runs").await;
    let (listed, archived) = page.split_once("<p id=\"archived\">").unwrap();
    assert!(!listed.contains("/runs/second"));
    assert!(archived.contains("href=\"/runs/second\""));
    // Who names no run means the only one that is listed.
    let best: NetworkInfo = app.get("/networks/best").await;
    assert_eq!(best.number, NetworkNumber(0));
    let none = app.ask_with(&app.alice, &json!({"run": "second"})).await;
    assert_eq!(none.status(), 204);
    assert_eq!(
        code(delete(&app.trainer).await).await,
        ProblemCode::Forbidden
    );
    assert_eq!(delete(&app.operator).await.status(), 204);
    let gone = app.look("", "/runs/second");
    assert_eq!(code(gone.await).await, ProblemCode::NotFound);
    assert_eq!(names("/runs?archived=true").await, ["main"]);
}
