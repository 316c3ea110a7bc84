//! Gates wait for audits of the chunks that decide them.

use rookery_common::chunk::GameRecord;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{Work, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::protocol::people::Scope;
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::trust::plan::settle_gates;

use crate::support::app::user;
use crate::support::audit_scenario::{AuditScenario, PATIENCE};
use crate::support::games::Found::{Other, Same};
use crate::support::games::Score::Win;
use crate::support::games::{pair_games, selfplay};
use crate::support::matches::statuses;

/// Seconds after which a chunk keeps a gate open no longer.
const QUARTER: i64 = 15 * 60;

/// Somebody wins both pairs of the gate, which decides it, in one chunk each.
async fn wins(scenario: &AuditScenario, token: &str) -> Vec<GameRecord> {
    let mut played = Vec::new();
    for _ in 0..2 {
        let job = scenario.app.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::Match);
        let games = pair_games(&job, 0, [Win, Win]);
        scenario.app.hand_in(token, &job, &games).await;
        played.extend(games);
    }
    scenario.planned().await;
    played
}

/// A scenario with a candidate, whose auditor is at work.
async fn with_auditor() -> AuditScenario {
    let scenario = AuditScenario::new().await;
    scenario.come(&[&scenario.auditor]).await;
    scenario.app.submit(1).await;
    scenario
}

async fn gate(scenario: &AuditScenario) -> MatchInfo {
    scenario.app.get("/matches/1").await
}

