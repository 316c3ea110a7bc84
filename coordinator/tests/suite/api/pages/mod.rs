//! The pages, as a browser asks for them.

mod contributors;
mod dataset;
mod join;
mod lists;
mod networks;
mod overview;
mod picture;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::network::Program;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::server::{Link, Presentation};
use rookery_coordinator::config::AccessConfig;
use serde_json::json;

use crate::support::anchors::{beaten_by_an_anchor, submit_program};
use crate::support::app::{TestApp, code, html, params};
use crate::support::matches::contested;
use crate::support::selfplay::{selfplays, started};

/// A page whose commands stand as they are typed: their words are spans, between which lines break.
fn without_spans(page: &str) -> String {
    page.replace("<span>", "").replace("</span>", "")
}

#[tokio::test]
async fn the_page_of_trust_says_where_the_worker_keeps_its_token() {
    let app = TestApp::new().await;
    app.says("/trust", &["~/.local/share/rookery/tokens.toml"])
        .await;
}

#[tokio::test]
async fn the_page_of_trust_speaks_to_contributors_before_the_operator() {
    let app = TestApp::new().await;
    let page = app.page("/trust").await;
    let games = page.find("Your games count as soon as").unwrap();
    let operator = page.find("For the operator: no auditor is trusted");
    assert!(operator.is_some_and(|operator| games < operator), "{page}");
}

#[tokio::test]
async fn the_list_of_runs_counts_a_runs_own_networks() {
    let app = TestApp::with_network().await;
    submit_program(&app, Program::alpha_beta(2)).await;
    assert_pages_say(&app, &[("/runs", &[">1 network ·"])]).await;
}

#[tokio::test]
async fn the_board_says_that_a_network_is_unknown() {
    let app = TestApp::with_network().await;
    let says = "The run has no network “9999” to play against. The best one plays.";
    assert_pages_say(&app, &[("/runs/main/play?network=9999", &[says])]).await;
    for query in [
        "",
        "?network=",
        "?network=best",
        "?network=0",
        "?network=small",
    ] {
        let page = app.page(&format!("/runs/main/play{query}")).await;
        assert!(!page.contains("The run has no network"), "{query}: {page}");
    }
}

#[tokio::test]
async fn a_list_of_resigned_games_says_that_the_run_plays_without_resignation() {
    let app = TestApp::with_network().await;
    let path = "/runs/main/games?termination=resignation";
    let page = app
        .says(path, &["This run plays without resignation."])
        .await;
    assert!(!page.contains("Let a machine play"), "{page}");
    let other = app.page("/runs/main/games?termination=checkmate").await;
    assert!(!other.contains("without resignation"), "{other}");
}

#[tokio::test]
async fn a_game_says_that_it_began_from_a_set_up_position() {
    let app = contested().await;
    let says = ", from a set-up position";
    assert_pages_say(&app, &[("/games/2", &[says])]).await;
    let usual = app.page("/games/1").await;
    assert!(!usual.contains(says), "{usual}");
}

#[tokio::test]
async fn the_story_tells_of_anchors_that_best_has_met_by_their_names() {
    let app = beaten_by_an_anchor(None).await;
    let said = ["Against maia-1100 it ", "maia-1100 against #0, 1–0"];
    assert_pages_say(&app, &[("/runs/main/story", &said)]).await;
}

