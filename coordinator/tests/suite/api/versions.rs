//! Versions of workers: told long before, then refused.

use axum::http::Method;
use rookery_common::protocol::ProblemCode;
use serde_json::json;

use crate::support::app::{TestApp, code, problem};

async fn ask(app: &TestApp, version: &str) -> axum::response::Response {
    app.ask_with(&app.alice, &json!({"version": version})).await
}

async fn set(app: &TestApp, versions: serde_json::Value) -> axum::response::Response {
    let patch = json!({"versions": versions}).to_string();
    app.call(Method::PATCH, "/runs/main", &app.operator, patch)
        .await
}

async fn notices(app: &TestApp, version: &str) -> Vec<String> {
    let fields = json!({"version": version});
    app.lease_with(&app.alice, &fields).await.notices
}

#[tokio::test]
async fn an_old_worker_gets_notices_until_the_cut_off_and_then_a_refusal() {
    let app = TestApp::with_network().await;
    assert!(notices(&app, "0.1.0").await.is_empty());
    let cut_off = app.app.clock.now() + jiff::SignedDuration::from_hours(24);
    let versions = json!({
        "minimum": "0.2.0", "recommended": "0.3.0", "cut_off": cut_off.to_string(),
    });
    assert_eq!(set(&app, versions).await.status(), 200);
    let told = notices(&app, "0.1.0").await.join("\n");
    assert!(
        told.contains("0.2.0") && told.contains(&cut_off.to_string()),
        "{told}"
    );
    assert!(notices(&app, "0.2.5").await[0].contains("recommends"));
    assert!(notices(&app, "0.3.0").await.is_empty());
    app.clock.advance_seconds(24 * 3600);
    let refused = problem(ask(&app, "0.1.0").await).await;
    assert_eq!(refused.code, ProblemCode::UpdateRequired);
    assert!(
        refused.detail.contains("0.2.0") && refused.detail.contains("install"),
        "{refused}"
    );
    assert!(notices(&app, "0.3.0").await.is_empty());
}

#[tokio::test]
async fn what_is_no_version_or_date_is_refused() {
    let app = TestApp::new().await;
    for bad in [
        json!({"minimum": "newest"}),
        json!({"minimum": "0.2.0", "cut_off": "soon"}),
        json!({"cut_off": "2026-12-01T00:00:00Z"}),
    ] {
        assert_eq!(code(set(&app, bad).await).await, ProblemCode::BadRequest);
    }
}
