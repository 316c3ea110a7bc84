//! Who is given audits: who was drawn, whoever asks first; nobody of the author's own circle; and whose word
//! convicts.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::trust::TrustLevel;
use rookery_coordinator::limits::address::Peer;
use rookery_coordinator::trust::draw::DRAWN_FOR;
use rookery_coordinator::trust::plan::draw_waiting;
use rookery_coordinator::trust::rate::PROBATION;
use serde_json::json;

use crate::support::app::parse;
use crate::support::audit_scenario::{AuditScenario, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::{audit, selfplay};

/// Takes a job from an address.
async fn lease_from(scenario: &AuditScenario, token: &str, address: &str) -> Job {
    let body = json!({
        "protocol": 2, "version": "0.1.0", "worker": "w", "backend": "uniform",
    });
    let peer: IpAddr = address.parse().unwrap();
    let request = Request::post("/api/v1/jobs")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .extension(Peer(peer))
        .body(Body::from(body.to_string()));
    parse(StatusCode::OK, scenario.app.send(request.unwrap()).await).await
}

#[tokio::test]
async fn a_sibling_that_asks_first_and_often_gets_none_of_its_siblings_audits() {
    let scenario = AuditScenario::new().await;
    let [alice, bob] = [&scenario.app.alice, &scenario.app.bob];
    let [carol, dave] = [&scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    for round in 0..5 {
        let job = lease_from(&scenario, alice, "198.51.100.7").await;
        for (token, address) in [
            (bob, "198.51.100.200"),
            (carol, "203.0.113.5"),
            (dave, "2001:db8::1"),
        ] {
            lease_from(&scenario, token, address).await;
        }
        let games = [selfplay(&job, 0, 50_000 + round)];
        scenario.app.hand_in(alice, &job, &games).await;
        scenario.planned().await;
        scenario.app.clock.advance_seconds(PATIENCE);
        draw_waiting(&scenario.app.app).await.unwrap();
        for _ in 0..10 {
            let job = lease_from(&scenario, bob, "198.51.100.200").await;
            assert_eq!(job.work.kind(), WorkKind::SelfPlay);
        }
        let mut audits = 0;
        for (token, address) in [(carol, "203.0.113.5"), (dave, "2001:db8::1")] {
            let job = lease_from(&scenario, token, address).await;
            if job.work.kind() == WorkKind::Audit {
                let answer = audit(&job, &games, Same);
                scenario.app.accepted(token, &answer).await;
                audits += 1;
            }
        }
        assert_eq!(audits, 1);
        // The leases end.
        scenario.app.clock.advance_seconds(121);
    }
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn only_who_was_drawn_gets_an_audit_until_another_is_drawn() {
    let scenario = AuditScenario::new().await;
    let [bob, carol] = [&scenario.app.bob, &scenario.carol];
    scenario.proven(&[bob, carol]).await;
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    scenario.draw(carol).await;
    draw_waiting(&scenario.app.app).await.unwrap();
    for _ in 0..5 {
        let job = scenario.app.lease(bob).await;
        assert_eq!(job.work.kind(), WorkKind::SelfPlay);
    }
    // Carol does not come.
    scenario.app.clock.advance_seconds(DRAWN_FOR.as_secs() + 1);
    scenario.app.lease(bob).await;
    draw_waiting(&scenario.app.app).await.unwrap();
    assert_eq!(
        scenario.app.lease(carol).await.work.kind(),
        WorkKind::SelfPlay
    );
    let job = scenario.app.lease(bob).await;
    assert_eq!(job.work.kind(), WorkKind::Audit);
    scenario.app.accepted(bob, &audit(&job, &games, Same)).await;
    assert_eq!(scenario.alice().await.audits_passed, 1);
}

#[tokio::test]
async fn fresh_accounts_do_not_acquit_each_other_where_somebody_is_past_probation() {
    let scenario = AuditScenario::new().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.proven(&[dave]).await;
    scenario.revoke_auditor().await;
    for token in [bob, carol] {
        scenario.app.lease(token).await;
    }
    let (games, _) = scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for token in [bob, carol] {
        assert_eq!(scenario.kind(token).await, WorkKind::SelfPlay);
    }
    assert_eq!(scenario.drawn_answers(&games, Same).await, "dave");
    assert_eq!(scenario.alice().await.audits_passed, 1);
    // Of the only one who is past it somebody else has to look.
    scenario.app.lease(bob).await;
    for _ in 0..20 {
        scenario.plays(dave).await;
    }
    let trust = scenario.app.app.db.trust("dave").await.unwrap();
    if trust.audits_open > 0 {
        scenario.app.clock.advance_seconds(PATIENCE);
        assert_eq!(scenario.kind(bob).await, WorkKind::Audit);
    }
}

#[tokio::test]
async fn an_honest_newcomer_is_not_convicted_by_those_who_vouched_for_each_other() {
    let scenario = AuditScenario::of_newcomers().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.app.lease(carol).await;
    for (player, auditor) in [(bob, carol), (carol, bob), (dave, bob)] {
        for _ in 0..PROBATION {
            let (games, _) = scenario.plays(player).await;
            scenario.app.clock.advance_seconds(PATIENCE);
            scenario.app.lease(auditor).await;
            scenario.answer(auditor, &games, Same).await;
        }
    }
    for name in ["bob", "carol", "dave"] {
        let trust = scenario.app.app.db.trust(name).await.unwrap();
        assert_eq!(trust.level, TrustLevel::Trusted, "{name}");
    }
    for _ in 0..3 {
        let (games, _) = scenario.alice_plays().await;
        scenario.app.clock.advance_seconds(PATIENCE);
        for token in [bob, carol, dave] {
            scenario.app.lease(token).await;
            scenario.answer(token, &games, Other).await;
        }
    }
    let alice = scenario.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (3, 0));
    assert_eq!(alice.level, TrustLevel::Probation);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn the_page_says_how_much_is_audited_and_that_nobody_is_trusted() {
    let scenario = AuditScenario::new().await;
    scenario.judged(Same).await;
    let said = ["64 positions were searched again by auditors"];
    let page = scenario.app.says("/trust", &said).await;
    assert!(!page.contains("no auditor is trusted"), "{page}");
    scenario.revoke_auditor().await;
    let page = scenario.app.page("/trust").await;
    assert!(page.contains("no auditor is trusted"), "{page}");
}
