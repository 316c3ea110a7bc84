//! Gate matches: handed out, re-issued, decided.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use rookery_common::ids::{ContentHash, NetworkNumber};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{HeartbeatReply, Instruction, Job, Work, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose, MatchStatus, RatingRow};
use rookery_common::protocol::networks::{NetworkInfo, NetworkReceipt, NetworkStatus};
use rookery_common::protocol::people::OperatorLogPage;
use rookery_common::protocol::runs::RunInfo;

use crate::support::app::{TestApp, code, parse, problem};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{PairPlan, chunk, pair_games, pairs};
use crate::support::networks::network_file;

/// A run with a best network, a candidate in its gate match, and one that waits.
async fn gated() -> TestApp {
    let app = TestApp::new().await;
    for number in 0..3 {
        app.submit(number).await;
    }
    app
}

async fn play(app: &TestApp, token: &str, plan: PairPlan) -> Job {
    let job = app.lease(token).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    app.accepted(token, &chunk(&job, &pair_games(&job, 0, plan)))
        .await;
    job
}

async fn statuses(app: &TestApp) -> Vec<NetworkStatus> {
    let mut networks: Vec<NetworkInfo> = app.get("/networks").await;
    networks.reverse();
    networks.into_iter().map(|network| network.status).collect()
}

