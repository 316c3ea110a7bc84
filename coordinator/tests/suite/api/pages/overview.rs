//! The overviews of runs, and the list of them.

use axum::http::{Method, StatusCode};
use rookery_common::ids::{NetworkNumber, Seed};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::db::{Actor, MatchDraft};

use super::assert_pages_say;
use crate::support::app::{TestApp, run};
use crate::support::matches::gated;
use crate::support::selfplay::started;

async fn archive(app: &TestApp, run: &str) {
    let path = format!("/runs/{run}");
    let archived = r#"{"archived": true}"#.to_owned();
    let patched = app.call(Method::PATCH, &path, &app.operator, archived);
    assert_eq!(patched.await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_run_that_has_ended_says_so_and_asks_nobody_to_join() {
    let app = started().await;
    app.create_run("second").await;
    archive(&app, "main").await;
    let badge = "<span class=\"badge paused\">archived</span>";
    let link = "Archived: <a href=\"/runs/main\">main</a>.";
    assert_pages_say(
        &app,
        &[
            ("/", &["<title>second – Rookery</title>"]),
            ("/runs/main", &[badge, "The run is archived: no more games"]),
            ("/runs/main/join", &["The run is archived: workers get no"]),
            ("/runs", &[link, "href=\"/runs/second/join\""]),
        ],
    )
    .await;
    let page = app.page("/runs/main").await;
    for part in ["Join with your computer", "new positions have been played"] {
        assert!(!page.contains(part), "{part}: {page}");
    }
    archive(&app, "second").await;
    let page = app.says("/", &["No run takes games now."]).await;
    assert!(!page.contains("No run yet"), "{page}");
}

#[tokio::test]
async fn a_gate_is_on_the_overview_whatever_matches_were_opened_since() {
    let app = gated().await;
    for seed in 1..=60 {
        let draft = MatchDraft {
            run: run(),
            candidate: NetworkNumber(1),
            opponent: NetworkNumber(0),
            pairs: 1,
            seed: Seed(seed),
        };
        let opened = app
            .app
            .db
            .open_match(draft, Actor::new("ops", app.clock.now()));
        opened.await.unwrap();
    }
    let tested = "<a href=\"/matches/1\">Network #1 is being tested</a>";
    assert_pages_say(&app, &[("/runs/main", &[tested])]).await;
}

#[tokio::test]
async fn an_overview_lists_the_workers_of_its_run_alone() {
    let app = started().await;
    app.create_run("second").await;
    let worker = "<td class=\"name\" title=\"w\">w</td>";
    let one = "<p class=\"big\">1</p>";
    let own = ["alice</a>", worker, one];
    let none = "No worker was active in the last ten minutes.";
    let pages: [(&str, &[&str]); 2] = [("/runs/main", &own), ("/runs/second", &[none])];
    assert_pages_say(&app, &pages).await;
    let page = app.page("/runs/second").await;
    assert!(!page.contains(worker) && !page.contains(one), "{page}");
}

#[tokio::test]
async fn a_part_of_a_chart_in_which_nothing_lies_leads_back_to_the_whole() {
    let app = started().await;
    let report = r#"{"points": [{"step": 10, "values": {"policy_loss": 1.5}}]}"#.to_owned();
    let reported = app.call(Method::POST, "/runs/main/metrics", &app.trainer, report);
    assert!(reported.await.status().is_success());
    let nothing = "No data in this part of the chart";
    for page in ["networks", "training"] {
        let path = format!("/runs/main/{page}");
        let part = format!("{path}?from=1000&to=2000");
        let back = format!("<a href=\"{path}\">whole run</a>");
        assert_pages_say(&app, &[(&part, &[nothing, &back])]).await;
        let whole = app.page(&path).await;
        assert!(!whole.contains(nothing), "{whole}");
    }
}
