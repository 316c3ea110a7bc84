//! The page on which people join a run.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::params::RunParams;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::config::{AccessConfig, PageUrl, Registration, WorkerSources};

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
    let sources = WorkerSources::read("https://example.org/rookery?os=linux&cuda=no");
    let doors = AccessConfig {
        worker_sources: sources.unwrap(),
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
async fn joining_offers_the_worker_for_the_visitors_system_first() {
    let page = async |sources: &str, agent: &str| {
        let doors = AccessConfig {
            worker_sources: WorkerSources::read(sources).unwrap(),
            ..AccessConfig::default()
        };
        let app = TestApp::with(doors, params()).await;
        let request = Request::get("/runs/main/join").header(header::USER_AGENT, agent);
        let answer = app.send(request.body(Body::empty()).unwrap()).await;
        without_spans(&html(StatusCode::OK, answer).await)
    };
    let (linux, windows) = ("X11; Linux x86_64", "Windows NT 10.0");
    let link = |system: &str, class: &str, file: &str| {
        format!(
            "<a class=\"{class}\" href=\"https://example.org/{file}\" rel=\"noreferrer\">Worker for {system}</a>"
        )
    };
    let two = "linux=https://example.org/w.tar.gz  windows=https://example.org/w.zip";
    let shown = page(two, windows).await;
    let offers = [
        link("Windows", "button", "w.zip"),
        link("Linux", "button second", "w.tar.gz"),
    ];
    assert!(shown.contains(&offers.join(" ")), "{shown}");
    assert!(shown.contains("<summary>macOS</summary>"), "{shown}");
    assert_eq!(shown.matches("<details class=\"system\"").count(), 1);
    assert!(
        !shown.contains("<details class=\"system\" open>"),
        "{shown}"
    );
    let shown = page("windows=https://example.org/w.zip", linux).await;
    assert!(
        shown.contains(&link("Windows", "button", "w.zip")),
        "{shown}"
    );
    let open = "<details class=\"system\" open><summary>Linux</summary>";
    assert!(shown.contains(open), "{shown}");
    let shown = page(&format!("{two} https://example.org/all"), linux).await;
    assert!(shown.contains("for another system from"), "{shown}");
    assert!(!shown.contains("cargo build"), "{shown}");
    for wrong in ["linux=example.org", "bsd=https://example.org/w", "linux="] {
        assert!(WorkerSources::read(wrong).is_err(), "{wrong}");
    }
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
