//! `ledger check` finds what does not follow from the facts.

use sqlx::Connection as _;

use crate::support::app::run;
use crate::support::matches::contested;

#[tokio::test]
async fn every_sum_that_was_tampered_with_is_named() {
    let app = contested().await;
    app.assert_consistent().await;
    let mut database = sqlx::AnyConnection::connect(app.database.url())
        .await
        .unwrap();
    for (change, named) in [
        ("UPDATE runs SET games = games + 1", "of the run"),
        ("UPDATE runs SET best = 1", "best network"),
        ("UPDATE credits SET positions = 0", "contributors"),
        (
            "UPDATE credit_spans SET games = 9 WHERE length = 3600000",
            "by the hour",
        ),
        (
            "UPDATE credit_spans SET positions = 9 WHERE length = 86400000",
            "by the day",
        ),
        ("UPDATE networks SET training_games = 7", "training games"),
        ("UPDATE matches SET wins = 9", "tally of match 1"),
        ("UPDATE chunks SET games = 9", "of chunks"),
        ("UPDATE jobs SET games_counted = 9", "of jobs"),
        (
            "INSERT INTO puzzle_scores VALUES (1, 0, 'all', '', 1, 1)",
            "puzzle scores",
        ),
    ] {
        sqlx::query(change).execute(&mut database).await.unwrap();
        let found = app.app.store.check(&run()).await.unwrap();
        let named = found.iter().any(|found| found.what.contains(named));
        assert!(named, "{change}: {found:?}");
    }
}
