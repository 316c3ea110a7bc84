//! The pages, as a browser asks for them.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use rookery_common::ids::ContentHash;
use rookery_common::network::Program;
use rookery_common::params::RunParams;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::networks::NetworkInfo;
use rookery_common::protocol::server::{Link, Presentation};
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::config::{AccessConfig, PageUrl, Registration};

use crate::support::anchors::{beaten_by_an_anchor, submit_program};
use crate::support::app::{TestApp, body, code, html, params};
use crate::support::selfplay::{selfplays, started};

/// A page whose commands stand as they are typed: their words are spans, between which lines break.
fn without_spans(page: &str) -> String {
    page.replace("<span>", "").replace("</span>", "")
}

#[tokio::test]
async fn the_page_of_trust_says_where_the_worker_keeps_its_token() {
    let app = TestApp::new().await;
    let page = app.page("/trust").await;
    assert!(
        page.contains("~/.local/share/rookery/tokens.toml"),
        "{page}"
    );
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

/// Checks that each page has its texts.
async fn assert_pages_say(app: &TestApp, said: &[(&str, &[&str])]) {
    for (path, texts) in said {
        let page = app.page(path).await;
        for words in *texts {
            assert!(page.contains(words), "{path}: {words}: {page}");
        }
    }
}

#[tokio::test]
async fn pages_say_from_what_ratings_are_counted() {
    let app = beaten_by_an_anchor(Some(1100)).await;
    let scale = "counted from maia-1100 = 1100";
    let given = "fixed by the operator, not measured";
    assert_pages_say(
        &app,
        &[
            ("/runs/main", &[scale]),
            ("/runs/main/networks", &[scale, "maia-1100 (1100 given)"]),
            ("/runs/main/networks/0", &[scale, "95 % interval"]),
            ("/runs/main/networks/1", &[given, "1100 <small>Elo"]),
        ],
    )
    .await;
    let app = beaten_by_an_anchor(None).await;
    let scale = "counted from network 0 = 0";
    let reference = "the reference of all ratings";
    assert_pages_say(
        &app,
        &[
            ("/runs/main", &[scale, "0 Elo, the reference"]),
            ("/runs/main/networks", &[scale]),
            ("/runs/main/networks/0", &[reference]),
            ("/runs/main/networks/1", &[scale, "95 % interval"]),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_programs_page_says_what_it_does_and_nothing_of_networks() {
    let app = TestApp::new().await;
    app.submit(0).await;
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
    let app = TestApp::new().await;
    app.submit(0).await;
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
    let app = TestApp::new().await;
    app.submit(0).await;
    selfplays(&app, &app.alice, &[1]).await;
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
async fn the_list_of_runs_is_one_also_where_there_is_only_one() {
    let app = TestApp::new().await;
    let home = app.page("/").await;
    assert!(home.contains("<a href=\"/runs\">all runs</a>"), "{home}");
    let list = app.page("/runs").await;
    assert!(list.contains("<h1>Runs</h1>"), "{list}");
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
    let home = app.page("/").await;
    assert!(
        home.contains(&format!("rel=\"icon\" href=\"{address}\"")),
        "{home}"
    );
    let icon = app.open(address).await;
    assert_eq!(icon.headers()[header::CONTENT_TYPE], "image/svg+xml");
}

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
        (Registration::Closed, "ROOKERY_TOKEN=TOKEN rookery-worker"),
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

#[tokio::test]
async fn the_overview_says_what_workers_do_and_how_far_the_next_candidate_is() {
    let app = TestApp::new().await;
    app.submit(0).await;
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
    let pause = r#"{"status": "paused"}"#.to_owned();
    let paused = app.call(Method::PATCH, "/runs/main", &app.operator, pause);
    assert_eq!(paused.await.status(), StatusCode::OK);
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
async fn links_to_pages_show_what_they_are_elsewhere() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let description = r#"{"description": "A <small> net\n for tests"}"#.to_owned();
    let patched = app.call(Method::PATCH, "/runs/main", &app.operator, description);
    assert_eq!(patched.await.status(), StatusCode::OK);
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
    let own = r#"{"title": "Small net", "contact": "@bob:example.org"}"#.to_owned();
    let patched = app.call(Method::PATCH, "/runs/main", &app.operator, own);
    assert_eq!(patched.await.status(), StatusCode::OK);
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
    let app = TestApp::new().await;
    app.submit(0).await;
    selfplays(&app, &app.alice, &[1]).await;
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

#[tokio::test]
async fn renewals_are_shared_for_two_seconds_and_opened_pages_are_not() {
    let app = TestApp::new().await;
    app.submit(0).await;
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

#[tokio::test]
async fn contributors_are_listed_by_what_they_gave_lately() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let path = "/runs/main/contributors";
    let nobody = app.page(path).await;
    assert!(nobody.contains("No contributor yet"), "{nobody}");
    selfplays(&app, &app.alice, &[1]).await;
    app.clock.advance_seconds(25 * 3600);
    selfplays(&app, &app.bob, &[2, 3]).await;
    let all = "24 positions in all, in 3 games and 0 audits, by 2 contributors.";
    assert_pages_say(&app, &[(path, &[all, ">alice</a>", ">bob</a>"])]).await;
    let lately = format!("{path}?span=24h");
    let page = app.page(&lately).await;
    let said = "16 positions in the last 24 hours, in 2 games and 0 audits, by 1 contributor.";
    assert!(page.contains(said) && page.contains(">bob</a>"), "{page}");
    assert!(!page.contains(">alice</a>"), "{page}");
    let chosen = format!("href=\"{lately}\" aria-current=\"true\"");
    assert!(page.contains(&chosen), "{page}");
    app.clock.advance_seconds(25 * 3600);
    assert_pages_say(&app, &[(lately.as_str(), &["No contributor is listed"])]).await;
    let odd = app.open(&format!("{path}?span=1y")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn names_of_contributors_lead_to_their_pages_and_games() {
    let app = started().await;
    let link = "<a href=\"/runs/main/contributors/alice\">";
    let own = "/runs/main/games?contributor=alice";
    for path in [
        "/runs/main",
        "/runs/main/contributors",
        "/runs/main/games",
        "/games/1",
        own,
    ] {
        let page = app.page(path).await;
        assert!(page.contains(link), "{path}: {page}");
    }
    let page = app.page(own).await;
    assert!(page.contains("href=\"/games/1\""), "{page}");
    let choice = "?contributor=alice&#38;kind=puzzles\"";
    assert!(page.contains(choice), "{page}");
    let others = app.page("/runs/main/games?contributor=bob").await;
    assert!(others.contains("No game here"), "{others}");
    for nobody in ["carol", "a%00b"] {
        for path in ["games?contributor=", "contributors/"] {
            let path = format!("/runs/main/{path}{nobody}");
            assert_eq!(app.open(&path).await.status(), StatusCode::NOT_FOUND);
        }
    }
}

#[tokio::test]
async fn a_contributor_has_a_page_with_credit_games_and_workers() {
    let app = TestApp::new().await;
    app.submit(0).await;
    selfplays(&app, &app.alice, &[1, 2]).await;
    let path = "/runs/main/contributors/Alice";
    let page = app.page(path).await;
    for span in ["24 hours", "7 days", "30 days", "all time"] {
        assert!(page.contains(&format!("<h2>{span}</h2>")), "{page}");
    }
    assert_eq!(page.matches("<p class=\"big\">16</p>").count(), 4, "{page}");
    assert!(!page.contains("Positions a day"), "of one day: {page}");
    for part in [
        "<h1 class=\"hash\">alice</h1>",
        "href=\"/games/2\"",
        "href=\"/runs/main/games?contributor=alice\">all games",
        "<td>self-play</td><td class=\"n\">–</td><td>0.1.0</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    app.clock.advance_seconds(8 * 24 * 3600);
    let page = app.page(path).await;
    for (figure, count) in [("0", 2), ("16", 2)] {
        let figure = format!("<p class=\"big\">{figure}</p>");
        assert_eq!(page.matches(&figure).count(), count, "{page}");
    }
    assert!(page.contains("last seen 8 days ago"), "{page}");
    assert!(page.contains("<h2>Positions a day</h2>"), "{page}");
    // Nine days, on wide screens and on narrow ones.
    assert_eq!(
        page.matches("<g class=\"point day\">").count(),
        18,
        "{page}"
    );
    assert!(
        page.contains(": 16 positions, 2 games, 0 audits</title>"),
        "{page}"
    );
    assert!(page.contains("No worker was active"), "{page}");
    let idle = ["No game has been uploaded yet", "No worker was active"];
    assert_pages_say(&app, &[("/runs/main/contributors/bob", &idle)]).await;
    let nowhere = app.open("/runs/other/contributors/alice").await;
    assert_eq!(nowhere.status(), StatusCode::NOT_FOUND);
}
