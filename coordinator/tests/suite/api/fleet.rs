//! Many workers: they do not ask for nothing too often.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use rookery_coordinator::clock::Clock as _;
use serde_json::json;

use crate::support::app::{TestApp, value};

async fn asks(app: &TestApp, worker: u32) -> Response {
    let fields = json!({"worker": format!("w{worker}")});
    app.ask_with(&app.alice, &fields).await
}

#[tokio::test]
async fn the_more_wait_for_a_paused_run_the_less_often_each_asks() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let pause = r#"{"status": "paused"}"#;
    let paused = app.call(Method::PATCH, "/runs/main", &app.operator, pause);
    value(paused.await).await;
    let wait = async |worker| {
        let nothing = asks(&app, worker).await;
        assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
        let wait = nothing.headers()["retry-after"].to_str().unwrap();
        wait.parse::<u32>().unwrap()
    };
    let first = wait(0).await;
    assert!((15..=23).contains(&first), "{first}");
    // As if ten thousand more had asked in this second.
    for _ in 0..10_000 {
        app.app.fleet.wait(&[], None, 0.0, app.clock.now());
    }
    let next = wait(1).await;
    assert!((50..=76).contains(&next), "{next}");
}
