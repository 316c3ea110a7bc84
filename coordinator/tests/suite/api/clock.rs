//! Clocks that are set forward and back, and coordinators that are away: nothing is lost, nothing
//! stalls, order is kept.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::runs::RunInfo;
use rookery_coordinator::clock::Clock as _;

use crate::support::app::TestApp;
use crate::support::games::Score::Win;
use crate::support::games::{pair_games, pairs, selfplay};
use crate::support::matches::{gated, play};

/// A clock that was wrong by so much, in seconds.
const DAY: i64 = 24 * 60 * 60;

/// Does what a coordinator does with the leases when it starts.
async fn start_again(app: &TestApp) {
    let now = app.clock.now();
    app.app.db.outlast_outage(now).await.unwrap();
}

/// Plays the open gate match so that the candidate wins.
async fn promote(app: &TestApp) {
    for _ in 0..2 {
        play(app, &app.alice, [Win, Win]).await;
    }
}

#[tokio::test]
async fn the_last_winner_is_best_though_the_clock_was_set_back_between_two_gates() {
    let app = gated().await;
    promote(&app).await;
    app.clock.advance_seconds(-DAY);
    promote(&app).await;
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!(run.best, Some(NetworkNumber(2)));
    app.assert_consistent().await;
}

#[tokio::test]
async fn pairs_that_were_leased_by_a_fast_clock_come_back_soon_after_it_was_set_right() {
    let app = gated().await;
    app.clock.advance_seconds(DAY);
    let lost = [app.lease(&app.alice).await, app.lease(&app.alice).await];
    app.clock.advance_seconds(-DAY);
    let meanwhile = app.lease(&app.bob).await;
    assert_eq!(
        meanwhile.work.kind(),
        WorkKind::SelfPlay,
        "alice may still be playing"
    );
    // Twice the lease's length, as for every lease that nobody extends.
    app.clock
        .advance_seconds(2 * i64::from(lost[0].lease_seconds) + 1);
    let again = app.lease(&app.bob).await;
    assert_eq!(again.work.kind(), WorkKind::Match);
    assert_eq!(pairs(&again)[0], pairs(&lost[0])[0]);
}

#[tokio::test]
async fn a_lease_outlives_a_clock_that_is_set_back_and_forward() {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    for step in [-DAY, 2 * DAY, -DAY] {
        app.clock.advance_seconds(step);
        let reply = app.keep(&app.alice, &job).await;
        assert_eq!(reply.lease_seconds, job.lease_seconds);
    }
    let games: Vec<_> = (0..job.work.games())
        .map(|index| selfplay(&job, index, index))
        .collect();
    let receipt = app.hand_in(&app.alice, &job, &games).await;
    assert_eq!(receipt.games, job.work.games());
    app.assert_consistent().await;
}

#[tokio::test]
async fn pairs_outlast_an_outage_of_the_coordinator() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    app.clock.advance_seconds(5 * i64::from(job.lease_seconds));
    start_again(&app).await;
    for token in [&app.bob, &app.alice, &app.bob] {
        let other = app.lease(token).await;
        let taken = other.work.kind() == WorkKind::Match && pairs(&other)[0] == pairs(&job)[0];
        assert!(!taken, "alice plays it");
    }
    let games = pair_games(&job, 0, [Win, Win]);
    let receipt = app.hand_in(&app.alice, &job, &games).await;
    assert_eq!(receipt.games, 2);
    app.assert_consistent().await;
}

/// Neither because one starts again and again, nor because one of several does.
#[tokio::test]
async fn starting_again_keeps_no_pairs_that_nobody_plays_while_workers_are_heard() {
    let app = gated().await;
    let played = app.lease(&app.alice).await;
    let lost = app.lease(&app.bob).await;
    for _ in 0..6 {
        app.clock
            .advance_seconds(i64::from(lost.lease_seconds) / 2 - 1);
        app.keep(&app.alice, &played).await;
        app.clock.advance_seconds(1);
        start_again(&app).await;
    }
    let again = app.lease(&app.alice).await;
    assert_eq!(again.work.kind(), WorkKind::Match);
    assert_eq!(pairs(&again)[0], pairs(&lost)[0]);
}