#[tokio::test]
async fn a_winner_becomes_best_and_the_next_candidate_plays_it() {
    let app = gated().await;
    let mut events = app.app.events.subscribe();
    assert_eq!(play(&app, &app.alice, [Win, Draw]).await.networks.len(), 2);
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(0))
    );
    play(&app, &app.bob, [Win, Win]).await;
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(1))
    );
    use NetworkStatus::{Candidate, Initial, Promoted};
    assert_eq!(statuses(&app).await, [Initial, Promoted, Candidate]);
    let decided: MatchInfo = app.get("/matches/1").await;
    assert_eq!(decided.status, MatchStatus::Promoted);
    assert_eq!(
        (
            decided.tally.wins,
            decided.tally.draws,
            decided.tally.losses
        ),
        (3, 1, 0)
    );
    assert_eq!(decided.tally.pairs.counts, [0, 0, 0, 1, 1]);
    assert!(decided.reason.is_some() && decided.decided_at.is_some());
    let next: MatchInfo = app.get("/matches/2").await;
    assert_eq!(
        (next.candidate, next.opponent),
        (NetworkNumber(2), NetworkNumber(1))
    );
    let mut seen = Vec::new();
    while !seen.contains(&"ratings") {
        seen.push(events.recv().await.unwrap().kind());
    }
    assert_eq!(
        seen,
        ["chunk", "match", "chunk", "match", "promotion", "ratings"]
    );
    let ratings: Vec<RatingRow> = app.get("/ratings").await;
    assert_eq!(ratings[0].network, NetworkNumber(1));
    assert!(ratings[0].rating.elo > 0.0 && ratings[0].rating.low < ratings[0].rating.elo);
    assert_eq!(ratings[1].rating.elo, 0.0);
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_loser_is_rejected_and_best_stays() {
    let app = gated().await;
    play(&app, &app.alice, [Loss, Draw]).await;
    play(&app, &app.alice, [Draw, Draw]).await;
    use NetworkStatus::{Candidate, Initial, Rejected};
    assert_eq!(statuses(&app).await, [Initial, Rejected, Candidate]);
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(0))
    );
    let next: MatchInfo = app.get("/matches/2").await;
    assert_eq!(
        (next.candidate, next.opponent),
        (NetworkNumber(2), NetworkNumber(0))
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn no_more_pairs_are_out_than_the_rule_can_need() {
    let app = gated().await;
    let first = app.lease(&app.alice).await;
    let second = app.lease(&app.bob).await;
    assert_eq!((pairs(&first)[0].pair, pairs(&second)[0].pair), (0, 1));
    let third = app.lease(&app.bob).await;
    assert_eq!(
        third.work.kind(),
        WorkKind::SelfPlay,
        "both pairs of the gate are out"
    );
    assert_ne!(first.seed, second.seed);
}

#[tokio::test]
async fn a_lost_workers_pair_goes_to_another_after_the_grace() {
    let app = gated().await;
    let lost = app.lease(&app.alice).await;
    let half = [pair_games(&lost, 0, [Win, Win])[0].clone()];
    app.accepted(&app.alice, &chunk(&lost, &half)).await;
    app.lease(&app.bob).await;
    app.clock.advance_seconds(120);
    assert_eq!(
        app.lease(&app.bob).await.work.kind(),
        WorkKind::SelfPlay,
        "still in grace"
    );
    app.clock.advance_seconds(1);
    let again = app.lease(&app.bob).await;
    assert_eq!(pairs(&again)[0].pair, 0);
    // The first worker comes back too late for this pair.
    let late = [pair_games(&lost, 0, [Win, Win])[1].clone()];
    let answer = app.upload(&app.alice, &chunk(&lost, &late)).await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
    let beat = format!("/jobs/{}/heartbeat", lost.id);
    let answer = app.call(Method::POST, &beat, &app.alice, "{}").await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
    // The pair counts as the second worker played it, whole.
    app.accepted(
        &app.bob,
        &chunk(&again, &pair_games(&again, 0, [Loss, Loss])),
    )
    .await;
    let tally = app.get::<MatchInfo>("/matches/1").await.tally;
    assert_eq!(
        (tally.wins, tally.losses, tally.pairs.counts),
        (0, 2, [1, 0, 0, 0, 0])
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn heartbeats_keep_a_lease_and_revive_one_that_nobody_took() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    let beat = format!("/jobs/{}/heartbeat", job.id);
    for _ in 0..5 {
        app.clock.advance_seconds(50);
        let answer = app.call(Method::POST, &beat, &app.alice, "{}").await;
        let reply: HeartbeatReply = parse(StatusCode::OK, answer).await;
        assert_eq!(reply.instruction, Instruction::Continue);
    }
    app.clock.advance_seconds(1000);
    app.call(Method::POST, &beat, &app.alice, "{}").await;
    let other = app.lease(&app.bob).await;
    assert_eq!(pairs(&other)[0].pair, 1, "pair 0 is alice's again");
}

#[tokio::test]
async fn heartbeats_do_not_hold_a_pair_for_ever() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    let beat = format!("/jobs/{}/heartbeat", job.id);
    let minutes = async |minutes: u32| {
        for _ in 0..minutes {
            app.clock.advance_seconds(60);
            let answer = app.call(Method::POST, &beat, &app.alice, "{}").await;
            assert_eq!(answer.status(), StatusCode::OK);
        }
        let job = app.lease(&app.bob).await;
        match &job.work {
            Work::Match { pairs, .. } => Some(pairs[0].pair),
            _ => None,
        }
    };
    assert_eq!(minutes(60).await, Some(1));
    assert_eq!(minutes(2).await, Some(0), "an hour and the grace are over");
    let answer = app.call(Method::POST, &beat, &app.alice, "{}").await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
}

#[tokio::test]
async fn a_pair_given_back_is_handed_out_at_once() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    app.lease(&app.bob).await;
    app.call(
        Method::DELETE,
        &format!("/jobs/{}", job.id),
        &app.alice,
        Body::empty(),
    )
    .await;
    let again = app.lease(&app.bob).await;
    assert_eq!(pairs(&again)[0].pair, 0);
}

