//! Games: listed, shown with their moves, told as PGN, found by who played them.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::matches::{GameDetail, GameInfo};
use rookery_common::protocol::networks::NetworkInfo;

use crate::support::app::{TestApp, body, code};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{pair_games, selfplay};
use crate::support::matches::{contested, gated, play};
use crate::support::selfplay::selfplays;

#[tokio::test]
async fn games_are_listed_and_shown_with_their_moves() {
    let app = TestApp::with_network().await;
    selfplays(&app, &app.alice, &[1, 2]).await;
    let list: Vec<GameInfo> = app.get("/games?run=main&network=0&kind=self-play").await;
    assert_eq!(list.len(), 2);
    assert!(list[0].id > list[1].id, "newest first");
    let newest: Vec<GameInfo> = app.get("/games?network=0&limit=1").await;
    assert_eq!(newest, list[..1]);
    let others: Vec<GameInfo> = app.get("/games?network=1").await;
    assert!(others.is_empty());
    let hash = app.get::<NetworkInfo>("/networks/best").await.hash;
    for name in ["best".to_owned(), hash.to_string()] {
        let of_it: Vec<GameInfo> = app.get(&format!("/games?network={name}")).await;
        assert_eq!(of_it, list, "{name}");
    }
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
    let top = [("g1f3".to_owned(), 0.99), ("g1h3".to_owned(), 0.01)];
    assert_eq!(game.moves[0].top, top);
    let path = format!("/games/{}", list[1].id);
    let pgn = app.look("", &format!("{path}/pgn")).await;
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
async fn the_site_of_a_game_is_the_address_that_was_asked_unless_the_operator_says_another() {
    let app = contested().await;
    let ask = async |path: &str, host: &str| {
        let request = Request::get(format!("/api/v1{path}"))
            .header(header::HOST, host)
            .header(header::ACCEPT, "application/vnd.chess-pgn");
        let request = request.body(Body::empty()).unwrap();
        String::from_utf8(body(app.send(request).await).await).unwrap()
    };
    for path in ["/games/2", "/games/2/pgn", "/games/pgn", "/matches/1/pgn"] {
        let pgn = ask(path, "chess.example.org:8080").await;
        let site = "[Site \"http://chess.example.org:8080/games/2\"]";
        assert!(pgn.contains(site), "{path}: {pgn}");
        let pgn = ask(path, "<script>").await;
        assert!(pgn.contains("[Site \"?\"]"), "{path}: {pgn}");
    }
}

#[tokio::test]
async fn all_games_of_a_match_are_one_file() {
    let app = gated().await;
    let fetch = async |id: u64| {
        let path = format!("/matches/{id}/pgn");
        app.look("", &path).await
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
    app.hand_in(&app.bob, &job, half).await;
    let pgn = String::from_utf8(body(fetch(1).await).await).unwrap();
    let list: Vec<GameInfo> = app.get("/games?kind=match").await;
    assert_eq!(list.len(), 3);
    let mut alone = String::new();
    for game in [&list[0], &list[2], &list[1]] {
        let path = format!("/games/{}/pgn", game.id);
        let one = app.look("", &path).await;
        alone += &String::from_utf8(body(one).await).unwrap();
    }
    assert_eq!(pgn, alone, "the newest chunk, then the older one's games");
    assert_eq!(fetch(9).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn chosen_games_are_one_file() {
    let app = TestApp::with_network().await;
    for (who, seeds) in [(&app.alice, [1, 2]), (&app.bob, [3, 4])] {
        selfplays(&app, who, &seeds).await;
    }
    let fetch = async |query: &str| {
        let path = format!("/games/pgn?{query}");
        app.look("", &path).await
    };
    let games = async |query: &str| {
        let file = fetch(query).await;
        assert_eq!(file.status(), StatusCode::OK, "{query}");
        let name = &file.headers()[header::CONTENT_DISPOSITION];
        // A network's number is one of the only run.
        let of_run = query.contains("run=") || query.contains("network=");
        let run = if of_run { "main-" } else { "" };
        assert_eq!(name, &format!("attachment; filename=\"{run}games.pgn\""));
        let text = String::from_utf8(body(file).await).unwrap();
        text.matches("[Event ").count()
    };
    for (query, count) in [
        ("", 4),
        ("contributor=alice", 2),
        ("run=main&network=0&kind=self-play", 4),
        ("network=1", 0),
        ("before=2", 1),
        ("limit=3", 3),
        ("limit=0", 1),
        ("limit=4000000000", 4),
    ] {
        assert_eq!(games(query).await, count, "{query}");
    }
    let listed: Vec<GameInfo> = app.get("/games?contributor=bob&limit=1").await;
    let path = format!("/games/{}/pgn", listed[0].id);
    let alone = app.look("", &path).await;
    let newest = fetch("contributor=bob&limit=1").await;
    assert_eq!(body(newest).await, body(alone).await);
    let odd = fetch("kind=selfplay").await;
    assert_eq!(code(odd).await, ProblemCode::BadRequest);
    let nobody = fetch("contributor=carol").await;
    assert_eq!(code(nobody).await, ProblemCode::NotFound);
}

#[tokio::test]
async fn contributors_find_their_own_games() {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    let games = [selfplay(&job, 0, 1), selfplay(&job, 1, 2)];
    app.hand_in(&app.alice, &job, &games).await;
    selfplays(&app, &app.bob, &[3]).await;
    // The job's second chunk.
    app.hand_in(&app.alice, &job, &[selfplay(&job, 2, 4)]).await;
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
    let least = i64::MIN;
    for search in ["result=draw", "max_plies=9"] {
        assert!(list(&format!("{search}&before={least}")).await.is_empty());
    }
    for none in ["kind=match", "network=1", "match=1", "before=0"] {
        let found = list(&format!("contributor=alice&{none}")).await;
        assert!(found.is_empty(), "{none}");
    }
    for nobody in ["carol", "a%00b", ""] {
        let path = format!("/games?contributor={nobody}");
        let answer = app.look("", &path).await;
        assert_eq!(code(answer).await, ProblemCode::NotFound, "{nobody}");
    }
}
