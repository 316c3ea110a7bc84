//! `ledger check` finds what does not follow from the facts, and nothing else.

use axum::http::{Method, StatusCode};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_coordinator::db::Checked;

use crate::support::app::{TestApp, run};
use crate::support::audit_scenario::{AuditScenario, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::pair_games;
use crate::support::matches::{contested, gated, play, statuses};

/// Changes the ledger, one statement after the other; the check must name what each leads to.
async fn are_named<const N: usize>(app: &TestApp, changes: [(&'static str, &str); N]) {
    app.assert_consistent().await;
    for (change, named) in changes {
        app.database.tamper(change).await;
        let found = app.app.db.check(&run()).await.unwrap().discrepancies;
        let named = found.iter().any(|found| found.what.contains(named));
        assert!(named, "{change}: {found:?}");
    }
}

#[tokio::test]
async fn every_sum_that_was_tampered_with_is_named() {
    let changes = [
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
        (
            "INSERT INTO puzzle_sets (run_id, hash, name, puzzles, added_at)
             VALUES (1, 'a', 'own', 7, 0)",
            "puzzles of sets",
        ),
        (
            "UPDATE match_pairs SET white_score = 2, black_score = 2",
            "scores of a pair of match 1",
        ),
        ("UPDATE matches SET next_pair = 3", "were handed out"),
        (
            "UPDATE matches SET status = 'promoted'",
            "status of match 1",
        ),
        (
            "UPDATE networks SET status = 'demoted' WHERE number = 1",
            "status of network 1",
        ),
        (
            "UPDATE networks SET positions = 9 WHERE number = 1",
            "training positions before network 1",
        ),
        ("UPDATE networks SET gate_id = NULL", "gate matches"),
        ("UPDATE audits SET awaited = 1", "held chunks"),
        (
            "UPDATE audits SET awaited = 0; UPDATE chunks SET held = 1",
            "held chunks",
        ),
        (
            "INSERT INTO track_records (user_id, passed, failed) VALUES (1, 999, 0)",
            "passed audits of contributor 1",
        ),
        (
            "UPDATE track_records SET failed = 1",
            "failed audits of contributors",
        ),
    ];
    are_named(&contested().await, changes).await;
}

#[tokio::test]
async fn pairs_that_are_missing_or_exchanged_are_named() {
    let lost = [("DELETE FROM match_pairs", "were handed out")];
    are_named(&contested().await, lost).await;
    let moved = [(
        "UPDATE match_pairs SET pair = 1",
        "scores of a pair of match 1",
    )];
    are_named(&contested().await, moved).await;
}

/// A run with a network that has won its gate match, and one that has lost its own.
async fn decided() -> TestApp {
    let app = gated().await;
    play(&app, &app.alice, [Win, Draw]).await;
    play(&app, &app.bob, [Win, Win]).await;
    play(&app, &app.alice, [Loss, Draw]).await;
    play(&app, &app.alice, [Draw, Draw]).await;
    use NetworkStatus::{Initial, Promoted, Rejected};
    assert_eq!(statuses(&app).await, [Initial, Promoted, Rejected]);
    app
}

#[tokio::test]
async fn how_a_gate_ended_follows_from_its_games() {
    let changes = [
        (
            "UPDATE networks SET status = 'demoted' WHERE number = 2",
            "status of network 2",
        ),
        (
            "UPDATE matches SET status = 'promoted' WHERE id = 2",
            "status of match 2",
        ),
        (
            "UPDATE matches SET status = 'open' WHERE id = 1",
            "status of match 1",
        ),
        (
            "UPDATE match_pairs SET white_score = 2, black_score = 2",
            "scores of a pair of match 1",
        ),
    ];
    are_named(&decided().await, changes).await;
    let changed = "UPDATE games SET result = 'black-wins' WHERE match_id = 1";
    let changes = [
        (changed, "tally of match 1"),
        (changed, "status of match 1"),
    ];
    are_named(&decided().await, changes).await;
}

#[tokio::test]
async fn passed_audits_are_counted_again() {
    let scenario = AuditScenario::new().await;
    scenario.judged(Same).await;
    let changes = [
        ("UPDATE track_records SET passed = 2", "of contributor"),
        ("UPDATE track_records SET passed = 0", "of contributor"),
        ("DELETE FROM track_records", "of contributor"),
    ];
    are_named(&scenario.app, changes).await;
}

#[tokio::test]
async fn passes_are_vouched_for_by_auditors_and_by_those_for_whom_they_vouched() {
    let named = "vouched passes of contributor";
    let scenario = AuditScenario::new().await;
    let bob = &scenario.app.bob;
    scenario.proven(&[bob]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    scenario.answer(bob, &games, Same).await;
    let changes = [
        (
            "UPDATE track_records SET vouched = 0 WHERE passed = 1",
            named,
        ),
        (
            "UPDATE track_records SET vouched = 11 WHERE passed = 10",
            named,
        ),
    ];
    are_named(&scenario.app, changes).await;
}

#[tokio::test]
async fn newcomers_vouch_for_nobody() {
    let scenario = AuditScenario::of_newcomers().await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    scenario.answer(&scenario.app.bob, &games, Same).await;
    let vouched = "UPDATE track_records SET vouched = 1";
    are_named(&scenario.app, [(vouched, "vouched passes of contributor")]).await;
}

#[tokio::test]
async fn what_a_failed_audit_has_taken_away_stays_away() {
    let scenario = AuditScenario::new().await;
    scenario.judged(Same).await;
    scenario.judged(Other).await;
    let changes = [("UPDATE track_records SET passed = 1", "of contributor")];
    are_named(&scenario.app, changes).await;
}

/// Rejects a candidate as an operator.
async fn reject(app: &TestApp, network: u32) {
    let path = format!("/networks/{network}/rejection");
    let order = r#"{"reason": "no worker can compute it: 1, 2"}"#;
    let answer = app.call(Method::POST, &path, &app.operator, order).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_a_run_lives_through_leaves_every_sum_as_its_facts_are() {
    let app = gated().await;
    play(&app, &app.alice, [Win, Draw]).await;
    assert_eq!(
        app.order("/users/alice", true).await,
        StatusCode::NO_CONTENT
    );
    app.assert_consistent().await;
    // Others play her pair again; once she is cleared it counts twice.
    play(&app, &app.bob, [Win, Draw]).await;
    play(&app, &app.bob, [Win, Win]).await;
    assert_eq!(
        app.order("/users/alice", false).await,
        StatusCode::NO_CONTENT
    );
    app.assert_consistent().await;
    reject(&app, 2).await;
    for number in [3, 4] {
        app.submit(number).await;
    }
    reject(&app, 4).await;
    let half = app.lease(&app.alice).await;
    let games = pair_games(&half, 0, [Win, Loss]);
    app.hand_in(&app.alice, &half, &games[..1]).await;
    use NetworkStatus::{Candidate, Initial, Promoted, Rejected};
    let lived = [Initial, Promoted, Rejected, Candidate, Rejected];
    assert_eq!(statuses(&app).await, lived);
    // Another coordinator on this ledger.
    let again = app.database.open().await;
    assert_eq!(again.check(&run()).await.unwrap(), Checked::default());
    again.close().await;
}

/// Whether its games were there when it was decided is not known any more.
#[tokio::test]
async fn a_gate_whose_games_were_held_is_said_not_to_be_compared() {
    let app = gated().await;
    play(&app, &app.alice, [Win, Draw]).await;
    play(&app, &app.bob, [Win, Win]).await;
    for quarantined in [true, false] {
        let answer = app.order("/users/alice", quarantined).await;
        assert_eq!(answer, StatusCode::NO_CONTENT);
        let Checked {
            discrepancies,
            not_compared,
        } = app.app.db.check(&run()).await.unwrap();
        assert_eq!(discrepancies, []);
        assert_eq!(not_compared.len(), 1, "{not_compared:?}");
        assert!(not_compared[0].ends_with("held for a while: 1"));
    }
}