#[tokio::test]
async fn games_of_a_decided_match_count_for_ratings_and_not_for_its_tally() {
    let app = gated().await;
    let slow = app.lease(&app.alice).await;
    // The second pair alone cannot decide; the gate needs more than two points of four.
    play(&app, &app.bob, [Loss, Loss]).await;
    let decided: MatchInfo = app.get("/matches/1").await;
    assert_eq!(
        decided.status,
        MatchStatus::Rejected,
        "two points of four are not enough"
    );
    let beat = format!("/jobs/{}/heartbeat", slow.id);
    let answer = app.call(Method::POST, &beat, &app.alice, "{}").await;
    let reply: HeartbeatReply = parse(StatusCode::OK, answer).await;
    assert_eq!(reply.instruction, Instruction::Abandon);
    app.accepted(&app.alice, &chunk(&slow, &pair_games(&slow, 0, [Win, Win])))
        .await;
    let after: MatchInfo = app.get("/matches/1").await;
    assert_eq!(after.tally, decided.tally);
    assert_eq!(app.get::<RunInfo>("/runs/main").await.games, 4);
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_operator_opens_a_match_for_the_ratings() {
    let app = gated().await;
    let open = async |body: &str| {
        app.call(Method::POST, "/matches", &app.operator, body.to_owned())
            .await
    };
    let request = r#"{"run": "main", "candidate": 2, "opponent": 0, "pairs": 1}"#;
    let opened: MatchInfo = parse(StatusCode::CREATED, open(request).await).await;
    let itself = r#"{"run": "main", "candidate": 2, "opponent": 2, "pairs": 1}"#;
    assert_eq!(code(open(itself).await).await, ProblemCode::Conflict);
    let unknown = r#"{"run": "main", "candidate": 9, "opponent": 0, "pairs": 1}"#;
    assert_eq!(code(open(unknown).await).await, ProblemCode::NotFound);
    let none = r#"{"run": "main", "candidate": 2, "opponent": 0, "pairs": 0}"#;
    assert_eq!(code(open(none).await).await, ProblemCode::BadRequest);
    // Gates come first.
    let gate = app.lease(&app.alice).await;
    let Work::Match { match_id, .. } = &gate.work else {
        panic!("{gate:?}")
    };
    assert_ne!(*match_id, opened.id);
    app.lease(&app.alice).await;
    let job = app.lease(&app.alice).await;
    app.accepted(&app.alice, &chunk(&job, &pair_games(&job, 0, [Draw, Win])))
        .await;
    let finished: MatchInfo = app.get(&format!("/matches/{}", opened.id)).await;
    assert_eq!(finished.status, MatchStatus::Finished);
    assert_eq!(finished.tally.pairs.counts, [0, 0, 0, 1, 0]);
    app.assert_consistent().await;
}

#[tokio::test]
async fn without_a_gate_every_candidate_is_promoted() {
    let mut params = crate::support::app::params();
    params.gate = rookery_common::rating::gate::GateRule::None;
    let open = rookery_coordinator::config::Registration::Open;
    let app = TestApp::with(open, params).await;
    let mut events = app.app.events.subscribe();
    app.submit(0).await;
    assert_eq!(app.submit(1).await.status, NetworkStatus::Promoted);
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(1))
    );
    let mut promoted = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::Promotion { number, .. } = event {
            promoted.push(number.0);
        }
    }
    assert_eq!(promoted, [0, 1]);
    app.assert_consistent().await;
}

