//! Whatever stands in an address, in its path or behind the question mark: every route that reads
//! one understands it or refuses it, gives what was asked for, and nothing breaks.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use axum::body::Body;
use axum::extract::Query;
use axum::http::{Method, Request, StatusCode, Uri, header};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rookery_common::ids::ContentHash;
use rookery_common::protocol::people::Scope;
use serde_json::{Value, json};

use super::nonsense::assert_answered;
use crate::support::app::{TestApp, body, user};
use crate::support::games::Score::{Loss, Win};
use crate::support::matches::play;
use crate::support::selfplay::selfplays;

/// Addresses of each route.
const ROUNDS: usize = 80;

/// More than any answer but a file needs of the tests' ledger, in bytes.
const ANSWER_BYTES: usize = 256 << 10;

/// What is not in the API's document, with the names that it reads behind the question mark.
const PAGES: [(&str, &[&str]); 24] = [
    ("/", &[]),
    ("/runs", &[]),
    ("/runs/{run}", &[]),
    ("/runs/{run}/", &[]),
    ("/runs/{run}/join", &[]),
    ("/runs/{run}/networks", &[]),
    ("/runs/{run}/networks.atom", &[]),
    ("/runs/{run}/networks/{name}", &[]),
    ("/runs/{run}/matches", &["before"]),
    (
        "/runs/{run}/games",
        &["before", "kind", "contributor", "network"],
    ),
    ("/runs/{run}/play", &["network"]),
    ("/runs/{run}/training", &[]),
    ("/runs/{run}/puzzles", &[]),
    ("/runs/{run}/contributors", &[]),
    ("/trust", &[]),
    ("/operator-log", &[]),
    (
        "/matches/{id}",
        &["before", "kind", "contributor", "network"],
    ),
    ("/games/{id}", &["ply", "below"]),
    ("/assets/{version}/{name}", &[]),
    ("/assets/board/{name}", &[]),
    ("/favicon.ico", &[]),
    ("/robots.txt", &[]),
    ("/healthz", &[]),
    ("/readyz", &[]),
];

/// Values at the ends of ranges, and beyond.
const EDGES: &[&str] = &[
    "",
    "0",
    "-1",
    "+1",
    "01",
    "1.0",
    "1e400",
    "NaN",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "%00",
    "%zz",
    "%F0%9F",
    "a%00b",
    "%2E%2E%2Fmain",
    "%3Cscript%3E",
    "♞",
];

/// Bytes that mean something in an address.
const MARKS: &[u8] = b"&=%+;?/#[]:,";

/// The hash of nothing that is there.
const HASH: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Values that a name may well have here.
fn usual(name: &str) -> &'static [&'static str] {
    match name {
        "run" => &["main"],
        "name" => &["0", "1", "best", "alice"],
        "network" | "number" => &["0", "1"],
        "id" | "match" => &["1", "2"],
        "before" | "after" | "limit" | "ply" => &["1", "2", "3", "4"],
        "kind" => &["self-play", "puzzles", "match", "audit"],
        "contributor" => &["alice", "Bob"],
        "format" => &["lc0", "onnx"],
        "path" => &["direct", "through"],
        "below" => &["white", "black"],
        "anchor" => &["maia-1100"],
        "elo" => &["1100", "-12.5"],
        _ => &[HASH],
    }
}

/// A route that reads its address.
struct Route {
    method: Method,
    /// With names in braces where it varies.
    path: String,
    /// The names that it reads behind the question mark.
    names: Vec<String>,
}

