//! A run with an anchor.

use axum::http::{Method, StatusCode};
use rookery_common::ids::ContentHash;
use rookery_common::network::{Program, program_file};
use rookery_common::protocol::matches::{MatchInfo, RatingRow};
use rookery_common::protocol::networks::{NetworkReceipt, NetworkStatus};

use super::app::{TestApp, parse};
use super::games::Score::Win;
use super::matches::play;
use super::networks::network_file;

/// A coordinator whose network 0 has lost a pair of games to network 1, the anchor `maia-1100`; the
/// ratings are fitted to them. The anchor was submitted with this Elo, if any.
pub(crate) async fn beaten_by_an_anchor(elo: Option<u32>) -> TestApp {
    let app = TestApp::of_run(1, |run| run.scheduling.rating_pairs = 1).await;
    let file = network_file(9);
    let elo = elo.map_or_else(String::new, |elo| format!("&elo={elo}"));
    let path = format!("/networks/{}?anchor=maia-1100{elo}", ContentHash::of(&file));
    let answer = app.call(Method::PUT, &path, &app.operator, file).await;
    let receipt: NetworkReceipt = parse(StatusCode::CREATED, answer).await;
    assert_eq!(receipt.status, NetworkStatus::Anchor);
    while app.get::<Vec<MatchInfo>>("/matches").await.is_empty() {
        tokio::task::yield_now().await;
    }
    let job = play(&app, &app.alice, [Win, Win]).await;
    assert_eq!(job.networks[0].hash, receipt.hash);
    while app.get::<Vec<RatingRow>>("/ratings").await.len() < 2 {
        tokio::task::yield_now().await;
    }
    app
}

/// Submits a program as an anchor that is called as the program is, with a dash for its colon.
pub(crate) async fn submit_program(app: &TestApp, program: Program) -> NetworkReceipt {
    let file = program_file(program).unwrap();
    let name = program.to_string().replace(':', "-");
    let path = format!("/networks/{}?anchor={name}", ContentHash::of(&file));
    let answer = app.call(Method::PUT, &path, &app.operator, file).await;
    parse(StatusCode::CREATED, answer).await
}
