//! The pages, as a browser asks for them.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;

use crate::support::app::{TestApp, body};

/// Asks for a page as a browser does.
async fn open(app: &TestApp, path: &str) -> Response {
    let request = Request::get(path)
        .header(header::ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8")
        .body(Body::empty());
    app.send(request.unwrap()).await
}

/// The text of a page that has this status.
async fn text(status: StatusCode, page: Response) -> String {
    assert_eq!(page.status(), status);
    assert_eq!(
        page.headers()[header::CONTENT_TYPE],
        "text/html; charset=utf-8"
    );
    String::from_utf8(body(page).await).unwrap()
}

#[tokio::test]
async fn the_page_of_trust_says_where_the_worker_keeps_its_token() {
    let app = TestApp::new().await;
    let page = text(StatusCode::OK, open(&app, "/trust").await).await;
    assert!(
        page.contains("~/.local/share/rookery/tokens.toml"),
        "{page}"
    );
}
