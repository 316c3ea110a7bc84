//! Training waits for audits of newcomers' chunks.

use rookery_common::protocol::jobs::WorkKind;
use rookery_coordinator::db::ACTIVE;
use rookery_coordinator::trust::plan::release_audited;

use crate::support::app::run;
use crate::support::audit_scenario::{AuditScenario, POSITIONS};
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::Win;
use crate::support::games::{chunk, pair_games};

/// Seconds for which training waits at most.
const QUARTER: i64 = 15 * 60;

/// A scenario whose auditor is at work.
async fn with_auditor() -> AuditScenario {
    let scenario = AuditScenario::new().await;
    scenario.come(&[&scenario.auditor]).await;
    scenario
}

/// Time passes, and chunks that have waited are released.
async fn later(scenario: &AuditScenario, seconds: i64) {
    scenario.app.clock.advance_seconds(seconds);
    release_audited(&scenario.app.app).await.unwrap();
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_newcomers_chunk_is_trained_on_once_its_audit_has_passed() {
    let scenario = with_auditor().await;
    let (games, hash) = scenario.alice_plays().await;
    later(&scenario, 0).await;
    assert_eq!(scenario.left_out().await, [hash]);
    // It counts in all else, and is in the ledger's order for exports and everyone who lists it.
    assert_eq!(scenario.training_positions().await, POSITIONS);
    assert_eq!(scenario.alice().await.held_chunks, 0);
    let page = scenario.app.app.db.chunks(&run(), 0, 10).await.unwrap();
    let rows = page.chunks.iter();
    let listed: Vec<_> = rows.map(|row| (row.hash, row.held)).collect();
    assert_eq!(listed, [(hash, false)]);
    scenario.answer(&scenario.auditor, &games, Same).await;
    later(&scenario, 0).await;
    assert_eq!(scenario.left_out().await, []);
}

#[tokio::test]
async fn a_newcomers_chunk_whose_audit_fails_is_never_trained_on() {
    let scenario = with_auditor().await;
    let hash = scenario.judged(Other).await;
    later(&scenario, QUARTER).await;
    assert_eq!(scenario.left_out().await, [hash]);
    assert_eq!(scenario.alice().await.held_chunks, 1);
}

/// An audit that is given up, as most of a flood's are, releases nothing; one that is begun anew keeps nothing back again.
#[tokio::test]
async fn training_waits_for_no_audit_longer_than_a_quarter_of_an_hour() {
    let scenario = with_auditor().await;
    let (_, first) = scenario.alice_plays().await;
    let given_up = "UPDATE audits SET state = 'void', plan = NULL";
    scenario.app.database.tamper(given_up).await;
    later(&scenario, QUARTER - 1).await;
    assert_eq!(scenario.left_out().await, [first]);
    later(&scenario, 1).await;
    assert_eq!(scenario.left_out().await, []);
    let second = scenario.judged(Other).await;
    assert_eq!(scenario.alice().await.audits_open, 1, "begun anew");
    assert_eq!(scenario.left_out().await, [second]);
}

#[tokio::test]
async fn only_newcomers_chunks_wait_and_only_for_an_auditor_at_work() {
    let scenario = AuditScenario::new().await;
    let (alice, bob) = (&scenario.app.alice, &scenario.app.bob);
    scenario.proven(&[bob]).await;
    later(&scenario, 0).await;
    // Nobody could audit the only auditor's own.
    scenario.plays(&scenario.auditor).await;
    assert_eq!(scenario.left_out().await, []);
    let (_, waiting) = scenario.alice_plays().await;
    scenario.plays(bob).await;
    scenario.app.submit(1).await;
    let job = scenario.app.lease(alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    let games = pair_games(&job, 0, [Win, Win]);
    scenario.app.accepted(alice, &chunk(&job, &games)).await;
    assert_eq!(scenario.left_out().await, [waiting]);
}

#[tokio::test]
async fn where_the_auditor_has_gone_no_chunk_waits() {
    let scenario = with_auditor().await;
    scenario.app.clock.advance_seconds(ACTIVE.as_secs() + 1);
    scenario.alice_plays().await;
    assert_eq!(scenario.left_out().await, []);
}

#[tokio::test]
async fn an_operators_order_ends_the_wait() {
    let scenario = with_auditor().await;
    for of_contributor in [false, true] {
        let (_, hash) = scenario.alice_plays().await;
        let path = if of_contributor {
            "/users/alice".to_owned()
        } else {
            format!("/chunks/{hash}")
        };
        for held in [true, false] {
            assert_eq!(scenario.app.order(&path, held).await, 204);
            assert_eq!(scenario.left_out().await.contains(&hash), held);
            scenario.app.assert_consistent().await;
        }
        later(&scenario, 0).await;
        assert_eq!(scenario.left_out().await, []);
    }
}