impl Route {
    fn page((path, names): &(&str, &[&str])) -> Self {
        Self {
            method: Method::GET,
            path: (*path).to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The route of an operation in the API's document.
    fn described(path: &str, method: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let names = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str());
        Self {
            method: method.to_uppercase().parse().unwrap(),
            path: path.to_owned(),
            names: names.map(str::to_owned).collect(),
        }
    }

    /// Whether an address makes a difference, and the answer comes to an end.
    fn is_tried(&self) -> bool {
        let ends = !self.path.ends_with("/events");
        ends && (self.method == Method::GET || !self.names.is_empty())
    }

    /// Whether some of its addresses must be understood: no network here is signed.
    fn has_answers(&self) -> bool {
        let signature = self.path.ends_with("/signature");
        self.method == Method::GET && !self.names.is_empty() && !signature
    }

    /// Asks at an address, and checks the answer; whether it was understood.
    async fn ask(&self, app: &TestApp, token: &str, uri: &Uri) -> bool {
        let asked = format!("{} {uri}", self.method);
        let request = Request::builder()
            .method(self.method.clone())
            .uri(uri.clone())
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .body(Body::empty())
            .unwrap();
        let answer = app.send(request).await;
        let status = answer.status();
        let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
        let is_file = kind.is_some_and(|kind| kind == "application/octet-stream");
        let bytes = if uri.path().starts_with("/api/") {
            assert_answered(answer, &asked).await
        } else {
            assert!(!status.is_server_error(), "{status} for {asked}");
            body(answer).await
        };
        let size = bytes.len();
        assert!(is_file || size <= ANSWER_BYTES, "{size} bytes for {asked}");
        if status != StatusCode::OK {
            return false;
        }
        if let Ok(answer) = serde_json::from_slice::<Value>(&bytes) {
            self.assert_is_what_was_asked(uri, &answer);
        }
        true
    }

    /// Checks that a list has no more rows than were asked for, and none on the wrong side of where
    /// it was to begin.
    fn assert_is_what_was_asked(&self, uri: &Uri, answer: &Value) {
        let Some(rows) = rows(answer) else { return };
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri).unwrap();
        let number = |name: &str| -> Option<i64> {
            self.names.iter().find(|known| *known == name)?;
            let (_, text) = pairs.iter().find(|(key, _)| key == name)?;
            text.parse().ok()
        };
        let places = || rows.iter().filter_map(place);
        if let Some(limit) = number("limit") {
            assert!(rows.len() as i64 <= limit.max(1), "{uri}: {answer}");
        }
        if let Some(before) = number("before") {
            assert!(places().all(|place| place < before), "{uri}: {answer}");
        }
        if let Some(after) = number("after") {
            assert!(places().all(|place| place > after), "{uri}: {answer}");
        }
    }
}

/// The rows of a list, or of a page of one.
fn rows(answer: &Value) -> Option<&Vec<Value>> {
    let of_page = || answer.as_object()?.values().find_map(Value::as_array);
    answer.as_array().or_else(of_page)
}

/// Where a row stands among all of its kind.
fn place(row: &Value) -> Option<i64> {
    let names = ["sequence", "step", "id"];
    names.into_iter().find_map(|name| row[name].as_i64())
}

