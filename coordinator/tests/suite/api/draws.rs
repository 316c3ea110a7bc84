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
use crate::support::court::{Court, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::{audit, chunk, selfplay};
use crate::support::noon;

/// Takes a job from an address.
async fn lease_from(court: &Court, token: &str, address: &str) -> Job {
    let body = json!({
        "protocol": 2, "version": "0.1.0", "worker": "w", "backend": "uniform",
    });
    let peer: IpAddr = address.parse().unwrap();
    let request = Request::post("/api/v1/jobs")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .extension(Peer(peer))
        .body(Body::from(body.to_string()));
    parse(StatusCode::OK, court.app.send(request.unwrap()).await).await
}

#[tokio::test]
async fn a_sibling_that_asks_first_and_often_gets_none_of_its_siblings_audits() {
    let mut court = Court::new().await;
    let [alice, bob] = [&court.app.alice, &court.app.bob].map(Clone::clone);
    let [carol, dave] = [&court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    for round in 0..5 {
        let job = lease_from(&court, &alice, "198.51.100.7").await;
        for (token, address) in [
            (&bob, "198.51.100.200"),
            (&carol, "203.0.113.5"),
            (&dave, "2001:db8::1"),
        ] {
            lease_from(&court, token, address).await;
        }
        let game = selfplay(&job, 0, 50_000 + round);
        let bytes = chunk(&job, std::slice::from_ref(&game));
        court.app.accepted(&alice, &bytes).await;
        court.planned().await;
        court.app.clock.advance_seconds(PATIENCE);
        draw_waiting(&court.app.app).await.unwrap();
        for _ in 0..10 {
            let job = lease_from(&court, &bob, "198.51.100.200").await;
            assert_eq!(job.work.kind(), WorkKind::SelfPlay);
        }
        let mut audits = 0;
        for (token, address) in [(&carol, "203.0.113.5"), (&dave, "2001:db8::1")] {
            let job = lease_from(&court, token, address).await;
            if job.work.kind() == WorkKind::Audit {
                let answer = audit(&job, std::slice::from_ref(&game), Same);
                court.app.accepted(token, &answer).await;
                audits += 1;
            }
        }
        assert_eq!(audits, 1);
        // The leases end.
        court.app.clock.advance_seconds(121);
    }
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn only_who_was_drawn_gets_an_audit_until_another_is_drawn() {
    let mut court = Court::new().await;
    let [bob, carol] = [&court.app.bob, &court.carol].map(Clone::clone);
    court.proven(&[&bob, &carol]).await;
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    court.draw(&carol).await;
    draw_waiting(&court.app.app).await.unwrap();
    for _ in 0..5 {
        let job = court.app.lease(&bob).await;
        assert_eq!(job.work.kind(), WorkKind::SelfPlay);
    }
    // Carol does not come.
    court.app.clock.advance_seconds(DRAWN_FOR.as_secs() + 1);
    court.app.lease(&bob).await;
    draw_waiting(&court.app.app).await.unwrap();
    assert_eq!(
        court.app.lease(&carol).await.work.kind(),
        WorkKind::SelfPlay
    );
    let job = court.app.lease(&bob).await;
    assert_eq!(job.work.kind(), WorkKind::Audit);
    court.app.accepted(&bob, &audit(&job, &games, Same)).await;
    assert_eq!(court.alice().await.audits_passed, 1);
}

async fn revoke_auditor(court: &Court) {
    let db = &court.app.app.db;
    let tokens = db.tokens("auditor").await.unwrap();
    let revoked = db.revoke_token(tokens[0].id, "test", noon());
    revoked.await.unwrap();
}

#[tokio::test]
async fn fresh_accounts_do_not_acquit_each_other_where_somebody_is_past_probation() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&dave]).await;
    revoke_auditor(&court).await;
    for token in [&bob, &carol] {
        court.app.lease(token).await;
    }
    let (games, _) = court.alice_plays().await;
    court.app.clock.advance_seconds(PATIENCE);
    for token in [&bob, &carol] {
        assert_eq!(court.kind(token).await, WorkKind::SelfPlay);
    }
    assert_eq!(court.drawn_answers(&games, Same).await, "dave");
    assert_eq!(court.alice().await.audits_passed, 1);
    // Of the only one who is past it somebody else has to look.
    court.app.lease(&bob).await;
    for _ in 0..20 {
        court.plays(&dave).await;
    }
    let trust = court.app.app.db.trust("dave").await.unwrap();
    if trust.audits_open > 0 {
        court.app.clock.advance_seconds(PATIENCE);
        assert_eq!(court.kind(&bob).await, WorkKind::Audit);
    }
}

#[tokio::test]
async fn an_honest_newcomer_is_not_convicted_by_those_who_vouched_for_each_other() {
    let mut court = Court::of_newcomers().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.app.lease(&carol).await;
    for (player, auditor) in [(&bob, &carol), (&carol, &bob), (&dave, &bob)] {
        for _ in 0..PROBATION {
            let (games, _) = court.plays(player).await;
            court.app.clock.advance_seconds(PATIENCE);
            court.app.lease(auditor).await;
            court.answer(auditor, &games, Same).await;
        }
    }
    for name in ["bob", "carol", "dave"] {
        let trust = court.app.app.db.trust(name).await.unwrap();
        assert_eq!(trust.level, TrustLevel::Trusted, "{name}");
    }
    for _ in 0..3 {
        let (games, _) = court.alice_plays().await;
        court.app.clock.advance_seconds(PATIENCE);
        for token in [&bob, &carol, &dave] {
            court.app.lease(token).await;
            court.answer(token, &games, Other).await;
        }
    }
    let alice = court.alice().await;
    assert_eq!((alice.audits_open, alice.audits_failed), (3, 0));
    assert_eq!(alice.level, TrustLevel::Probation);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn the_page_says_how_much_is_audited_and_that_nobody_is_trusted() {
    let mut court = Court::new().await;
    court.judged(Same).await;
    let page = court.app.page("/trust").await;
    assert!(
        page.contains("64 positions were searched again by auditors"),
        "{page}"
    );
    assert!(!page.contains("no auditor is trusted"), "{page}");
    revoke_auditor(&court).await;
    let page = court.app.page("/trust").await;
    assert!(page.contains("no auditor is trusted"), "{page}");
}
