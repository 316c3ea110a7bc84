//! Training games that were given out and never came.

use rookery_common::protocol::jobs::Job;
use rookery_common::protocol::trust::TrustLevel;

use crate::support::audit_scenario::{AuditScenario, GAMES};
use crate::support::games::{chunk, selfplay};

#[tokio::test]
async fn operators_see_what_never_came_and_who_closes_the_lid_loses_nothing() {
    let scenario = AuditScenario::new().await;
    let app = &scenario.app;
    let games = u64::from(GAMES);
    let given = async |name: &str| {
        let people = scenario.people().await;
        let person = people.into_iter().find(|person| person.trust.name == name);
        let person = person.unwrap();
        (person.training_games, person.missing_games)
    };
    let played = |job: &Job, games, salt| {
        let games: Vec<_> = (0..games)
            .map(|index| selfplay(job, index, salt + index))
            .collect();
        chunk(job, &games)
    };
    let some = app.lease(&app.alice).await;
    app.accepted(&app.alice, &played(&some, GAMES / 2, 0)).await;
    assert_eq!(given("alice").await, (games / 2, 0), "she may be at it");
    app.give_back(&app.alice, &some).await;
    assert_eq!(given("alice").await, (games / 2, games / 2));

    let whole = app.lease(&app.bob).await;
    app.accepted(&app.bob, &played(&whole, GAMES, 1_000)).await;
    let interrupted = app.lease(&app.bob).await;
    // The lid is closed; the lease and its grace end.
    app.clock.advance_seconds(121);
    assert_eq!(given("bob").await, (games, games));
    let late = played(&interrupted, GAMES, 2_000);
    app.accepted(&app.bob, &late).await;
    assert_eq!(given("bob").await, (2 * games, 0));

    // A lease does not hide games for ever.
    let kept = app.lease(&app.bob).await;
    app.clock.advance_seconds(24 * 3600);
    app.keep(&app.bob, &kept).await;
    assert_eq!(given("bob").await, (2 * games, 0));
    app.clock.advance_seconds(1);
    assert_eq!(given("bob").await, (2 * games, games));
    for name in ["alice", "bob"] {
        let trust = app.app.db.trust(name).await.unwrap();
        assert_eq!((trust.level, trust.held_chunks), (TrustLevel::Probation, 0));
    }
    app.assert_consistent().await;
}
