//! Best moves back to an earlier network, or stays.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{MatchInfo, MatchStatus, RatingRow};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::ratings;

use crate::support::app::{TestApp, run};
use crate::support::games::Score::{Loss, Win};
use crate::support::games::{pair_games, pairs};
use crate::support::matches::{play, statuses};

/// A run without gates whose second network is best and plays so many pairs against the first.
async fn in_match(rollback: Option<f64>, pairs: u32) -> TestApp {
    let app = TestApp::of_run(2, |run| {
        run.gate = GateRule::None;
        run.rollback = rollback;
    })
    .await;
    app.open_match(1, 0, pairs).await;
    app
}

/// A run whose second network loses all games against the first, and what rating matches then make
/// of it.
async fn second_loses(rollback: Option<f64>) -> TestApp {
    let app = in_match(rollback, 8).await;
    let mut events = app.app.events.subscribe();
    while app.get::<MatchInfo>("/matches/1").await.status == MatchStatus::Open {
        let job = app.lease(&app.alice).await;
        if job.work.kind() == WorkKind::Match {
            let games: Vec<_> = (0..pairs(&job).len())
                .flat_map(|place| pair_games(&job, place, [Loss, Loss]))
                .collect();
            app.hand_in(&app.alice, &job, &games).await;
        }
    }
    if rollback.is_some() {
        while events.recv().await.unwrap().kind() != "rollback" {}
    }
    let rated = async || app.get::<Vec<RatingRow>>("/ratings").await;
    while rated().await.iter().all(|row| row.rating.games < 16) {
        tokio::task::yield_now().await;
    }
    app
}

#[tokio::test]
async fn best_moves_back_when_games_show_that_it_was_a_mistake() {
    let app = second_loses(Some(0.9)).await;
    use NetworkStatus::{Demoted, Initial, Promoted};
    assert_eq!(statuses(&app).await, [Initial, Demoted]);
    assert_eq!(app.best().await, Some(0));
    let log = app.operator_log().await;
    let entry = &log.entries[0];
    assert_eq!(
        (entry.action.as_str(), entry.actor.as_str()),
        ("roll-back", "coordinator")
    );
    assert!(
        entry.detail.contains("from network 1 to network 0"),
        "{}",
        entry.detail
    );
    // The next one that is promoted is best as ever.
    assert_eq!(app.submit(2).await.status, Promoted);
    assert_eq!(app.best().await, Some(2));
    app.assert_consistent().await;
    for (change, network) in [
        (
            "UPDATE networks SET status = 'promoted' WHERE number = 1",
            1,
        ),
        ("UPDATE networks SET status = 'demoted' WHERE number = 2", 2),
    ] {
        app.database.tamper(change).await;
        let found = app.app.db.check(&run()).await.unwrap().discrepancies;
        let named = format!("status of network {network}");
        assert!(found.iter().any(|found| found.what == named), "{found:?}");
    }
}

#[tokio::test]
async fn best_stays_where_the_run_does_not_ask_for_rollbacks() {
    let app = second_loses(None).await;
    assert_eq!(app.best().await, Some(1));
    app.assert_consistent().await;
}

#[tokio::test]
async fn who_sends_only_the_pairs_that_best_has_lost_does_not_move_it() {
    let app = in_match(Some(0.9), 14).await;
    for _ in 0..8 {
        play(&app, &app.alice, [Loss, Loss]).await;
    }
    // The other six she has won, and keeps back.
    for _ in 0..6 {
        assert_eq!(app.lease(&app.alice).await.work.kind(), WorkKind::Match);
    }
    let fitted = ratings::fit(&app.app.db.rating_basis(&run()).await.unwrap()).unwrap();
    let (first, best) = (NetworkNumber(0), NetworkNumber(1));
    let (_, superiority) = fitted.likeliest_above(best, [first]).unwrap();
    assert!(superiority > 0.9, "{superiority}");
    let best_after_a_fit = async || {
        ratings::refit(&app.app, &run()).await.unwrap();
        app.get::<RunInfo>("/runs/main").await.best
    };
    assert_eq!(best_after_a_fit().await, Some(best));
    // Their lease and its grace are over: others get them.
    app.clock.advance_seconds(121);
    for _ in 0..6 {
        play(&app, &app.bob, [Win, Win]).await;
    }
    let ended: MatchInfo = app.get("/matches/1").await;
    assert_eq!(ended.status, MatchStatus::Finished);
    assert_eq!(ended.tally.pairs.counts, [8, 0, 0, 0, 6]);
    assert_eq!(best_after_a_fit().await, Some(best));
    app.assert_consistent().await;
}
