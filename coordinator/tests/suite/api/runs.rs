//! Runs: their parameters, and which one is meant where none is named.

use axum::body::Body;
use axum::http::Method;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::networks::NetworkInfo;
use serde_json::json;

use crate::support::app::{TestApp, code, value};

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
    let app = TestApp::new().await;
    app.submit(0).await;
    app.create_run("second").await;
    let answer = app.call(Method::GET, "/networks", "", Body::empty()).await;
    assert_eq!(code(answer).await, ProblemCode::BadRequest);
    let best: NetworkInfo = app.get("/networks/best?run=main").await;
    assert_eq!(best.number, NetworkNumber(0));
}
