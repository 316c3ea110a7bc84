//! Whether the coordinator can work, as load balancers ask.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use crate::support::app::{TestApp, parse};

#[tokio::test]
async fn readiness_names_what_is_down() {
    let app = TestApp::new().await;
    let ready = async |status: StatusCode| -> serde_json::Value {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        parse(status, app.send(request).await).await
    };
    let up = json!({"ready": true, "stopping": false, "database": "up", "store": "up"});
    assert_eq!(ready(StatusCode::OK).await, up);
    app.files().break_down();
    assert_eq!(ready(StatusCode::OK).await, up, "asked a moment ago");
    app.clock.advance_seconds(2);
    let down = ready(StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(
        (&down["store"], &down["database"]),
        (&json!("down"), &json!("up"))
    );
    app.app.db.close().await;
    app.clock.advance_seconds(2);
    let down = ready(StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(down["database"], json!("down"));
}
