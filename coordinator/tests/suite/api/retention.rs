//! What the ledger forgets: jobs of which nothing came, and workers of long ago.

use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::WorkKind;
use rookery_coordinator::background::retention::prune;
use rookery_coordinator::db::Pruned;
use serde_json::json;

use crate::support::app::{TestApp, code};
use crate::support::games::{chunk, pairs, selfplay};

const DAY: i64 = 24 * 60 * 60;

const fn forgotten(jobs: u64, workers: u64) -> Pruned {
    Pruned { jobs, workers }
}

#[tokio::test]
async fn jobs_of_which_nothing_came_are_forgotten_after_eight_days() {
    let app = TestApp::with_network().await;
    let played = app.lease(&app.alice).await;
    let first = chunk(&played, &[selfplay(&played, 0, 1)]);
    app.accepted(&app.alice, &first).await;
    // More than are looked at together.
    let lost = app.lease(&app.bob).await;
    for _ in 0..300 {
        app.lease(&app.bob).await;
    }
    let given_back = app.lease(&app.bob).await;
    app.give_back(&app.bob, &given_back).await;
    app.submit(1).await;
    let held = app.lease(&app.alice).await;
    assert_eq!(held.work.kind(), WorkKind::Match);

    app.clock.advance_seconds(7 * DAY);
    assert_eq!(prune(&app.app).await.unwrap(), forgotten(0, 0));
    app.clock.advance_seconds(2 * DAY);
    assert_eq!(prune(&app.app).await.unwrap(), forgotten(302, 0));
    assert_eq!(prune(&app.app).await.unwrap(), forgotten(0, 0));
    app.assert_consistent().await;

    let late = chunk(&lost, &[selfplay(&lost, 0, 2)]);
    let late = app.upload(&app.bob, &late).await;
    assert_eq!(code(late).await, ProblemCode::NotFound);
    app.hand_in(&app.alice, &played, &[selfplay(&played, 1, 3)])
        .await;
    assert!(app.accepted(&app.alice, &first).await.duplicate);
    // The pair that nobody has played waits for somebody.
    let again = app.lease(&app.bob).await;
    assert_eq!(pairs(&again)[0].pair, pairs(&held)[0].pair);
    // Nothing names who had it before.
    assert_eq!(prune(&app.app).await.unwrap(), forgotten(1, 0));
    app.assert_consistent().await;
}

#[tokio::test]
async fn of_every_contributor_the_worker_stays_that_was_heard_last() {
    let app = TestApp::with_network().await;
    for (token, worker) in [(&app.bob, "one"), (&app.alice, "old"), (&app.alice, "new")] {
        app.lease_with(token, &json!({"worker": worker})).await;
        app.clock.advance_seconds(1);
    }
    let users = app.app.db.users().await.unwrap();
    app.clock.advance_seconds(31 * DAY);
    assert_eq!(prune(&app.app).await.unwrap(), forgotten(3, 1));
    assert_eq!(app.app.db.users().await.unwrap(), users);
}
