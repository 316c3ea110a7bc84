//! What anyone may look at.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use futures_util::StreamExt as _;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{GameDetail, GameInfo};
use rookery_common::protocol::networks::{NetworkInfo, PuzzleScore};
use rookery_common::protocol::people::{
    ActiveWorkers, ContributorDetail, ContributorInfo, Credit, Span,
};
use rookery_common::protocol::runs::{MetricPoint, RunInfo};
use rookery_common::puzzle::Puzzle;
use rookery_coordinator::config::Registration;
use rookery_coordinator::store::PuzzleSetDraft;
use serde_json::json;
use tokio::time::timeout;

use crate::support::app::{TestApp, body, code, params, parse, run, value};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{chunk, pair_games, puzzle, puzzle_game, selfplay};
use crate::support::matches::{gated, play};
use crate::support::noon;
use crate::support::selfplay::{selfplays, started};

#[tokio::test]
async fn games_are_listed_and_shown_with_their_moves() {
    let app = TestApp::new().await;
    app.submit(0).await;
    selfplays(&app, &app.alice, &[1, 2]).await;
    let list: Vec<GameInfo> = app.get("/games?run=main&network=0&kind=self-play").await;
    assert_eq!(list.len(), 2);
    assert!(list[0].id > list[1].id, "newest first");
    let newest: Vec<GameInfo> = app.get("/games?network=0&limit=1").await;
    assert_eq!(newest, list[..1]);
    let others: Vec<GameInfo> = app.get("/games?network=1").await;
    assert!(others.is_empty());
    let older: Vec<GameInfo> = app.get(&format!("/games?before={}", list[0].id)).await;
    assert_eq!(older, list[1..]);
    assert!(
        app.get::<Vec<GameInfo>>("/games?kind=match")
            .await
            .is_empty()
    );
    let game: GameDetail = app.get(&format!("/games/{}", list[1].id)).await;
    assert_eq!(game.info, list[1]);
    assert_eq!(
        (game.info.contributor.as_str(), game.info.plies),
        ("alice", 8)
    );
    let second: GameDetail = app.get(&format!("/games/{}", list[0].id)).await;
    assert_eq!(second.info, list[0]);
    assert_eq!((second.info.place, second.moves.len()), (1, 8));
    let sans: Vec<&str> = game.moves.iter().map(|m| m.san.as_str()).collect();
    assert_eq!(
        sans,
        ["Nf3", "Nf6", "Ng1", "Ng8", "Nf3", "Nf6", "Ng1", "Ng8"]
    );
    assert_eq!(
        game.moves[0].fen,
        "rnbqkbnr/pppppppp/8/8/8/5N2/PPPPPPPP/RNBQKB1R b KQkq - 1 1"
    );
    assert_eq!(game.moves[0].top, [("g1f3".to_owned(), 1.0)]);
    let path = format!("/games/{}", list[1].id);
    let pgn = app
        .call(Method::GET, &format!("{path}/pgn"), "", Body::empty())
        .await;
    assert_eq!(
        pgn.headers()[header::CONTENT_TYPE],
        "application/vnd.chess-pgn"
    );
    let pgn = String::from_utf8(body(pgn).await).unwrap();
    assert!(
        pgn.contains("[White \"main #0\"]") && pgn.contains("1. Nf3"),
        "{pgn}"
    );
    let request = Request::get(format!("/api/v1{path}"))
        .header(header::ACCEPT, "application/vnd.chess-pgn")
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        String::from_utf8(body(app.send(request).await).await).unwrap(),
        pgn
    );
}

