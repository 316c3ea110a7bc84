//! Pages of contributors.

use axum::http::StatusCode;
use rookery_common::protocol::people::Scope;

use super::{assert_pages_say, listed};
use crate::support::app::{TestApp, user};
use crate::support::games::selfplay_of;
use crate::support::selfplay::{selfplays, started};

#[tokio::test]
async fn contributors_are_listed_by_what_they_gave_lately() {
    let app = TestApp::with_network().await;
    let path = "/runs/main/contributors";
    app.says(path, &["No contributor yet"]).await;
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
async fn contributors_are_sorted_from_the_heads_of_their_columns() {
    let app = TestApp::with_network().await;
    let carol = user(&app.app, "carol", &[Scope::Contribute]).await;
    // Bob gives 16 positions in two games, alice 12 in three, and carol 8 in one.
    selfplays(&app, &app.bob, &[1, 2]).await;
    app.clock.advance_seconds(3600);
    let job = app.lease(&app.alice).await;
    let short = [
        ["f2f3", "e7e5", "g2g4", "d8h4"],
        ["f2f4", "e7e5", "g2g4", "d8h4"],
        ["f2f3", "e7e6", "g2g4", "d8h4"],
    ];
    let games = (0..).zip(&short);
    let games: Vec<_> = games
        .map(|(index, moves)| selfplay_of(&job, index, moves))
        .collect();
    app.hand_in(&app.alice, &job, &games).await;
    app.clock.advance_seconds(3600);
    selfplays(&app, &carol, &[3]).await;
    let path = "/runs/main/contributors";
    for (sort, order) in [
        ("positions", ["bob", "alice", "carol"]),
        ("games", ["alice", "bob", "carol"]),
        ("last-seen", ["carol", "alice", "bob"]),
        ("name", ["alice", "bob", "carol"]),
    ] {
        for span in ["all", "24h"] {
            let page = app.page(&format!("{path}?span={span}&sort={sort}")).await;
            let names = listed(&page, "<td class=\"name\" title=\"");
            assert_eq!(names, order, "{sort} {span}: {page}");
            assert_eq!(page.matches("aria-sort").count(), 1, "{page}");
        }
    }
    let rest = app.page(&format!("{path}?sort=name&skip=1")).await;
    assert_eq!(
        listed(&rest, "<td class=\"name\" title=\""),
        ["bob", "carol"]
    );
    let head = |order: &str, query: &str, name: &str| {
        format!("{order}><a class=\"sort\" href=\"{path}{query}\">{name}</a></th>")
    };
    let most_first = head("aria-sort=\"descending\"", "", "Positions");
    let by_name = head("aria-sort=\"ascending\"", "?span=7d&#38;sort=name", "Name");
    let by_games = head("class=\"n\"", "?span=7d&#38;sort=games", "Games");
    let kept = "<input type=\"hidden\" name=\"sort\" value=\"name\">";
    assert_pages_say(
        &app,
        &[
            (path, &[&*most_first]),
            (
                &*format!("{path}?span=7d&sort=name"),
                &[&*by_name, &*by_games, kept],
            ),
        ],
    )
    .await;
    let odd = app.open(&format!("{path}?sort=moons")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn those_who_gave_as_many_share_their_rank_across_pages() {
    let app = started().await;
    selfplays(&app, &app.bob, &[2]).await;
    let first = "<td class=\"n soft\">1</td>";
    for (query, listed) in [("", 2), ("?skip=1", 1)] {
        let page = app.page(&format!("/runs/main/contributors{query}")).await;
        assert_eq!(page.matches(first).count(), listed, "{query}: {page}");
    }
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
        app.says(path, &[link]).await;
    }
    let page = app.says(own, &["href=\"/games/1\""]).await;
    let choice = "?contributor=alice&#38;kind=puzzles\"";
    assert!(page.contains(choice), "{page}");
    let others = app.page("/runs/main/games?contributor=bob").await;
    assert!(others.contains("No game here"), "{others}");
    for nobody in ["carol", "a%00b"] {
        let path = format!("/runs/main/contributors/{nobody}");
        assert_eq!(app.open(&path).await.status(), StatusCode::NOT_FOUND);
        let games = format!("/runs/main/games?contributor={nobody}");
        assert_pages_say(&app, &[(games.as_str(), &["No contributor is called"])]).await;
    }
}

#[tokio::test]
async fn a_contributor_has_a_page_with_credit_games_and_workers() {
    let app = TestApp::with_network().await;
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