#[tokio::test]
async fn rating_matches_are_opened_one_after_the_other() {
    let mut params = crate::support::app::params();
    params.gate = rookery_common::rating::gate::GateRule::None;
    params.scheduling.rating_pairs = 1;
    let open = rookery_coordinator::config::Registration::Open;
    let app = TestApp::with(open, params).await;
    let matches = async |wanted: usize| loop {
        let matches: Vec<MatchInfo> = app.get("/matches").await;
        if matches.len() >= wanted {
            break matches;
        }
        tokio::task::yield_now().await;
    };
    app.submit(0).await;
    app.submit(1).await;
    for wanted in 1..=3 {
        let newest = matches(wanted).await.swap_remove(0);
        assert_eq!(
            (newest.purpose, newest.status),
            (MatchPurpose::Rating, MatchStatus::Open)
        );
        assert_eq!(
            (newest.candidate, newest.opponent),
            (NetworkNumber(1), NetworkNumber(0))
        );
        play(&app, &app.alice, [Win, Draw]).await;
        let id = newest.id;
        let ended: MatchInfo = app.get(&format!("/matches/{id}")).await;
        assert_eq!(ended.status, MatchStatus::Finished);
    }
    matches(4).await;
    // A network that has not played goes first, once the match before has ended.
    assert_eq!(app.submit(2).await.status, NetworkStatus::Promoted);
    play(&app, &app.alice, [Win, Loss]).await;
    let newest = matches(5).await.swap_remove(0);
    assert_eq!(
        (newest.candidate, newest.opponent),
        (NetworkNumber(2), NetworkNumber(1))
    );
    assert_eq!(
        matches(5).await.len(),
        5,
        "never two at once, however many fits there are"
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_anchor_plays_rating_matches_and_is_never_best() {
    let mut params = crate::support::app::params();
    params.scheduling.rating_pairs = 1;
    let open = rookery_coordinator::config::Registration::Open;
    let app = TestApp::with(open, params).await;
    let file = network_file(9);
    let submit = async |token: &str, anchor: &str| {
        let path = format!("/networks/{}?anchor={anchor}", ContentHash::of(&file));
        app.call(Method::PUT, &path, token, file.clone()).await
    };
    let early = submit(&app.operator, "maia-1100").await;
    assert_eq!(
        code(early).await,
        ProblemCode::Conflict,
        "nothing to compare with"
    );
    app.submit(0).await;
    let trainer = submit(&app.trainer, "maia-1100").await;
    assert_eq!(code(trainer).await, ProblemCode::Forbidden);
    let nameless = submit(&app.operator, "Maia%201100").await;
    assert_eq!(code(nameless).await, ProblemCode::BadRequest);
    let answer = submit(&app.operator, "maia-1100").await;
    let receipt: NetworkReceipt = parse(StatusCode::CREATED, answer).await;
    assert_eq!(
        (receipt.status, receipt.gate, receipt.duplicate),
        (NetworkStatus::Anchor, None, false)
    );
    let again: NetworkReceipt =
        parse(StatusCode::OK, submit(&app.operator, "maia-1100").await).await;
    assert!(again.duplicate && again.status == NetworkStatus::Anchor);
    let answer = app.call(Method::GET, "/operator-log", &app.operator, Body::empty());
    let log: OperatorLogPage = parse(StatusCode::OK, answer.await).await;
    let added = log.entries.iter().filter(|act| act.action == "add-anchor");
    let added: Vec<_> = added
        .map(|act| (&*act.actor, &*act.subject, &*act.detail))
        .collect();
    assert_eq!(added, [("operator", "main", "network 1: maia-1100")]);
    while app.get::<Vec<MatchInfo>>("/matches").await.is_empty() {
        tokio::task::yield_now().await;
    }
    let job = play(&app, &app.alice, [Win, Win]).await;
    assert_eq!(
        job.networks[0].hash, receipt.hash,
        "the anchor plays as the newer one"
    );
    while app.get::<Vec<RatingRow>>("/ratings").await.len() < 2 {
        tokio::task::yield_now().await;
    }
    let anchor: NetworkInfo = app.get("/networks/1").await;
    assert_eq!(anchor.anchor.unwrap().as_str(), "maia-1100");
    assert!(anchor.rating.unwrap().elo > 50.0);
    let best = app.get::<RunInfo>("/runs/main").await.best;
    assert_eq!(best, Some(NetworkNumber(0)), "whatever it wins");
    app.assert_consistent().await;
}

async fn reject(app: &TestApp, network: &str) -> Response {
    let path = format!("/networks/{network}/rejection");
    let order = r#"{"reason": " no worker can compute it "}"#;
    app.call(Method::POST, &path, &app.operator, order).await
}

#[tokio::test]
async fn a_candidate_that_nobody_can_compute_is_rejected_by_an_operator() {
    let app = gated().await;
    app.submit(3).await;
    let half = app.lease(&app.alice).await;
    let games = pair_games(&half, 0, [Win, Loss]);
    app.accepted(&app.alice, &chunk(&half, &games[..1])).await;
    play(&app, &app.bob, [Win, Loss]).await;
    let mut events = app.app.events.subscribe();
    // One that waits has no match to close.
    let waiting: NetworkInfo = parse(StatusCode::OK, reject(&app, "2").await).await;
    assert_eq!(
        (waiting.status, waiting.gate),
        (NetworkStatus::Rejected, None)
    );
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!(open.status, MatchStatus::Open);
    let gate: NetworkInfo = parse(StatusCode::OK, reject(&app, "1").await).await;
    assert_eq!(gate.status, NetworkStatus::Rejected);
    let closed: MatchInfo = app.get("/matches/1").await;
    assert_eq!(closed.status, MatchStatus::Rejected);
    assert_eq!(closed.reason.as_deref(), Some("no worker can compute it"));
    assert!(closed.decided_at.is_some());
    let told = loop {
        if let Event::Match { id, status, .. } = events.recv().await.unwrap() {
            break (id, status);
        }
    };
    assert_eq!(told, (closed.id, MatchStatus::Rejected));
    let next: MatchInfo = app.get("/matches/2").await;
    assert_eq!(
        (next.status, next.candidate, next.opponent),
        (MatchStatus::Open, NetworkNumber(3), NetworkNumber(0))
    );
    // What comes later counts for the ratings only.
    app.accepted(&app.alice, &chunk(&half, &games[1..])).await;
    assert_eq!(app.get::<MatchInfo>("/matches/1").await.tally, closed.tally);
    let answer = app.call(Method::GET, "/operator-log", &app.operator, Body::empty());
    let log: OperatorLogPage = parse(StatusCode::OK, answer.await).await;
    let entry = &log.entries[0];
    assert_eq!(
        (&*entry.action, &*entry.subject, &*entry.detail),
        (
            "reject-network",
            "main",
            "network 1: no worker can compute it"
        )
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn only_candidates_are_rejected() {
    let app = gated().await;
    for (network, told) in [("0", "change the run's gate"), ("best", "is best")] {
        let refused = problem(reject(&app, network).await).await;
        assert_eq!(refused.code, ProblemCode::Conflict);
        assert!(refused.detail.contains(told), "{refused}");
    }
    parse::<NetworkInfo>(StatusCode::OK, reject(&app, "1").await).await;
    let again = problem(reject(&app, "1").await).await;
    assert_eq!(again.code, ProblemCode::Conflict);
    assert!(again.detail.contains("only a candidate"), "{again}");
    assert_eq!(code(reject(&app, "9").await).await, ProblemCode::NotFound);
    let path = "/networks/2/rejection";
    let silent = app.call(Method::POST, path, &app.operator, r#"{"reason": " "}"#);
    assert_eq!(code(silent.await).await, ProblemCode::BadRequest);
    app.assert_consistent().await;
}

/// A run without gates whose second network loses all games against the first, and what rating
/// matches then make of it.
async fn second_loses(rollback: Option<f64>) -> TestApp {
    let mut params = crate::support::app::params();
    params.gate = rookery_common::rating::gate::GateRule::None;
    params.rollback = rollback;
    let open = rookery_coordinator::config::Registration::Open;
    let app = TestApp::with(open, params).await;
    app.submit(0).await;
    app.submit(1).await;
    let request = r#"{"run": "main", "candidate": 1, "opponent": 0, "pairs": 8}"#;
    let answer = app
        .call(Method::POST, "/matches", &app.operator, request)
        .await;
    parse::<MatchInfo>(StatusCode::CREATED, answer).await;
    let mut events = app.app.events.subscribe();
    while app.get::<MatchInfo>("/matches/1").await.status == MatchStatus::Open {
        let job = app.lease(&app.alice).await;
        if job.work.kind() == WorkKind::Match {
            let games: Vec<_> = (0..pairs(&job).len())
                .flat_map(|place| pair_games(&job, place, [Loss, Loss]))
                .collect();
            app.accepted(&app.alice, &chunk(&job, &games)).await;
        }
    }
    if rollback.is_some() {
        while events.recv().await.unwrap().kind() != "rollback" {}
    }
    let rated = async || app.get::<Vec<RatingRow>>("/ratings").await;
    while rated().await.iter().all(|row| row.rating.games < 16) {
        tokio::task::yield_now().await;
    }
    app
}

#[tokio::test]
async fn best_moves_back_when_games_show_that_it_was_a_mistake() {
    let app = second_loses(Some(0.9)).await;
    use NetworkStatus::{Demoted, Initial, Promoted};
    assert_eq!(statuses(&app).await, [Initial, Demoted]);
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(0))
    );
    let answer = app.call(Method::GET, "/operator-log", &app.operator, Body::empty());
    let log: OperatorLogPage = parse(StatusCode::OK, answer.await).await;
    let entry = &log.entries[0];
    assert_eq!(
        (entry.action.as_str(), entry.actor.as_str()),
        ("roll-back", "coordinator")
    );
    assert!(
        entry.detail.contains("from network 1 to network 0"),
        "{}",
        entry.detail
    );
    // The next one that is promoted is best as ever.
    assert_eq!(app.submit(2).await.status, Promoted);
    assert_eq!(
        app.get::<RunInfo>("/runs/main").await.best,
        Some(NetworkNumber(2))
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn best_stays_where_the_run_does_not_ask_for_rollbacks() {
    let app = second_loses(None).await;
    let best = app.get::<RunInfo>("/runs/main").await.best;
    assert_eq!(best, Some(NetworkNumber(1)));
    app.assert_consistent().await;
}