#[tokio::test]
async fn all_games_of_a_match_are_one_file() {
    let app = gated().await;
    let fetch = async |id: u64| {
        let path = format!("/matches/{id}/pgn");
        app.call(Method::GET, &path, "", Body::empty()).await
    };
    let empty = fetch(1).await;
    assert_eq!(empty.status(), StatusCode::OK);
    assert_eq!(
        empty.headers()[header::CONTENT_DISPOSITION],
        "attachment; filename=\"main-match-1.pgn\""
    );
    assert!(body(empty).await.is_empty());
    // Half a pair is a game, too.
    play(&app, &app.alice, [Win, Loss]).await;
    let job = app.lease(&app.bob).await;
    let half = &pair_games(&job, 0, [Win, Draw])[..1];
    app.accepted(&app.bob, &chunk(&job, half)).await;
    let pgn = String::from_utf8(body(fetch(1).await).await).unwrap();
    let list: Vec<GameInfo> = app.get("/games?kind=match").await;
    assert_eq!(list.len(), 3);
    let mut alone = String::new();
    for game in [&list[0], &list[2], &list[1]] {
        let path = format!("/games/{}/pgn", game.id);
        let one = app.call(Method::GET, &path, "", Body::empty()).await;
        alone += &String::from_utf8(body(one).await).unwrap();
    }
    assert_eq!(pgn, alone, "the newest chunk, then the older one's games");
    assert_eq!(fetch(9).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn contributors_find_their_own_games() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let job = app.lease(&app.alice).await;
    let games = [selfplay(&job, 0, 1), selfplay(&job, 1, 2)];
    app.accepted(&app.alice, &chunk(&job, &games)).await;
    selfplays(&app, &app.bob, &[3]).await;
    // The job's second chunk.
    app.accepted(&app.alice, &chunk(&job, &[selfplay(&job, 2, 4)]))
        .await;
    let list = async |query: &str| -> Vec<GameInfo> { app.get(&format!("/games?{query}")).await };
    let all = list("").await;
    assert_eq!(all.len(), 4);
    let is_own = |game: &&GameInfo| game.contributor == "alice";
    let own: Vec<GameInfo> = all.iter().filter(is_own).cloned().collect();
    assert_eq!(own.len(), 3);
    for rest in ["", "&run=main&kind=self-play", "&network=0&limit=3"] {
        let found = list(&format!("contributor=Alice{rest}")).await;
        assert_eq!(found, own, "newest first: {rest}");
    }
    for (place, game) in own.iter().enumerate() {
        let next = list(&format!("contributor=alice&limit=1&before={}", game.id)).await;
        let expected: Vec<GameInfo> = own.iter().skip(place + 1).take(1).cloned().collect();
        assert_eq!(next, expected);
    }
    for none in ["kind=match", "network=1", "match=1", "before=0"] {
        let found = list(&format!("contributor=alice&{none}")).await;
        assert!(found.is_empty(), "{none}");
    }
    for nobody in ["carol", "a%00b", ""] {
        let path = format!("/games?contributor={nobody}");
        let answer = app.call(Method::GET, &path, "", Body::empty()).await;
        assert_eq!(code(answer).await, ProblemCode::NotFound, "{nobody}");
    }
}

#[tokio::test]
async fn games_are_shown_while_all_cores_verify() {
    let app = started().await;
    let verifying = &app.app.verifying;
    let mut busy = Vec::new();
    while verifying.free() > 0 {
        busy.push(verifying.next().await);
    }
    for path in ["/games/1", "/api/v1/games/1", "/api/v1/games/1/pgn"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = timeout(Duration::from_secs(30), app.send(request)).await;
        assert_eq!(answer.unwrap().status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn lists_leave_the_ledger_to_others() {
    let app = TestApp::new().await;
    let listing = &app.app.listing;
    let mut busy = Vec::new();
    while listing.free() > 0 {
        busy.push(listing.next().await);
    }
    for path in [
        "/api/v1/games",
        "/runs/main/games",
        "/api/v1/contributors",
        "/runs/main/contributors",
    ] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let waits = timeout(Duration::from_millis(100), app.send(request)).await;
        assert!(waits.is_err(), "{path}");
    }
    assert_eq!(app.get::<Vec<RunInfo>>("/runs").await.len(), 1);
    busy.clear();
    assert!(app.get::<Vec<GameInfo>>("/games").await.is_empty());
}

#[tokio::test]
async fn puzzles_are_posed_and_scored_by_theme_and_rating() {
    let mut params = params();
    params.scheduling.puzzle_share = 1.0;
    let app = TestApp::with(Registration::Open, params).await;
    app.submit(0).await;
    assert_eq!(
        app.lease(&app.alice).await.work.kind(),
        WorkKind::SelfPlay,
        "none yet"
    );
    let puzzles = vec![puzzle("one"), puzzle("two")];
    let set = PuzzleSetDraft {
        run: run(),
        name: "own".to_owned(),
        puzzles,
    };
    let store = &app.app.store;
    let added = store.add_puzzles(set.clone(), noon()).await.unwrap();
    assert_eq!(added.puzzles, 2);
    assert_eq!(
        store.add_puzzles(set, noon()).await.unwrap(),
        added,
        "the same set again"
    );
    let job = app.lease(&app.alice).await;
    assert_eq!((job.work.kind(), job.work.games()), (WorkKind::Puzzles, 2));
    let games = [puzzle_game(&job, 0, true), puzzle_game(&job, 1, false)];
    app.accepted(&app.alice, &chunk(&job, &games)).await;
    let score: PuzzleScore = app.get("/networks/best/puzzles").await;
    assert_eq!((score.tried, score.solved), (2, 1));
    app.submit(1).await;
    let list: Vec<NetworkInfo> = app.get("/networks").await;
    let scores: Vec<_> = list.into_iter().map(|network| network.puzzles).collect();
    assert_eq!(scores, [None, Some(score.clone())], "each has its own");
    let short = store.networks_in_short(&run()).await.unwrap();
    let only = PuzzleScore {
        tried: 2,
        solved: 1,
        ..PuzzleScore::default()
    };
    let scores: Vec<_> = short.into_iter().map(|network| network.puzzles).collect();
    assert_eq!(scores, [None, Some(only)]);
    let names: Vec<&str> = score
        .themes
        .iter()
        .map(|group| group.name.as_str())
        .collect();
    assert_eq!(names, ["backRankMate", "mateIn1"]);
    assert_eq!(score.ratings[0].name, "1200-1399");
    assert_eq!((score.ratings[0].tried, score.ratings[0].solved), (2, 1));
    let performance = score.performance.unwrap();
    assert!((performance.elo - 1_300.0).abs() < 0.1, "{performance:?}");
    assert!(performance.low < 1_000.0 && performance.high > 1_600.0);
    assert_eq!(app.get::<Puzzle>("/puzzles/main/one").await, puzzle("one"));
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!(run.training_positions, 3);
    app.assert_consistent().await;
    for (quarantined, tried, positions) in [(true, 0, 0), (false, 2, 3)] {
        assert_eq!(app.order("/users/alice", quarantined).await, 204);
        let score: PuzzleScore = app.get("/networks/best/puzzles").await;
        let run: RunInfo = app.get("/runs/main").await;
        assert_eq!((score.tried, run.training_positions), (tried, positions));
        app.assert_consistent().await;
    }
}

#[tokio::test]
async fn contributors_get_credit() {
    let app = started().await;
    let list: Vec<ContributorInfo> = app.get("/contributors?run=main").await;
    assert_eq!(list.len(), 1);
    assert_eq!(
        (list[0].name.as_str(), list[0].games, list[0].positions),
        ("alice", 1, 8)
    );
    assert_eq!(list[0].active_workers, 1);
    app.clock.advance_seconds(601);
    let later: Vec<ContributorInfo> = app.get("/contributors").await;
    assert_eq!(later[0].active_workers, 0);
}

#[tokio::test]
async fn credit_is_told_of_recent_time() {
    let app = started().await;
    app.clock.advance_seconds(25 * 3600);
    selfplays(&app, &app.bob, &[2, 3]).await;
    let list = async |query: &str| -> Vec<ContributorInfo> {
        app.get(&format!("/contributors?{query}")).await
    };
    let names = async |query: &str| -> Vec<String> {
        let listed = list(query).await;
        listed.into_iter().map(|person| person.name).collect()
    };
    for query in ["span=24h", "run=main&span=24h"] {
        let today = list(query).await;
        let recent = Credit {
            games: 2,
            positions: 16,
        };
        assert_eq!(today.len(), 1, "{query}");
        assert_eq!((today[0].name.as_str(), today[0].games), ("bob", 2));
        assert_eq!(today[0].recent, Some(recent));
    }
    assert_eq!(names("span=7d&run=main").await, ["bob", "alice"]);
    assert_eq!(names("span=30d&skip=1").await, ["alice"]);
    assert_eq!(names("limit=1").await, ["bob"]);
    assert_eq!(list("span=all").await[1].recent, None);
    // Days count whole.
    app.clock.advance_seconds(7 * 24 * 3600);
    assert!(names("span=24h").await.is_empty());
    assert_eq!(names("span=7d").await, ["bob"]);
    assert_eq!(names("span=30d").await, ["bob", "alice"]);
    for (quarantined, listed) in [(true, &["alice"][..]), (false, &["bob", "alice"][..])] {
        assert_eq!(app.order("/users/bob", quarantined).await, 204);
        assert_eq!(names("span=30d").await, listed);
        app.assert_consistent().await;
    }
    let odd = app.call(Method::GET, "/contributors?span=1y", "", Body::empty());
    assert_eq!(code(odd.await).await, ProblemCode::BadRequest);
}

#[tokio::test]
async fn a_contributor_is_told_of_alone() {
    let app = started().await;
    let positions = |person: &ContributorDetail| -> Vec<(Span, u64)> {
        let credit = person.credit.iter();
        credit.map(|of| (of.span, of.credit.positions)).collect()
    };
    let spans = |given: [u64; 4]| Span::ALL.into_iter().zip(given).collect::<Vec<_>>();
    for path in ["/contributors/Alice?run=main", "/contributors/alice"] {
        let alice: ContributorDetail = app.get(path).await;
        assert_eq!((alice.info.name.as_str(), alice.info.games), ("alice", 1));
        assert_eq!(positions(&alice), spans([8; 4]));
        let [worker] = &alice.workers[..] else {
            panic!("one worker")
        };
        assert_eq!(
            (worker.name.as_str(), worker.version.as_str()),
            ("w", "0.1.0")
        );
        assert_eq!(worker.job_kind, Some(WorkKind::SelfPlay));
    }
    app.lease(&app.bob).await;
    let bob: ContributorDetail = app.get("/contributors/bob").await;
    assert_eq!((positions(&bob), bob.workers.len()), (spans([0; 4]), 1));
    let active: ActiveWorkers = app.get("/workers?limit=1").await;
    assert_eq!((active.all, active.last_heard.len()), (2, 1));
    app.clock.advance_seconds(8 * 24 * 3600);
    let alice: ContributorDetail = app.get("/contributors/alice").await;
    assert_eq!(positions(&alice), spans([0, 0, 8, 8]));
    assert!(alice.workers.is_empty());
    assert_eq!(app.get::<ActiveWorkers>("/workers").await.all, 0);
    for nobody in ["carol", "a%00b", "alice?run=other"] {
        let path = format!("/contributors/{nobody}");
        let answer = app.call(Method::GET, &path, "", Body::empty());
        assert_eq!(code(answer.await).await, ProblemCode::NotFound, "{nobody}");
    }
}

#[tokio::test]
async fn metrics_are_taken_replaced_and_bounded() {
    let app = TestApp::new().await;
    let report = async |body: serde_json::Value| {
        app.call(
            Method::POST,
            "/runs/main/metrics",
            &app.trainer,
            body.to_string(),
        )
        .await
    };
    let point = |step: u64, loss: f64| json!({"step": step, "values": {"loss": loss}});
    let first = report(json!({"points": [point(1, 3.0), point(2, 2.0)]})).await;
    assert_eq!(first.status(), StatusCode::NO_CONTENT);
    report(json!({"points": [point(2, 1.5)]})).await;
    let points: Vec<MetricPoint> = app.get("/runs/main/metrics?after=1").await;
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].values["loss"], 1.5);
    let last = async || {
        let info: RunInfo = app.get("/runs/main").await;
        info.last_report.unwrap()
    };
    assert_eq!(
        (last().await.step, last().await.at),
        (2, noon().to_string())
    );
    app.clock.advance_seconds(600);
    let page = app.page("/runs/main/training").await;
    assert!(page.contains("last heard 10 min ago, at step 2"), "{page}");
    report(json!({"points": [point(1, 2.5)]})).await;
    assert_eq!(last().await.step, 1, "a trainer that began anew");
    let many: Vec<_> = (0..1001).map(|step| point(step, 0.0)).collect();
    assert_eq!(
        code(report(json!({"points": many})).await).await,
        ProblemCode::BadRequest
    );
    for name in [&*"n".repeat(65), "loss\0", "\u{1b}[2J", "\u{202e}ssol"] {
        let odd = json!({"step": 1, "values": {name: 1.0}});
        assert_eq!(
            code(report(json!({"points": [odd]})).await).await,
            ProblemCode::BadRequest,
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn a_long_training_is_shown_from_its_beginning_to_its_last_step() {
    let app = TestApp::new().await;
    let store = &app.app.store;
    for thousand in 0..=20 {
        let steps = (1_000 * thousand..=20_000).take(1_000);
        let points = steps.map(|step| MetricPoint {
            step,
            values: [("loss".to_owned(), 1.0)].into(),
        });
        let points = points.collect();
        store.add_metrics(&run(), points, noon()).await.unwrap();
    }
    let page = app.page("/runs/main/training").await;
    assert!(page.contains("up to step 20\u{202f}000"), "{page}");
    let few = store.metrics_throughout(&run(), 10).await.unwrap();
    let steps: Vec<u64> = few.iter().map(|point| point.step).collect();
    assert!(steps.is_sorted() && steps.len() <= 10, "{steps:?}");
    assert!(
        steps[0] <= 2_001 && steps.last() == Some(&20_000),
        "{steps:?}"
    );
    let all = store.metrics_throughout(&run(), 20_001).await.unwrap();
    assert_eq!(all.len(), 20_001);
}

#[tokio::test]
async fn one_report_of_a_far_step_hides_no_others() {
    let app = TestApp::new().await;
    let store = &app.app.store;
    let point = |step: u64| MetricPoint {
        step,
        values: [("loss".to_owned(), 1.0)].into(),
    };
    let add = async |points: Vec<MetricPoint>| {
        store.add_metrics(&run(), points, noon()).await.unwrap();
    };
    add((1..=1_000).map(|n| point(10 * n)).collect()).await;
    for far in [1_000_000_000, 1 << 53, i64::MAX.cast_unsigned()] {
        add(vec![point(far)]).await;
        let points = store.metrics_throughout(&run(), 400).await.unwrap();
        assert!((100..=400).contains(&points.len()), "{}", points.len());
        let steps: Vec<u64> = points.iter().map(|point| point.step).collect();
        assert!(steps.is_sorted() && steps.last() == Some(&far), "{steps:?}");
        let own = steps.iter().filter(|step| **step <= 10_000).count();
        assert!(steps[0] <= 200 && own >= steps.len() - 3, "{steps:?}");
    }
    let page = app.page("/runs/main/training").await;
    assert!(page.contains("up to step 10\u{202f}000"), "{page}");
    assert!(page.contains("A few reports are not drawn"), "{page}");
    // Hardly a point would be left of the line if the far steps were on the axis.
    let line = page.split("class=\"line plain\" d=\"").nth(1).unwrap();
    let line = line.split('"').next().unwrap();
    assert!(line.matches('L').count() >= 300, "{line}");
}

#[tokio::test]
async fn parameters_out_of_range_do_not_reach_a_run() {
    let app = TestApp::new().await;
    let patch = async |body: serde_json::Value| {
        app.call(Method::PATCH, "/runs/main", &app.operator, body.to_string())
            .await
    };
    let bad = json!({"params": {"selfplay": {"search": {"visits": 0}}}});
    assert_eq!(code(patch(bad).await).await, ProblemCode::BadRequest);
    let bad = json!({"params": {"gate": {"kind": "fixed", "games": 0, "threshold": 0.5}}});
    assert_eq!(code(patch(bad).await).await, ProblemCode::BadRequest);
    let good = value(patch(json!({"description": "new"})).await).await;
    assert_eq!(good["description"], "new");
    assert_eq!(
        good["params"]["scheduling"]["match_games"], 2,
        "the rest stays"
    );
}

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
    app.app.store.close().await;
    app.clock.advance_seconds(2);
    let down = ready(StatusCode::SERVICE_UNAVAILABLE).await;
    assert_eq!(down["database"], json!("down"));
}

#[tokio::test]
async fn the_number_of_runs_decides_whether_one_must_be_named() {
    let app = TestApp::new().await;
    app.submit(0).await;
    let draft = rookery_coordinator::store::RunDraft {
        name: "second".parse().unwrap(),
        description: String::new(),
        params: params(),
    };
    app.app
        .store
        .create_run(draft, "test", noon())
        .await
        .unwrap();
    let answer = app.call(Method::GET, "/networks", "", Body::empty()).await;
    assert_eq!(code(answer).await, ProblemCode::BadRequest);
    let best: rookery_common::protocol::networks::NetworkInfo =
        app.get("/networks/best?run=main").await;
    assert_eq!(best.number, NetworkNumber(0));
}

#[tokio::test]
async fn the_openapi_document_names_every_route_and_problem() {
    let app = TestApp::new().await;
    let document: serde_json::Value = app.get("/openapi.json").await;
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/users",
        "/jobs",
        "/jobs/{id}",
        "/jobs/{id}/heartbeat",
        "/chunks",
        "/chunks/{sha256}",
        "/networks",
        "/networks/{name}",
        "/networks/{name}/file",
        "/networks/{name}/puzzles",
        "/networks/{name}/rejection",
        "/runs",
        "/runs/{run}",
        "/runs/{run}/metrics",
        "/matches",
        "/matches/{id}",
        "/games",
        "/games/{id}",
        "/games/{id}/pgn",
        "/ratings",
        "/contributors",
        "/contributors/{name}",
        "/workers",
        "/puzzles",
        "/events",
    ] {
        assert!(paths.contains_key(&format!("/api/v1{path}")), "{path}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let references = document.to_string();
    for part in references.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            schemas.contains_key(name),
            "{name} is referred to and not described"
        );
    }
    assert_operations_are_well_described(paths);
    let games = &paths["/api/v1/games"]["get"];
    assert_eq!(games["operationId"], "get_games");
    let parameters = games["parameters"].as_array().unwrap();
    let limit = parameters.iter().find(|p| p["name"] == "limit").unwrap();
    assert_eq!(
        (&limit["in"], &limit["required"]),
        (&json!("query"), &json!(false))
    );
    assert_eq!(limit["schema"]["minimum"].as_f64(), Some(1.0));
}

/// Every operation has an identifier of its own, and its parameters in the path are those that the
/// path has.
fn assert_operations_are_well_described(paths: &serde_json::Map<String, serde_json::Value>) {
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        let in_path: BTreeSet<&str> = path
            .split('{')
            .skip(1)
            .filter_map(|part| part.split('}').next())
            .collect();
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is there twice");
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let described: BTreeSet<&str> = parameters
                .filter(|parameter| parameter["in"] == "path")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            assert_eq!(described, in_path, "{method} {path}");
        }
    }
}
