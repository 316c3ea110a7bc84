//! What lists can be asked for: names, networks, matches of a kind, orders.

use axum::http::{StatusCode, header};
use rookery_coordinator::db::{MatchFilter, MatchGroup, MatchSort};

use super::{assert_pages_say, listed};
use crate::support::anchors::beaten_by_an_anchor;
use crate::support::app::run;
use crate::support::matches::{contested, gated};
use crate::support::noon;
use crate::support::selfplay::{selfplays, started};

#[tokio::test]
async fn contributors_are_found_by_a_part_of_their_names_with_their_ranks_among_all() {
    let app = started().await;
    selfplays(&app, &app.bob, &[2, 3]).await;
    let path = "/runs/main/contributors";
    let page = app.page(&format!("{path}?name=+LIC+")).await;
    let said =
        "8 positions in all, in 1 game and 0 audits, by 1 contributor with “LIC” in the name.";
    for part in [said, ">alice</a>", "<td class=\"n soft\">2</td>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(">bob</a>"), "{page}");
    let lately = app.page(&format!("{path}?span=7d&name=bo")).await;
    assert!(lately.contains("<td class=\"n soft\">1</td>"), "{lately}");
    let kept = "<input type=\"hidden\" name=\"span\" value=\"7d\">";
    let other = "href=\"/runs/main/contributors?span=24h&#38;name=bo\"";
    let any = "href=\"/runs/main/contributors?span=7d\">any name";
    for part in [kept, other, any] {
        assert!(lately.contains(part), "{part}: {lately}");
    }
    // What means something in a pattern means itself here.
    for name in ["%25", "_", "!", "x%00y"] {
        let said = ["No contributor is listed whose name contains"];
        app.says(&format!("{path}?name={name}"), &said).await;
    }
    app.says(&format!("{path}?name=++"), &[">alice</a>", ">bob</a>"])
        .await;
}

#[tokio::test]
async fn games_are_asked_for_by_fields_that_may_stay_empty() {
    let app = started().await;
    let path = "/runs/main/games";
    let game = "href=\"/games/1\"";
    let number = "name=\"network\" class=\"short\" inputmode=\"numeric\" placeholder=\"number\" autocomplete=\"off\" value=\"0\"";
    assert_pages_say(
        &app,
        &[
            (&*format!("{path}?opening=&network=&contributor="), &[game]),
            (
                &*format!("{path}?network=%230&contributor=+alice+"),
                &[game, number],
            ),
            (
                &*format!("{path}?contributor=lic"),
                &["No contributor is called “lic”", "/contributors?name=lic\""],
            ),
        ],
    )
    .await;
    let odd = app.open(&format!("{path}?network=best")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn games_are_sorted_by_their_length_from_the_head_of_its_column() {
    let app = contested().await;
    let path = "/runs/main/games";
    // The second of the three ends with its first ply, the others with their eighth.
    for (query, order) in [
        ("", ["3", "2", "1"]),
        ("?sort=longest", ["3", "1", "2"]),
        ("?sort=shortest", ["2", "3", "1"]),
        ("?sort=shortest&contributor=alice", ["2", "3", "1"]),
        ("?sort=longest&network=0", ["3", "1", "2"]),
        ("?sort=longest&before=3", ["3", "1", "2"]),
    ] {
        let page = app.page(&format!("{path}{query}")).await;
        let games = listed(&page, "<td><a href=\"/games/");
        assert_eq!(games, order, "{query}: {page}");
    }
    let matches = app.page(&format!("{path}?kind=match&sort=shortest")).await;
    assert_eq!(listed(&matches, "<td><a href=\"/games/"), ["2", "3"]);
    let head = |order: &str, address: &str, name: &str| {
        format!("{order}><a class=\"sort\" href=\"{address}\">{name}</a></th>")
    };
    let (longest, shortest) = (
        format!("{path}?sort=longest"),
        format!("{path}?sort=shortest"),
    );
    let newest_first = head(" aria-sort=\"descending\"", path, "Game");
    let unsorted = head("class=\"n\"", &longest, "Plies");
    let longest_first = head(" aria-sort=\"descending\"", &shortest, "Plies");
    let shortest_first = head(" aria-sort=\"ascending\"", &longest, "Plies");
    let kept = "<input type=\"hidden\" name=\"sort\" value=\"longest\">";
    let file = "href=\"/api/v1/games/pgn?run=main\"";
    let filter = "href=\"/runs/main/games?kind=match&#38;sort=longest\"";
    assert_pages_say(
        &app,
        &[
            (path, &[&*newest_first, &*unsorted]),
            (&*longest, &[&*longest_first, kept, file, filter]),
            (&*shortest, &[&*shortest_first, file]),
        ],
    )
    .await;
    let sorted = app.page(&longest).await;
    assert_eq!(sorted.matches("aria-sort").count(), 1, "{sorted}");
    let elsewhere = app.page("/matches/1").await;
    assert!(!elsewhere.contains("class=\"sort\""), "{elsewhere}");
    let odd = app.open(&format!("{path}?sort=moons")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn matches_are_those_of_a_network() {
    let app = gated().await;
    app.open_match(2, 1, 3).await;
    let path = "/runs/main/matches";
    let found: [(&str, &[&str]); 8] = [
        ("?network=", &["2", "1"]),
        ("?network=1", &["2", "1"]),
        ("?network=0", &["1"]),
        ("?network=%232", &["2"]),
        ("?network=2&sort=games", &["2"]),
        ("?network=1&show=gates", &["1"]),
        ("?network=1&before=2", &["1"]),
        ("?network=7", &[]),
    ];
    for (query, found) in found {
        let page = app.page(&format!("{path}{query}")).await;
        let matches = listed(&page, "<td><a href=\"/matches/");
        assert_eq!(matches, found, "{query}: {page}");
    }
    let chosen = format!("{path}?show=gates&network=1&sort=games");
    let kept = [("show", "gates"), ("sort", "games")]
        .map(|(name, value)| format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">"));
    let any = "href=\"/runs/main/matches?show=gates&#38;sort=games\">any network";
    let group = "href=\"/runs/main/matches?show=open&#38;network=1&#38;sort=games\"";
    let field = "autocomplete=\"off\" value=\"1\"";
    assert_pages_say(
        &app,
        &[
            (&*chosen, &[&*kept[0], &*kept[1], any, group, field]),
            (&*format!("{path}?network=7"), &["There is no such match."]),
            (
                "/runs/main/networks/2",
                &["href=\"/runs/main/matches?network=2\">all matches"],
            ),
        ],
    )
    .await;
    let odd = app.open(&format!("{path}?network=best")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_networks_page_opens_by_its_number_or_by_an_anchors_name() {
    let app = beaten_by_an_anchor(None).await;
    let path = "/runs/main/networks?find=";
    for (text, number) in [("1", 1), ("%230", 0), ("Maia-1100", 1)] {
        let answer = app.open(&format!("{path}{text}")).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{text}");
        let page = format!("/runs/main/networks/{number}");
        assert_eq!(answer.headers()[header::LOCATION], page.as_str());
    }
    let none = "The run has no network “7”.";
    assert_pages_say(&app, &[("/runs/main/networks?find=7", &[none])]).await;
    let list = app.page(path).await;
    assert!(!list.contains("The run has no network"), "{list}");
}

#[tokio::test]
async fn matches_are_listed_by_purpose_by_verdict_and_in_three_orders() {
    let app = contested().await;
    let row = "<a href=\"/matches/1\">1</a>";
    let path = "/runs/main/matches";
    for query in [
        "",
        "?show=gates",
        "?show=open",
        "?sort=games",
        "?show=gates&sort=score",
    ] {
        app.says(&format!("{path}{query}"), &[row]).await;
    }
    for query in [
        "?show=ratings",
        "?show=promoted",
        "?show=rejected&sort=games",
    ] {
        let page = app.page(&format!("{path}{query}")).await;
        assert!(page.contains("There is no such match."), "{query}: {page}");
    }
    let chosen = "href=\"/runs/main/matches?show=gates&#38;sort=games\" aria-current=\"true\"";
    let query = format!("{path}?show=gates&sort=games");
    assert_pages_say(&app, &[(query.as_str(), &[chosen])]).await;
    let odd = app.open(&format!("{path}?show=moons")).await;
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn matches_are_in_the_order_that_is_asked_for() {
    let app = beaten_by_an_anchor(None).await;
    app.open_match(1, 0, 3).await;
    let ids = async |group, sort| -> Vec<i64> {
        let filter = MatchFilter {
            run: run(),
            group,
            network: None,
            sort,
            before: None,
            limit: 10,
        };
        let found = app.app.db.matches(&filter, noon()).await.unwrap();
        found.into_iter().map(|info| info.id.0).collect()
    };
    let newest = ids(None, MatchSort::Newest).await;
    assert!(newest.len() >= 2, "{newest:?}");
    assert!(newest.is_sorted_by(|a, b| a > b), "{newest:?}");
    // The first match has games, the other none yet.
    for sort in [MatchSort::Games, MatchSort::Score] {
        assert_eq!(ids(None, sort).await.first(), Some(&1));
        assert_eq!(
            ids(Some(MatchGroup::Ratings), sort).await.len(),
            newest.len()
        );
    }
    assert!(
        ids(Some(MatchGroup::Gates), MatchSort::Games)
            .await
            .is_empty()
    );
}
