//! Pages of a run's networks: files, ratings, neighbours, the feed.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use rookery_common::ids::ContentHash;
use rookery_common::network::Program;
use rookery_common::params::RunParams;
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::config::Registration;

use super::{assert_pages_say, without_spans};
use crate::support::anchors::{beaten_by_an_anchor, submit_program};
use crate::support::app::{TestApp, body, html, params};
use crate::support::selfplay::started;

#[tokio::test]
async fn pages_say_from_what_ratings_are_counted() {
    let app = beaten_by_an_anchor(Some(1100)).await;
    let scale = "counted from maia-1100 = 1100";
    let given = "fixed by the operator, not measured";
    assert_pages_say(
        &app,
        &[
            ("/runs/main", &["Ratings in Elo, ", scale]),
            ("/runs/main/networks", &[scale, "maia-1100 (1100 given)"]),
            ("/runs/main/networks/0", &[scale, "95 % interval"]),
            ("/runs/main/networks/1", &[given, "1100 <small>Elo"]),
        ],
    )
    .await;
    let app = beaten_by_an_anchor(None).await;
    let scale = "counted from network 0 = 0";
    let own = "Ratings in self-play Elo";
    let reference = "the reference of all ratings";
    assert_pages_say(
        &app,
        &[
            (
                "/runs/main",
                &[own, scale, "0 self-play Elo, the reference"],
            ),
            ("/runs/main/networks", &[own, scale]),
            (
                "/runs/main/networks/0",
                &[reference, "0 <small>self-play Elo"],
            ),
            ("/runs/main/networks/1", &[scale, "95 % interval"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_programs_page_says_what_it_does_and_nothing_of_networks() {
    let app = TestApp::with_network().await;
    submit_program(&app, Program::alpha_beta(2)).await;
    let said = ["alphabeta-2", "alphabeta:2: alpha-beta search of 2 plies"];
    let file = "download=\"main-0.safetensors\"";
    assert_pages_say(
        &app,
        &[
            ("/runs/main/networks", &["<td>alphabeta:2</td>", file]),
            ("/runs/main/networks/1", &said),
            ("/runs/main/networks/0", &["parameters", "<h2>Puzzles</h2>"]),
        ],
    )
    .await;
    let page = app.page("/runs/main/networks").await;
    assert!(!page.contains("main-1.safetensors"), "{page}");
    let page = app.page("/runs/main/networks/1").await;
    for part in [
        "parameters",
        "<dt>Input",
        "<dt>Training",
        "<h2>Puzzles",
        "<h2>Play",
    ] {
        assert!(!page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn a_networks_page_links_its_file_in_every_format_that_there_is() {
    let app = TestApp::new().await;
    let network = app.submit(0).await.hash;
    let page = app.page("/runs/main/networks/0").await;
    assert!(page.contains("download=\"main-0.safetensors\">"), "{page}");
    assert!(!page.contains("For other programs"), "{page}");
    let formats: [(&str, &str, &[u8]); 2] = [
        ("lc0", "pb.gz\">Lc0</a>", b"\x1f\x8b a network"),
        ("onnx", "onnx\">ONNX</a>", b"\x08\x08 a model"),
    ];
    for (format, _, file) in formats {
        let sha256 = ContentHash::of(file);
        let path = format!("/networks/{network}/file?format={format}&sha256={sha256}");
        let put = app.call(Method::PUT, &path, &app.trainer, file.to_vec());
        assert_eq!(put.await.status(), StatusCode::CREATED);
    }
    let page = app.page("/runs/main/networks/0").await;
    for (format, title, _) in formats {
        let address = format!("/api/v1/networks/{network}/file?format={format}");
        let link = format!("<a href=\"{address}\" download=\"main-0.{title}");
        assert!(page.contains(&link), "{link}: {page}");
    }
}

#[tokio::test]
async fn feed_readers_are_told_of_networks_that_became_best() {
    let app = TestApp::new().await;
    let path = "/runs/main/networks.atom";
    let feed = async || {
        let request = Request::get(path)
            .header(header::HOST, "rookery.example.org")
            .header("x-forwarded-proto", "https")
            .body(Body::empty());
        let answer = app.send(request.unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let kind = &answer.headers()[header::CONTENT_TYPE];
        assert_eq!(kind, "application/atom+xml; charset=utf-8");
        String::from_utf8(body(answer).await).unwrap()
    };
    let empty = feed().await;
    assert!(empty.contains("<updated>1970-01-01T00:00:00Z</updated>"));
    assert!(!empty.contains("<entry>"), "{empty}");
    let first = app.submit(0).await;
    // A candidate is no news before its match is decided.
    app.submit(1).await;
    let feed = feed().await;
    assert_eq!(feed.matches("<entry>").count(), 1, "{feed}");
    let run = "https://rookery.example.org/runs/main";
    for part in [
        format!("<id>{run}/networks.atom</id>"),
        format!("<id>urn:sha256:{}</id>", first.hash),
        format!("href=\"{run}/networks/0\""),
        format!(
            "href=\"https://rookery.example.org/api/v1/networks/{}/file\"",
            first.hash
        ),
        "<title>main #0</title>".to_owned(),
    ] {
        assert!(feed.contains(&part), "{part}: {feed}");
    }
    let pages = ["/runs/main", "/runs/main/networks"];
    let link = format!("title=\"Best networks of main\" href=\"{path}\"");
    let said = [link.as_str()];
    assert_pages_say(&app, &pages.map(|page| (page, &said[..]))).await;
    let nowhere = app.open("/runs/other/networks.atom").await;
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_networks_page_leads_to_its_games_and_says_how_to_play_against_it() {
    let app = started().await;
    let engine = "rookery-worker uci --server URL --run main --network 0</code>";
    let of_a_network = without_spans(&app.page("/runs/main/networks/0").await);
    assert!(of_a_network.contains(engine), "{of_a_network}");
    let games = "/runs/main/games?network=0";
    let link = format!("href=\"{games}\">all games");
    let of_network = "of network <a href=\"/runs/main/networks/0\">#0</a>";
    let choice = "?network=0&#38;kind=puzzles\"";
    let file = "href=\"/api/v1/games/pgn?network=0&#38;run=main\" download>";
    let of_both = format!("{games}&contributor=alice");
    assert_pages_say(
        &app,
        &[
            ("/runs/main/networks/0", &[link.as_str()]),
            (games, &[of_network, choice, file, "href=\"/games/1\""]),
            (of_both.as_str(), &[of_network, "alice</bdi></a> sent;"]),
            ("/runs/main/games?network=7", &["No game here"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_networks_page_says_whether_it_is_best_and_leads_to_its_neighbours() {
    let app = TestApp::with(
        Registration::Open,
        RunParams {
            gate: GateRule::None,
            ..params()
        },
    )
    .await;
    for number in 0..3 {
        app.submit(number).await;
    }
    let best = "<span class=\"badge best\">best</span>";
    let page = app.page("/runs/main/networks/1").await;
    for part in [
        "rel=\"prev\" href=\"/runs/main/networks/0\"",
        "rel=\"next\" href=\"/runs/main/networks/2\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(best), "{page}");
    let page = app.page("/runs/main/networks/2").await;
    assert!(
        page.contains(best) && !page.contains("rel=\"next\""),
        "{page}"
    );
}

#[tokio::test]
async fn ratings_are_drawn_over_the_positions_that_had_been_played() {
    let app = started().await;
    app.submit(1).await;
    let networks: Vec<NetworkInfo> = app.get("/networks").await;
    let positions: Vec<_> = networks.iter().map(|info| info.positions).collect();
    assert_eq!(positions, [Some(8), Some(0)]);
    let path = "/runs/main/networks?over=positions";
    let chosen = format!("href=\"{path}\" aria-current=\"true\">by positions played");
    assert_pages_say(&app, &[(path, &[chosen.as_str()])]).await;
    let odd = app.open("/runs/main/networks?over=moons").await;
    let odd = html(StatusCode::BAD_REQUEST, odd).await;
    for part in ["`moons`", "`numbers`", "`positions`"] {
        assert!(odd.contains(part), "{part}: {odd}");
    }
}
