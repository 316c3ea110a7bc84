//! The page on which people join a run.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::params::RunParams;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::config::{AccessConfig, PageUrl, Registration};

use super::without_spans;
use crate::support::app::{TestApp, html, params};

#[tokio::test]
async fn commands_have_the_address_that_was_asked() {
    let app = TestApp::new().await;
    let worker = "<code>rookery-worker run --server https://rookery.example.org --run main \
                  --name YOUR-NAME</code>";
    let trainer = "<code>ROOKERY_TOKEN=TOKEN rookery-trainer run --server https://rookery.example.org \
                   --run main --init 6x64</code>";
    for (path, command) in [
        ("/runs/main/join", worker),
        ("/", worker),
        ("/", trainer),
        ("/runs/main/games", worker),
        ("/runs/main/contributors", worker),
        ("/runs/main/networks", trainer),
        ("/runs/main/training", trainer),
    ] {
        let request = Request::get(path)
            .header(header::HOST, "rookery.example.org")
            .header("x-forwarded-proto", "https")
            .body(Body::empty());
        let page = html(StatusCode::OK, app.send(request.unwrap()).await).await;
        let page = without_spans(&page);
        assert!(page.contains(command), "{path}: {page}");
    }
}

#[tokio::test]
async fn joining_takes_what_the_operator_asks_for() {
    for (registration, flag) in [
        (Registration::Invitation, "--invitation CODE"),
        (Registration::Closed, "--run main --token-file TOKEN-FILE"),
    ] {
        let app = TestApp::with(registration, params()).await;
        for path in [
            "/runs/main/join",
            "/",
            "/runs/main/games",
            "/runs/main/contributors",
        ] {
            let page = without_spans(&app.page(path).await);
            assert!(page.contains(flag), "{path}: {page}");
        }
    }
    let open_to_all = TestApp::new().await;
    let page = open_to_all.page("/runs/main/join").await;
    assert!(!page.contains("CODE") && !page.contains("TOKEN"), "{page}");
    let nowhere = open_to_all.open("/runs/other/join").await;
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn joining_leads_to_where_the_operator_says_that_the_worker_is() {
    let source = PageUrl::read("https://example.org/rookery?os=linux&cuda=no");
    let doors = AccessConfig {
        worker_source: Some(source.unwrap()),
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    let page = without_spans(&app.page("/runs/main/join").await);
    let link = "href=\"https://example.org/rookery?os=linux&#38;cuda=no\"";
    assert!(page.contains(link), "{page}");
    assert!(!page.contains("cargo build"), "{page}");
    let page = without_spans(&TestApp::new().await.page("/runs/main/join").await);
    assert!(
        page.contains(">Rust</a> and a C compiler are enough"),
        "{page}"
    );
    assert!(page.contains("cargo build"), "{page}");
    assert!(page.contains("ask the operator"), "{page}");
    let source = Some(PageUrl::read("https://example.org/rookery.git").unwrap());
    let doors = AccessConfig {
        source,
        ..AccessConfig::default()
    };
    let app = TestApp::with(doors, params()).await;
    let page = without_spans(&app.page("/runs/main/join").await);
    let link = "<a href=\"https://example.org/rookery.git\">Rookery's source code</a>";
    assert!(
        page.contains(link) && page.contains("cargo build"),
        "{page}"
    );
}

#[tokio::test]
async fn joining_tells_of_a_gate_only_where_there_is_one() {
    let must_win = "must win a match";
    let page = TestApp::new().await.page("/runs/main/join").await;
    assert!(page.contains(must_win), "{page}");
    let gate = GateRule::None;
    let without = TestApp::with(Registration::Open, RunParams { gate, ..params() });
    let page = without.await.page("/runs/main/join").await;
    assert!(!page.contains(must_win), "{page}");
}