/// Chance, the same in every run of the test.
struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0.random_range(0..sides)
    }

    fn pick(&mut self, texts: &[&str]) -> Vec<u8> {
        texts[self.below(texts.len())].into()
    }

    fn bytes(&mut self, among: &RangeInclusive<u8>) -> Vec<u8> {
        let length = self.below(12);
        let bytes = (0..length).map(|_| self.0.random_range(among.clone()));
        bytes.collect()
    }

    /// What stands for a name: mostly what there is, else an end of a range, or anything.
    fn value(&mut self, name: &str) -> Vec<u8> {
        match self.below(16) {
            0..10 => self.pick(usual(name)),
            10..13 => self.pick(EDGES),
            13 => escaped(&self.bytes(&(0..=u8::MAX))),
            14 => self.pick(usual(name)).repeat(60),
            _ => self.bytes(&(b'!'..=b'~')),
        }
    }

    fn path(&mut self, pattern: &str) -> Vec<u8> {
        let mut path = Vec::new();
        // Every second part stood in braces.
        for (place, part) in pattern.split(['{', '}']).enumerate() {
            if place.is_multiple_of(2) {
                path.extend(part.bytes());
            } else {
                path.extend(self.value(part));
            }
        }
        path
    }

    /// Some of the names with values, sometimes one that is there already or is not read, sometimes
    /// damaged.
    fn query(&mut self, names: &[String]) -> Vec<u8> {
        let mut chosen: Vec<&str> = names.iter().map(String::as_str).collect();
        chosen.retain(|_| self.below(2) == 0);
        if self.below(8) == 0 {
            let more = names.get(self.below(names.len() + 1));
            chosen.push(more.map_or("other", String::as_str));
        }
        let pairs: Vec<Vec<u8>> = chosen.into_iter().map(|name| self.pair(name)).collect();
        let mut query = pairs.join(&b'&');
        if self.below(4) == 0 {
            self.damage(&mut query);
        }
        query
    }

    fn pair(&mut self, name: &str) -> Vec<u8> {
        let mut pair = name.as_bytes().to_vec();
        pair.push(b'=');
        pair.extend(self.value(name));
        pair
    }

    /// Changes one to three places of a text.
    fn damage(&mut self, text: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let (place, mark) = (self.below(text.len() + 1), MARKS[self.below(MARKS.len())]);
            match (self.below(4), text.get_mut(place)) {
                (0, _) => text.truncate(place),
                (1, Some(byte)) => *byte = mark,
                _ => text.insert(place, mark),
            }
        }
    }

    fn address(&mut self, route: &Route) -> Vec<u8> {
        let mut address = self.path(&route.path);
        address.push(b'?');
        address.extend(self.query(&route.names));
        address
    }
}

/// All bytes as an address writes those that it cannot hold.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let escaped: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
    escaped.into_bytes()
}

/// A coordinator with rows in its lists: games of two kinds, a match, holds, metrics.
async fn furnished() -> TestApp {
    let app = TestApp::with_network().await;
    let played = selfplays(&app, &app.alice, &[1, 2]).await;
    app.submit(1).await;
    play(&app, &app.bob, [Win, Loss]).await;
    let points = [1, 2, 3].map(|step| json!({"step": step, "values": {"loss": 0.5}}));
    let report = json!({"points": points}).to_string();
    let metrics = app.call(Method::POST, "/runs/main/metrics", &app.trainer, report);
    assert_eq!(metrics.await.status(), StatusCode::NO_CONTENT);
    let path = format!("/chunks/{}", ContentHash::of(&played));
    for quarantined in [true, false] {
        assert_eq!(app.order(&path, quarantined).await, 204);
    }
    app
}

async fn routes(app: &TestApp) -> Vec<Route> {
    let mut routes: Vec<Route> = PAGES.iter().map(Route::page).collect();
    let document: Value = app.get("/openapi.json").await;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            routes.push(Route::described(path, method, operation));
        }
    }
    routes.retain(Route::is_tried);
    let names = routes.iter().flat_map(|route| &route.names);
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    for name in ["run", "before", "after", "limit", "elo", "format", "below"] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    routes
}

#[tokio::test]
async fn any_address_is_understood_or_refused() {
    let app = furnished().await;
    let scopes = [Scope::Contribute, Scope::Train, Scope::Operate];
    let token = user(&app.app, "checker", &scopes).await;
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(1));
    for route in &routes(&app).await {
        let mut understood = 0;
        for _ in 0..ROUNDS {
            let address = dice.address(route);
            // What is no address at all is refused before it reaches a route.
            let Ok(uri) = Uri::try_from(&address[..]) else {
                continue;
            };
            understood += usize::from(route.ask(&app, &token, &uri).await);
        }
        let is_fine = understood > 0 || !route.has_answers();
        assert!(is_fine, "{} understood no address", route.path);
    }
    app.assert_consistent().await;
}
