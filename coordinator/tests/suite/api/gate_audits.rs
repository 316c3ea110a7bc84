//! Gates wait for audits of the chunks that decide them.

use rookery_common::chunk::GameRecord;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::WorkKind;
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_coordinator::trust::plan::settle_gates;

use crate::support::court::{Court, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::Win;
use crate::support::games::{chunk, pair_games};
use crate::support::matches::statuses;

/// Seconds after which a chunk keeps a gate open no longer.
const QUARTER: i64 = 15 * 60;

/// Somebody wins both pairs of the gate, which decides it, in one chunk each.
async fn wins(court: &Court, token: &str) -> Vec<GameRecord> {
    let mut played = Vec::new();
    for _ in 0..2 {
        let job = court.app.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::Match);
        let games = pair_games(&job, 0, [Win, Win]);
        court.app.accepted(token, &chunk(&job, &games)).await;
        played.extend(games);
    }
    court.planned().await;
    played
}

/// A court with a candidate, whose auditor is at work.
async fn with_auditor() -> Court {
    let court = Court::new().await;
    court.come(&[&court.auditor]).await;
    court.app.submit(1).await;
    court
}

async fn gate(court: &Court) -> MatchInfo {
    court.app.get("/matches/1").await
}

#[tokio::test]
async fn made_up_games_that_would_end_a_gate_fail_and_it_goes_on_without_them() {
    let court = with_auditor().await;
    let alice = court.app.alice.clone();
    let made_up = wins(&court, &alice).await;
    let open = gate(&court).await;
    assert_eq!(
        (open.status, open.tally.pairs.counts),
        (MatchStatus::Open, [0, 0, 0, 0, 2])
    );
    court.app.assert_consistent().await;
    court.answer(&court.auditor, &made_up, Other).await;
    assert_eq!(gate(&court).await.status, MatchStatus::Open);
    court.answer(&court.auditor, &made_up, Other).await;
    let open = gate(&court).await;
    assert_eq!((open.status, open.tally.wins), (MatchStatus::Open, 0));
    // The second failure was one too many. Others play the pairs again.
    let bob = court.app.bob.clone();
    let honest = wins(&court, &bob).await;
    for status in [MatchStatus::Open, MatchStatus::Promoted] {
        court.answer(&court.auditor, &honest, Same).await;
        assert_eq!(gate(&court).await.status, status);
    }
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_ends_when_the_audits_of_its_games_have_passed() {
    let court = with_auditor().await;
    let alice = court.app.alice.clone();
    let games = wins(&court, &alice).await;
    court.answer(&court.auditor, &games, Same).await;
    settle_gates(&court.app.app).await.unwrap();
    assert_eq!(gate(&court).await.status, MatchStatus::Open);
    let mut events = court.app.app.events.subscribe();
    court.answer(&court.auditor, &games, Same).await;
    assert_eq!(gate(&court).await.status, MatchStatus::Promoted);
    assert_eq!(statuses(&court.app).await[1], NetworkStatus::Promoted);
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let promoted = told.filter(|event| matches!(event, Event::Promotion { .. }));
    assert_eq!(promoted.count(), 1);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_volunteers_as_well() {
    let mut court = Court::new().await;
    let [bob, carol, dave] = [&court.app.bob, &court.carol, &court.dave].map(Clone::clone);
    court.proven(&[&bob, &carol, &dave]).await;
    court.app.submit(1).await;
    let auditor = court.auditor.clone();
    let games = wins(&court, &auditor).await;
    court.app.clock.advance_seconds(PATIENCE);
    for volunteer in [&bob, &carol] {
        assert_eq!(gate(&court).await.status, MatchStatus::Open);
        court.answer(volunteer, &games, Same).await;
    }
    assert_eq!(gate(&court).await.status, MatchStatus::Promoted);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn where_nobody_can_audit_a_gate_ends_at_once() {
    let court = Court::new().await;
    court.app.submit(1).await;
    let alice = court.app.alice.clone();
    wins(&court, &alice).await;
    assert_eq!(gate(&court).await.status, MatchStatus::Promoted);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_no_audit_longer_than_a_quarter_of_an_hour() {
    let court = with_auditor().await;
    let alice = court.app.alice.clone();
    wins(&court, &alice).await;
    let status_after = async |seconds| {
        court.app.clock.advance_seconds(seconds);
        settle_gates(&court.app.app).await.unwrap();
        gate(&court).await.status
    };
    assert_eq!(status_after(QUARTER / 2).await, MatchStatus::Open);
    // The auditor is still at work, but does not come to it.
    court.app.lease(&court.auditor).await;
    assert_eq!(status_after(QUARTER / 2 - 1).await, MatchStatus::Open);
    assert_eq!(status_after(1).await, MatchStatus::Promoted);
    court.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_no_auditor_who_has_gone() {
    let court = with_auditor().await;
    let alice = court.app.alice.clone();
    wins(&court, &alice).await;
    court.app.clock.advance_seconds(601);
    settle_gates(&court.app.app).await.unwrap();
    assert_eq!(gate(&court).await.status, MatchStatus::Promoted);
}
