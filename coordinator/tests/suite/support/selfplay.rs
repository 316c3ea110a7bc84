//! Runs with games of self-play, and how they are played.

use rookery_common::protocol::jobs::WorkKind;

use super::app::TestApp;
use super::games::{chunk, selfplay};

/// A run with a network and a game that alice has played.
pub(crate) async fn started() -> TestApp {
    let app = TestApp::with_network().await;
    selfplays(&app, &app.alice, &[1]).await;
    app
}

/// Plays the first games of a self-play job that must be handed out, one of each salt; the chunk.
pub(crate) async fn selfplays(app: &TestApp, token: &str, salts: &[u32]) -> Vec<u8> {
    let job = app.lease(token).await;
    assert_eq!(job.work.kind(), WorkKind::SelfPlay);
    let games = (0..).zip(salts);
    let games: Vec<_> = games.map(|(n, salt)| selfplay(&job, n, *salt)).collect();
    let bytes = chunk(&job, &games);
    app.accepted(token, &bytes).await;
    bytes
}
