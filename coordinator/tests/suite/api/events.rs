//! The stream of events.

use axum::body::Body;
use axum::http::{Request, header};
use futures_util::StreamExt as _;

use crate::support::app::TestApp;

#[tokio::test]
async fn events_stream_until_the_coordinator_stops() {
    let app = TestApp::new().await;
    let request = Request::get("/api/v1/events").body(Body::empty()).unwrap();
    let response = app.send(request).await;
    assert_eq!(
        response.headers()[header::CONTENT_TYPE],
        "text/event-stream"
    );
    let mut stream = response.into_body().into_data_stream();
    let hash = app.submit(0).await.hash;
    let mut text = String::new();
    while !text.contains("event: promotion") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(
        text.contains("event: network") && text.contains(&hash.to_string()),
        "{text}"
    );
    app.app.stopping.cancel();
    while stream.next().await.is_some() {}
}