#[tokio::test]
async fn the_storys_chart_can_be_shown_in_parts() {
    let app = beaten_by_an_anchor(None).await;
    let path = "/runs/main/story";
    let whole = format!("href=\"{path}\" aria-current=\"true\">whole run");
    let back = format!("href=\"{path}\">whole run");
    // Later than any network of the run.
    let part = format!("{path}?from=99999");
    let nothing = "No data in this part of the chart.";
    assert_pages_say(
        &app,
        &[
            (path, &[&*whole, "data-span=\"", "/zoom.js\""]),
            (&*part, &[nothing, &*back]),
        ],
    )
    .await;
    let odd = app.open(&format!("{path}?from=soon")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn an_unknown_address_is_a_page_for_browsers_and_a_problem_for_programs() {
    let app = TestApp::new().await;
    let home = app.open("/").await;
    let unknown = app.open("/nowhere").await;
    for name in [header::CONTENT_SECURITY_POLICY, header::CACHE_CONTROL] {
        assert_eq!(unknown.headers()[&name], home.headers()[&name]);
    }
    let page = html(StatusCode::NOT_FOUND, unknown).await;
    assert!(page.contains("There is no page at this address."), "{page}");
    let of_api = app.open("/api/v1/nowhere").await;
    assert_eq!(code(of_api).await, ProblemCode::NotFound);
    let program = Request::get("/nowhere").body(Body::empty());
    let answer = app.send(program.unwrap()).await;
    assert_eq!(code(answer).await, ProblemCode::NotFound);
}

#[tokio::test]
async fn the_calls_of_the_api_are_a_page_to_which_every_page_leads() {
    let app = TestApp::new().await;
    app.says("/", &["<a href=\"/api\">API</a>"]).await;
    let document: serde_json::Value = app.get("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    let page = app.page("/api").await;
    for path in paths.keys() {
        assert!(
            page.contains(&format!("</b> {path}</code>")),
            "{path}: {page}"
        );
    }
    for part in [
        "<b>POST</b> /api/v1/jobs</code></th>\n    <td><code>contribute</code>",
        "<dt><code>run</code></dt>",
        "href=\"/api/v1/openapi.json\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn previews_of_links_have_a_picture() {
    let app = started().await;
    let rook = ("/picture.png\"", "A drawing of a rook");
    let ratings = ("/runs/main/picture.png?best=0\"", "The ratings");
    for (path, (picture, shows)) in [
        ("/runs", rook),
        ("/api", rook),
        ("/runs/main", ratings),
        ("/runs/main/story", ratings),
        ("/runs/main/play", ratings),
        ("/games/1", ratings),
    ] {
        let page = app.page(path).await;
        let shows = format!("property=\"og:image:alt\" content=\"{shows}");
        for part in [
            "property=\"og:image\"",
            picture,
            "property=\"og:image:width\" content=\"1200\"",
            "property=\"og:image:height\" content=\"630\"",
            &shows,
        ] {
            assert!(page.contains(part), "{path}: {part}: {page}");
        }
    }
}

/// How the values go on that begin so, in the order of the page.
fn listed<'a>(page: &'a str, begin: &str) -> Vec<&'a str> {
    let behind = page.split(begin).skip(1);
    behind.filter_map(|rest| rest.split('"').next()).collect()
}

/// Checks that each page has its texts.
async fn assert_pages_say(app: &TestApp, said: &[(&str, &[&str])]) {
    for (path, texts) in said {
        app.says(path, texts).await;
    }
}

#[tokio::test]
async fn the_board_may_compile_webassembly_and_no_other_page_may() {
    let app = TestApp::new().await;
    let empty = app.page("/runs/main/play").await;
    let says = "The run has no network yet. The one that comes with Rookery plays";
    assert!(empty.contains(says), "{empty}");
    assert!(empty.contains("<option value=\"small\""), "{empty}");
    app.submit(0).await;
    let policy = async |path: &str| {
        let answer = app.open(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = &answer.headers()[header::CONTENT_SECURITY_POLICY];
        policy.to_str().unwrap().to_owned()
    };
    let board = policy("/runs/main/play").await;
    assert!(
        board.contains("script-src 'self' 'wasm-unsafe-eval';"),
        "{board}"
    );
    for path in ["/runs/main", "/runs/main/networks/0"] {
        assert!(!policy(path).await.contains("wasm"), "{path}");
    }
}

#[tokio::test]
async fn the_board_offers_the_runs_networks_or_says_that_it_is_missing() {
    let app = TestApp::with_network().await;
    submit_program(&app, Program::alpha_beta(2)).await;
    let page = app.page("/runs/main/play?network=0").await;
    if page.contains("built without the board") {
        assert!(page.contains("scripts/web"), "{page}");
    } else {
        assert!(page.contains("<option value=\"0\" selected>#0, "), "{page}");
        assert!(page.contains("src=\"/assets/board/play-"), "{page}");
        assert_eq!(
            page.matches("<option value=\"1\"").count(),
            0,
            "a program is no network"
        );
    }
    assert!(
        app.page("/runs/main")
            .await
            .contains("href=\"/runs/main/play\"")
    );
}

#[tokio::test]
async fn addresses_that_people_guess_lead_on() {
    let app = TestApp::new().await;
    let answer = app.open("/runs/main/").await;
    assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(answer.headers()[header::LOCATION], "/runs/main");
    let none = app.open("/runs/main/networks/best").await;
    assert_eq!(none.status(), StatusCode::NOT_FOUND);
    let network = app.submit(0).await;
    for name in ["best".to_owned(), network.hash.to_string()] {
        let answer = app.open(&format!("/runs/main/networks/{name}")).await;
        assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{name}");
        assert_eq!(answer.headers()[header::LOCATION], "/runs/main/networks/0");
    }
    let odd = app.open("/runs/main/networks/worst").await;
    assert_eq!(odd.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_list_of_runs_is_one_also_where_there_is_only_one() {
    let app = TestApp::new().await;
    app.says("/", &["<a href=\"/runs\">all runs</a>"]).await;
    let list = app.says("/runs", &["<h1>Runs</h1>"]).await;
    for link in ["/runs/main", "/runs/main/join"] {
        assert!(list.contains(&format!("href=\"{link}\"")), "{list}");
    }
}

#[tokio::test]
async fn browsers_find_the_icon_where_they_look_by_themselves() {
    let app = TestApp::new().await;
    let found = app.open("/favicon.ico").await;
    assert_eq!(found.status(), StatusCode::PERMANENT_REDIRECT);
    let address = found.headers()[header::LOCATION].to_str().unwrap();
    app.says("/", &[&format!("rel=\"icon\" href=\"{address}\"")])
        .await;
    let icon = app.open(address).await;
    assert_eq!(icon.headers()[header::CONTENT_TYPE], "image/svg+xml");
}

#[tokio::test]
async fn the_overview_says_what_workers_do_and_how_far_the_next_candidate_is() {
    let app = TestApp::with_network().await;
    let playing = "Workers are playing training games";
    let home = async || app.page("/runs/main").await;
    let idle = home().await;
    assert!(idle.contains("No worker is playing."), "{idle}");
    selfplays(&app, &app.alice, &[1]).await;
    let progress = format!(
        "{playing} with the best network. 8 of 20\u{202f}000 new positions have been played since \
         network #0; then the trainer"
    );
    let busy = home().await;
    assert!(busy.contains(&progress), "{busy}");
    app.patch_run(&json!({"status": "paused"})).await;
    let page = home().await;
    assert!(
        page.contains("The run is paused: workers get no games"),
        "{page}"
    );
    assert!(!page.contains(playing), "{page}");
}

#[tokio::test]
async fn what_is_not_found_in_a_run_keeps_its_navigation() {
    let app = TestApp::new().await;
    let navigation = "<a href=\"/runs/main/networks\">Networks</a>";
    for path in [
        "/runs/main/networks/7",
        "/runs/main/nowhere",
        "/runs/main/games?kind=chess",
    ] {
        let answer = app.open(path).await;
        assert!(answer.status().is_client_error(), "{path}");
        let status = answer.status();
        let page = html(status, answer).await;
        assert!(page.contains(navigation), "{path}: {page}");
        assert!(!page.contains("Back to the runs"), "{path}: {page}");
    }
    for path in ["/runs/other/networks", "/matches/7", "/nowhere"] {
        let page = html(StatusCode::NOT_FOUND, app.open(path).await).await;
        assert!(page.contains("Back to the runs"), "{path}: {page}");
    }
}

#[tokio::test]
async fn links_to_pages_show_what_they_are_elsewhere() {
    let app = TestApp::with_network().await;
    app.patch_run(&json!({"description": "A <small> net\n for tests"}))
        .await;
    let described = "content=\"A &#60;small&#62; net for tests\"";
    let named = |title: &str| format!("<meta property=\"og:title\" content=\"{title}\">");
    let titles = [
        ("/runs/main", "main"),
        ("/runs/main/join", "Join main"),
        ("/runs/main/matches", "Matches of main"),
        ("/runs/main/networks/0", "Network 0 of main"),
        ("/trust", "Trust"),
    ];
    for (path, title) in titles {
        let page = app.page(path).await;
        assert!(page.contains(&named(title)), "{path}: {page}");
        assert!(
            page.contains(&format!("<title>{title} – Rookery</title>")),
            "{page}"
        );
        assert_eq!(
            page.contains(described),
            title.ends_with("main") && !title.contains("of")
        );
    }
}

#[tokio::test]
async fn pages_say_what_the_operator_calls_the_site_and_whom_to_write_to() {
    let link = |text: &str| Link {
        text: text.to_owned(),
        url: format!("https://example.org/{text}?a=1&b"),
    };
    let presentation = Presentation {
        title: Some("Chess <at> home".to_owned()),
        contact: Some("ann@example.org".to_owned()),
        links: vec![link("forum")],
    };
    let app = TestApp::with(
        AccessConfig {
            presentation,
            ..AccessConfig::default()
        },
        params(),
    )
    .await;
    let brand = "<span>Chess &#60;at&#62; home</span>";
    let mail = "<a href=\"mailto:ann@example.org\" rel=\"noreferrer\">ann@example.org</a>";
    let forum = "<a href=\"https://example.org/forum?a=1&#38;b\" rel=\"noreferrer\">forum</a>";
    let all = [brand, mail, forum];
    for path in [
        "/",
        "/runs",
        "/runs/main/join",
        "/runs/main/games",
        "/trust",
    ] {
        assert_pages_say(&app, &[(path, &all)]).await;
    }
    let unknown = html(StatusCode::NOT_FOUND, app.open("/runs/main/nowhere").await).await;
    assert!(
        unknown.contains(brand) && unknown.contains(mail),
        "{unknown}"
    );
    assert_pages_say(&app, &[("/runs/main/join", &["Write to the operator: <a"])]).await;
    assert_pages_say(&app, &[("/trust", &["data-contact=\"ann@example.org\""])]).await;
    // What a run has of its own comes first.
    let own = json!({"title": "Small net", "contact": "@bob:example.org"});
    app.patch_run(&own).await;
    let page = app.page("/runs/main").await;
    for part in [
        brand,
        "<h1>Small net ",
        "Operator: @bob:example.org ·",
        forum,
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(mail), "{page}");
}

#[tokio::test]
async fn games_that_are_held_are_told_beside_those_that_count() {
    let app = started().await;
    selfplays(&app, &app.bob, &[2, 3]).await;
    assert_eq!(app.order("/users/bob", true).await, StatusCode::NO_CONTENT);
    let path = "/runs/main/contributors";
    let counted = "8 positions in all, in 1 game and 0 audits, by";
    let held = "2 more games are excluded";
    assert_pages_say(&app, &[(path, &[counted, held])]).await;
    assert_eq!(app.order("/users/bob", false).await, StatusCode::NO_CONTENT);
    let page = app.page(path).await;
    assert!(!page.contains("more game"), "{page}");
}

#[tokio::test]
async fn renewals_are_shared_for_two_seconds_and_opened_pages_are_not() {
    let app = TestApp::with_network().await;
    let renew = async || {
        let request = Request::get("/runs/main").header("x-rookery-live", "1");
        let page = app.send(request.body(Body::empty()).unwrap()).await;
        let shared = page.headers().contains_key(header::AGE);
        (html(StatusCode::OK, page).await, shared)
    };
    let game = "href=\"/games/1\"";
    let (before, shared) = renew().await;
    assert!(!shared && !before.contains(game), "{before}");
    selfplays(&app, &app.alice, &[1]).await;
    assert_eq!(renew().await, (before, true));
    assert_pages_say(&app, &[("/runs/main", &[game])]).await;
    app.clock.advance_seconds(2);
    let (after, shared) = renew().await;
    assert!(!shared && after.contains(game), "{after}");
}