#[tokio::test]
async fn made_up_games_that_would_end_a_gate_fail_and_it_goes_on_without_them() {
    let scenario = with_auditor().await;
    let alice = &scenario.app.alice;
    let made_up = wins(&scenario, alice).await;
    let open = gate(&scenario).await;
    assert_eq!(
        (open.status, open.tally.pairs.counts),
        (MatchStatus::Open, [0, 0, 0, 0, 2])
    );
    scenario.app.assert_consistent().await;
    scenario.answer(&scenario.auditor, &made_up, Other).await;
    assert_eq!(gate(&scenario).await.status, MatchStatus::Open);
    scenario.answer(&scenario.auditor, &made_up, Other).await;
    let open = gate(&scenario).await;
    assert_eq!((open.status, open.tally.wins), (MatchStatus::Open, 0));
    // The second failure was one too many. Others play the pairs again.
    let bob = &scenario.app.bob;
    let honest = wins(&scenario, bob).await;
    for status in [MatchStatus::Open, MatchStatus::Promoted] {
        scenario.answer(&scenario.auditor, &honest, Same).await;
        assert_eq!(gate(&scenario).await.status, status);
    }
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_ends_when_the_audits_of_its_games_have_passed() {
    let scenario = with_auditor().await;
    let alice = &scenario.app.alice;
    let games = wins(&scenario, alice).await;
    scenario.answer(&scenario.auditor, &games, Same).await;
    settle_gates(&scenario.app.app).await.unwrap();
    assert_eq!(gate(&scenario).await.status, MatchStatus::Open);
    let mut events = scenario.app.app.events.subscribe();
    scenario.answer(&scenario.auditor, &games, Same).await;
    assert_eq!(gate(&scenario).await.status, MatchStatus::Promoted);
    assert_eq!(statuses(&scenario.app).await[1], NetworkStatus::Promoted);
    let told = std::iter::from_fn(|| events.try_recv().ok());
    let promoted = told.filter(|event| matches!(event, Event::Promotion { .. }));
    assert_eq!(promoted.count(), 1);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_volunteers_as_well() {
    let scenario = AuditScenario::new().await;
    let [bob, carol, dave] = [&scenario.app.bob, &scenario.carol, &scenario.dave];
    scenario.proven(&[bob, carol, dave]).await;
    scenario.app.submit(1).await;
    let auditor = &scenario.auditor;
    let games = wins(&scenario, auditor).await;
    scenario.app.clock.advance_seconds(PATIENCE);
    for volunteer in [bob, carol] {
        assert_eq!(gate(&scenario).await.status, MatchStatus::Open);
        scenario.answer(volunteer, &games, Same).await;
    }
    assert_eq!(gate(&scenario).await.status, MatchStatus::Promoted);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn where_nobody_can_audit_a_gate_ends_at_once() {
    let scenario = AuditScenario::new().await;
    scenario.app.submit(1).await;
    let alice = &scenario.app.alice;
    wins(&scenario, alice).await;
    assert_eq!(gate(&scenario).await.status, MatchStatus::Promoted);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_no_audit_longer_than_a_quarter_of_an_hour() {
    let scenario = with_auditor().await;
    let alice = &scenario.app.alice;
    wins(&scenario, alice).await;
    let status_after = async |seconds| {
        scenario.app.clock.advance_seconds(seconds);
        settle_gates(&scenario.app.app).await.unwrap();
        gate(&scenario).await.status
    };
    assert_eq!(status_after(QUARTER / 2).await, MatchStatus::Open);
    // The auditor is still at work, but does not come to it.
    scenario.app.lease(&scenario.auditor).await;
    assert_eq!(status_after(QUARTER / 2 - 1).await, MatchStatus::Open);
    assert_eq!(status_after(1).await, MatchStatus::Promoted);
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn a_gate_waits_for_no_auditor_who_has_gone() {
    let scenario = with_auditor().await;
    let alice = &scenario.app.alice;
    wins(&scenario, alice).await;
    scenario.app.clock.advance_seconds(601);
    settle_gates(&scenario.app.app).await.unwrap();
    assert_eq!(gate(&scenario).await.status, MatchStatus::Promoted);
}

/// Sends this many chunks of self-play, whose audits are not planned yet. `first` makes their games different from others.
async fn floods(scenario: &AuditScenario, token: &str, first: u32, chunks: u32) {
    for salt in first..first + chunks {
        let job = scenario.app.lease(token).await;
        assert_eq!(job.work.kind(), WorkKind::SelfPlay);
        let games = [selfplay(&job, 0, salt)];
        scenario.app.hand_in(token, &job, &games).await;
    }
}

#[tokio::test]
async fn audits_that_a_gate_waits_for_come_before_a_flood_of_others() {
    let scenario = AuditScenario::new().await;
    scenario.come(&[&scenario.auditor]).await;
    // As many as are planned ahead, of as many accounts as that takes, and some more.
    for account in 0..17 {
        let name = format!("flood{account}");
        let token = user(&scenario.app.app, &name, &[Scope::Contribute]).await;
        floods(&scenario, &token, 100 * account, 16).await;
    }
    scenario.planned().await;
    scenario.app.submit(1).await;
    let (alice, bob) = (&scenario.app.alice, &scenario.app.bob);
    let games = wins(&scenario, alice).await;
    scenario.app.clock.advance_seconds(PATIENCE);
    // Somebody is drawn for them first.
    let (db, now) = (&scenario.app.app.db, scenario.app.clock.now());
    let board = db.draw_boards(now).await.unwrap().remove(0);
    let alices = scenario.app.holder(alice).await.user;
    let authors = board.audits.iter().map(|audit| audit.author.user);
    let places = authors.enumerate().filter(|(_, user)| *user == alices);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    assert_eq!(places, [0, 1]);
    // Who is drawn for several makes them first.
    let bobs = scenario.app.holder(bob).await.user;
    let drawn = [5, 1].map(|place| (board.audits[place].id, bobs));
    db.enter_draws(drawn.to_vec(), now).await.unwrap();
    let job = scenario.app.lease(bob).await;
    let Work::Audit { tasks, .. } = &job.work else {
        panic!("no audit: {:?}", job.work)
    };
    assert!(games.iter().any(|game| game.seed == tasks[0].seed));
    scenario.app.give_back(bob, &job).await;
    // The operator's auditor makes them first, too.
    for status in [MatchStatus::Open, MatchStatus::Promoted] {
        scenario.answer(&scenario.auditor, &games, Same).await;
        assert_eq!(gate(&scenario).await.status, status);
    }
    scenario.app.assert_consistent().await;
}

#[tokio::test]
async fn no_flood_of_ones_own_takes_an_audit_away_that_a_gate_waits_for() {
    let scenario = AuditScenario::new().await;
    scenario.come(&[&scenario.auditor]).await;
    let alice = &scenario.app.alice;
    floods(&scenario, alice, 0, 205).await;
    scenario.app.submit(1).await;
    wins(&scenario, alice).await;
    // Chance would give these up before any other.
    let lowest = "UPDATE audits SET sampling_key = -1000
                  WHERE chunk IN (SELECT sequence FROM chunks WHERE kind = 'match')";
    scenario.app.database.tamper(lowest).await;
    floods(&scenario, alice, 1_000, 5).await;
    scenario.planned().await;
    assert_eq!(scenario.alice().await.audits_open, 200);
    settle_gates(&scenario.app.app).await.unwrap();
    assert_eq!(gate(&scenario).await.status, MatchStatus::Open);
}
