//! Contributors on probation: which matches they play.

use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::trust::TrustLevel;
use rookery_common::rating::gate::GateRule;
use serde_json::json;
use sqlx::Connection as _;

use crate::support::app::params;
use crate::support::audit_scenario::AuditScenario;
use crate::support::games::Found::Other;

#[tokio::test]
async fn newcomers_do_not_decide_gates_while_enough_others_are_at_work() {
    let scenario = AuditScenario::new().await;
    let [alice, bob] = [&scenario.app.alice, &scenario.app.bob];
    let [carol, dave] = [&scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    scenario.app.submit(1).await;
    assert_eq!(scenario.kind(alice).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(dave).await, WorkKind::Match);
    assert_eq!(scenario.kind(&scenario.auditor).await, WorkKind::Match);
    // The others have gone, and their leases are over.
    scenario.app.clock.advance_seconds(601);
    assert_eq!(scenario.kind(alice).await, WorkKind::Match);
}

#[tokio::test]
async fn who_has_failed_an_audit_waits_for_gates_twice_as_long() {
    let scenario = AuditScenario::new().await;
    let [alice, bob] = [&scenario.app.alice, &scenario.app.bob];
    let [carol, dave] = [&scenario.carol, &scenario.dave];
    scenario.judged(Other).await;
    scenario.proven(&[alice]).await;
    assert_eq!(scenario.alice().await.level, TrustLevel::Trusted);
    scenario.proven(&[bob, carol, dave]).await;
    scenario.app.submit(1).await;
    assert_eq!(scenario.kind(alice).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(bob).await, WorkKind::Match);
}

#[tokio::test]
async fn newcomers_play_gates_where_others_are_few_or_in_quarantine() {
    let scenario = AuditScenario::new().await;
    let [alice, bob] = [&scenario.app.alice, &scenario.app.bob];
    let [carol, dave] = [&scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    assert_eq!(scenario.app.order("/users/dave", true).await, 204);
    scenario.app.submit(1).await;
    assert_eq!(scenario.kind(alice).await, WorkKind::Match);
}

#[tokio::test]
async fn newcomers_play_rating_matches_unless_these_may_move_best() {
    let scenario = AuditScenario::new().await;
    let [alice, bob] = [&scenario.app.alice, &scenario.app.bob];
    let [carol, dave] = [&scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    let rolls_back = async |rollback| {
        let params = RunParams {
            gate: GateRule::None,
            rollback,
            ..params()
        };
        scenario.app.patch_run(&json!({ "params": params })).await;
    };
    rolls_back(None).await;
    scenario.app.submit(1).await;
    scenario.app.open_match(1, 0, 4).await;
    assert_eq!(scenario.kind(alice).await, WorkKind::Match);
    rolls_back(Some(0.99)).await;
    assert_eq!(scenario.kind(alice).await, WorkKind::SelfPlay);
    assert_eq!(scenario.kind(bob).await, WorkKind::Match);
}

/// Where no auditor's word stands behind it, a record keeps nobody else from anything.
#[tokio::test]
async fn those_who_vouched_for_each_other_keep_nobody_from_gates() {
    let scenario = AuditScenario::of_newcomers().await;
    let mut ledger = scenario.app.database.connect().await;
    sqlx::query(
        "INSERT INTO track_records (user_id, passed, failed)
         SELECT id, 100, 0 FROM users WHERE name IN ('bob', 'carol', 'dave')",
    )
    .execute(&mut ledger)
    .await
    .unwrap();
    ledger.close().await.unwrap();
    for token in [&scenario.app.bob, &scenario.carol, &scenario.dave] {
        scenario.plays(token).await;
    }
    scenario.app.submit(1).await;
    assert_eq!(scenario.kind(&scenario.app.alice).await, WorkKind::Match);
}
