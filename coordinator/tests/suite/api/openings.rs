//! Openings: named when a game is accepted, found by code and by name, and named later in older ledgers.

use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::matches::GameInfo;
use rookery_coordinator::background::openings::name_openings;

use crate::support::app::{TestApp, body, code};
use crate::support::games::{selfplay, selfplay_of};

/// Games: two knights' dances of alice, a fool's mate of bob.
async fn played() -> TestApp {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    let games = [selfplay(&job, 0, 1), selfplay(&job, 1, 2)];
    app.hand_in(&app.alice, &job, &games).await;
    let job = app.lease(&app.bob).await;
    let games = [selfplay_of(&job, 0, &["f2f3", "e7e5", "g2g4", "d8h4"])];
    app.hand_in(&app.bob, &job, &games).await;
    app
}

async fn list(app: &TestApp, query: &str) -> Vec<GameInfo> {
    app.get(&format!("/games?{query}")).await
}

async fn numbers(app: &TestApp, query: &str) -> Vec<i64> {
    let games = list(app, query).await;
    games.iter().map(|game| game.id.0).collect()
}

fn names(games: &[GameInfo]) -> Vec<(Option<&str>, Option<&str>)> {
    let games = games.iter();
    games
        .map(|game| (game.eco.as_deref(), game.opening_name.as_deref()))
        .collect()
}

#[tokio::test]
async fn games_are_chosen_by_their_opening_with_every_other_filter() {
    let app = played().await;
    let zukertort = (Some("A05"), Some("Zukertort Opening"));
    let barnes = (Some("A00"), Some("Barnes Opening"));
    let all = list(&app, "").await;
    assert_eq!(names(&all), [barnes, zukertort, zukertort]);
    let [mate, second, first] = [0, 1, 2].map(|place| all[place].id.0);
    for opening in ["opening=A05", "opening=zukertort%20opening"] {
        for (others, found) in [
            ("", &[second, first][..]),
            ("&limit=1", &[second]),
            (&format!("&before={second}"), &[first]),
            ("&run=main&kind=self-play", &[second, first]),
            ("&kind=match", &[]),
            ("&network=0", &[second, first]),
            ("&network=0&kind=self-play", &[second, first]),
            ("&network=0&kind=match", &[]),
            ("&network=1", &[]),
            ("&contributor=alice", &[second, first]),
            ("&contributor=bob", &[]),
            ("&contributor=alice&network=0&result=draw", &[second, first]),
            ("&match=1", &[]),
            ("&result=draw&max_plies=8", &[second, first]),
            ("&result=black-wins", &[]),
            ("&termination=checkmate", &[]),
        ] {
            assert_eq!(
                numbers(&app, &format!("{opening}{others}")).await,
                found,
                "{opening}{others}"
            );
        }
    }
    assert_eq!(numbers(&app, "opening=Barnes%20Opening").await, [mate]);
    assert!(numbers(&app, "opening=B20").await.is_empty());
    let path = "/games/pgn?opening=A00";
    let file = app.look("", path).await;
    let file = String::from_utf8(body(file).await).unwrap();
    assert_eq!(file.matches("[Event ").count(), 1, "{file}");
    for unknown in ["", "Z99", "Zukertort", "a%00b"] {
        let path = format!("/games?opening={unknown}");
        let answer = app.look("", &path).await;
        assert_eq!(code(answer).await, ProblemCode::BadRequest, "{unknown}");
    }
    // Which run, if there are several?
    app.create_run("other").await;
    let answer = app.look("", "/games?opening=A00").await;
    assert_eq!(code(answer).await, ProblemCode::BadRequest);
    assert!(numbers(&app, "run=other&opening=A00").await.is_empty());
}

#[tokio::test]
async fn the_page_of_games_asks_for_an_opening() {
    let app = played().await;
    let page = app
        .page("/runs/main/games?opening=barnes+opening&kind=self-play")
        .await;
    assert!(
        page.contains("<a href=\"/games/3\">") && !page.contains("<a href=\"/games/1\">"),
        "{page}"
    );
    assert!(page.contains("value=\"Barnes Opening\""), "{page}");
    assert!(
        page.contains("<input type=\"hidden\" name=\"kind\" value=\"self-play\">"),
        "{page}"
    );
    assert!(
        page.contains("<option value=\"Sicilian Defense\">"),
        "{page}"
    );
    let all = app.page("/runs/main/games?opening=+").await;
    assert!(all.contains("<a href=\"/games/1\">"), "{all}");
    let said = ["No opening is called “&#60;b&#62;”"];
    app.says("/runs/main/games?opening=%3Cb%3E", &said).await;
    app.says("/games/3", &["/runs/main/games?opening=Barnes%20Opening"])
        .await;
}

#[tokio::test]
async fn games_of_an_older_ledger_get_their_openings_from_their_chunks() {
    let app = played().await;
    let before = list(&app, "").await;
    let older = "UPDATE games SET eco = NULL, opening = NULL";
    app.database.tamper(older).await;
    let note = "have no opening yet";
    let page = "/runs/main/games?opening=A05";
    assert!(app.page(page).await.contains(note));
    assert!(numbers(&app, "opening=A05").await.is_empty());
    assert_eq!(name_openings(&app.app).await.unwrap(), (2, 0), "chunks");
    assert_eq!(list(&app, "").await, before);
    assert!(!app.page(page).await.contains(note));
    assert_eq!(name_openings(&app.app).await.unwrap(), (0, 0));
    // What cannot be read does not keep the others from their names.
    let newest = "UPDATE games SET eco = NULL, opening = NULL";
    app.database.tamper(newest).await;
    app.app
        .blobs
        .remove(
            rookery_coordinator::blobs::BlobKind::Chunk,
            &before[0].chunk,
        )
        .await
        .unwrap();
    assert_eq!(name_openings(&app.app).await.unwrap(), (1, 1));
    let named = list(&app, "").await;
    assert_eq!(names(&named)[0], (None, None));
    assert_eq!(named[1..], before[1..]);
}
