//! Runs with matches, and how they are played.

use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::networks::{NetworkInfo, NetworkStatus};

use super::app::TestApp;
use super::games::Score::{Draw, Win};
use super::games::{PairPlan, pair_games};
use super::selfplay::started;

/// A run with a best network, a candidate in its gate match, and one that waits.
pub(crate) async fn gated() -> TestApp {
    let app = TestApp::new().await;
    for number in 0..3 {
        app.submit(number).await;
    }
    app
}

/// A run with a game of self-play, and a candidate that has won a game and drawn one in its gate match.
pub(crate) async fn contested() -> TestApp {
    let app = started().await;
    app.submit(1).await;
    play(&app, &app.alice, [Win, Draw]).await;
    app
}

/// Plays the pair of a match that must be handed out.
pub(crate) async fn play(app: &TestApp, token: &str, plan: PairPlan) -> Job {
    let job = app.lease(token).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    app.hand_in(token, &job, &pair_games(&job, 0, plan)).await;
    job
}

/// What became of each network, the first one first.
pub(crate) async fn statuses(app: &TestApp) -> Vec<NetworkStatus> {
    let mut networks: Vec<NetworkInfo> = app.get("/networks").await;
    networks.reverse();
    networks.into_iter().map(|network| network.status).collect()
}
