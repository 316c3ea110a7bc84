//! Lists that visitors narrow, and pages that invite them.

use axum::http::{Method, StatusCode};
use rookery_common::chess::GameResult;
use rookery_common::protocol::matches::GameInfo;
use serde_json::json;

use crate::support::app::{TestApp, body};
use crate::support::matches::{contested, gated};

#[tokio::test]
async fn games_are_chosen_by_their_result() {
    let app = contested().await;
    let all: Vec<GameInfo> = app.get("/games?run=main").await;
    assert_eq!(all.len(), 3);
    for (name, result) in [
        ("white-wins", GameResult::WhiteWins),
        ("draw", GameResult::Draw),
        ("black-wins", GameResult::BlackWins),
    ] {
        let chosen: Vec<GameInfo> = app.get(&format!("/games?run=main&result={name}")).await;
        let expected: Vec<_> = all.iter().filter(|game| game.result == result).collect();
        assert_eq!(chosen.iter().collect::<Vec<_>>(), expected, "{name}");
        let sent: Vec<GameInfo> = app
            .get(&format!("/games?contributor=alice&result={name}"))
            .await;
        assert_eq!(sent, chosen, "{name}");
        let page = app.page(&format!("/runs/main/games?result={name}")).await;
        for game in &all {
            let link = format!("<a href=\"/games/{}\">", game.id);
            assert_eq!(
                page.contains(&link),
                game.result == result,
                "{name}: {page}"
            );
        }
    }
}

#[tokio::test]
async fn a_games_page_leads_to_those_beside_it_and_to_lichess() {
    let app = contested().await;
    let games: Vec<GameInfo> = app.get("/games?run=main&kind=match").await;
    let [second, first] = &games[..] else {
        panic!("{games:?}");
    };
    let page = app.page(&format!("/games/{}", first.id)).await;
    let next = format!("rel=\"next\" href=\"/games/{}\"", second.id);
    assert!(
        page.contains(&next) && !page.contains("rel=\"prev\""),
        "{page}"
    );
    assert!(
        page.contains("https://lichess.org/analysis/standard/"),
        "{page}"
    );
    let pgn = body(app.open(&format!("/api/v1/games/{}/pgn", first.id)).await).await;
    let pgn = String::from_utf8(pgn).unwrap();
    assert!(pgn.contains("{[%eval "), "{pgn}");
}

#[tokio::test]
async fn networks_are_listed_without_rejected_ones_and_by_strength() {
    let app = gated().await;
    let reason = json!({"reason": "no worker can compute it"}).to_string();
    let path = "/networks/1/rejection?run=main";
    let answer = app.call(Method::POST, path, &app.operator, reason).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let row = "href=\"/runs/main/networks/1\">#1</a>";
    for (query, listed) in [
        ("", true),
        ("?sort=rating", true),
        ("?show=without-rejected", false),
        ("?show=without-rejected&sort=puzzles", false),
    ] {
        let page = app.page(&format!("/runs/main/networks{query}")).await;
        assert_eq!(page.contains(row), listed, "{query}: {page}");
    }
}

#[tokio::test]
async fn the_front_page_invites_and_the_story_is_told() {
    let app = contested().await;
    let home = app.page("/").await;
    for part in [
        "href=\"/runs/main/join\">Join with your computer</a>",
        "href=\"/runs/main/play\">Play against #0</a>",
        "download=\"main-0.safetensors\"",
        "property=\"og:image\"",
    ] {
        assert!(home.contains(part), "{part}: {home}");
    }
    let story = app.page("/runs/main/story").await;
    for part in [
        "The run began",
        "1 of 2 networks became best",
        "<td><a href=\"/runs/main/networks/0\">#0",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    let empty = TestApp::new().await;
    empty.create_run("second").await;
    for (path, says) in [
        ("/runs/main/story", "No network yet."),
        (
            "/runs/main",
            "href=\"/runs/main/play\">Play against the network that comes with Rookery</a>",
        ),
        ("/runs", "href=\"/runs/main/play\">Play</a>"),
    ] {
        empty.says(path, &[says]).await;
    }
}
