//! A run's picture for previews of links.

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use resvg::tiny_skia::Pixmap;
use rookery_common::protocol::networks::NetworkStatus;

use crate::support::app::{TestApp, body};
use crate::support::games::Score::Win;
use crate::support::matches::{gated, play, statuses};

/// The address of the picture that a page names, below the coordinator's.
async fn named(app: &TestApp, page: &str) -> String {
    let page = app.page(page).await;
    let address = page.split("property=\"og:image\" content=\"").nth(1);
    let address = address.unwrap().split('"').next().unwrap();
    address[address.find("/runs/").unwrap()..].to_owned()
}

async fn picture(app: &TestApp, path: &str) -> (HeaderMap, Vec<u8>) {
    let answer = app.open(path).await;
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    (answer.headers().clone(), body(answer).await)
}

#[tokio::test]
async fn a_runs_picture_is_a_png_that_changes_with_the_best_network() {
    let app = gated().await;
    let first = named(&app, "/runs/main/story").await;
    assert_eq!(first, "/runs/main/picture.png?best=0");
    assert_eq!(named(&app, "/runs/main").await, first);
    let (headers, png) = picture(&app, &first).await;
    assert_eq!(headers[header::CONTENT_TYPE], "image/png");
    assert_eq!(headers[header::CACHE_CONTROL], "public, max-age=300");
    let pixels = Pixmap::decode_png(&png).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (1_200, 630));
    assert!(png.len() < 100_000, "{}", png.len());

    let tag = &headers[header::ETAG];
    let again = Request::get(&first).header(header::IF_NONE_MATCH, tag);
    let again = app.send(again.body(Body::empty()).unwrap()).await;
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(&again.headers()[header::ETAG], tag);
    assert!(body(again).await.is_empty());

    for _ in 0..2 {
        play(&app, &app.alice, [Win, Win]).await;
    }
    assert_eq!(statuses(&app).await[1], NetworkStatus::Promoted);
    let second = named(&app, "/runs/main/story").await;
    assert_eq!(second, "/runs/main/picture.png?best=1");
    let (later, other) = picture(&app, &second).await;
    assert_ne!(&later[header::ETAG], tag);
    assert_ne!(other, png);
}

#[tokio::test]
async fn a_run_without_networks_has_a_picture_and_no_run_has_none() {
    let app = TestApp::new().await;
    assert_eq!(named(&app, "/runs/main").await, "/runs/main/picture.png");
    let (_, png) = picture(&app, "/runs/main/picture.png").await;
    Pixmap::decode_png(&png).unwrap();
    let none = app.open("/runs/other/picture.png").await;
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
}
