//! Gate matches: handed out, re-issued, decided.

use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{Instruction, Work, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus, RatingRow};
use rookery_common::protocol::networks::NetworkStatus;
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::problem::Remedy;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::rating::gate::GateRule;

use crate::support::app::{TestApp, code, problem, run, user};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{chunk, pair_games, pairs};
use crate::support::matches::{gated, play, statuses};

#[tokio::test]
async fn a_winner_becomes_best_and_the_next_candidate_plays_it() {
    let app = gated().await;
    let mut events = app.app.events.subscribe();
    assert_eq!(play(&app, &app.alice, [Win, Draw]).await.networks.len(), 2);
    assert_eq!(app.best().await, Some(0));
    play(&app, &app.bob, [Win, Win]).await;
    assert_eq!(app.best().await, Some(1));
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
    assert_eq!(app.best().await, Some(0));
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
    app.hand_in(&app.alice, &lost, &half).await;
    app.lease(&app.bob).await;
    let carol = user(&app.app, "carol", &[Scope::Contribute]).await;
    app.clock.advance_seconds(120);
    assert_eq!(
        app.lease(&carol).await.work.kind(),
        WorkKind::SelfPlay,
        "still in grace"
    );
    app.clock.advance_seconds(1);
    let again = app.lease(&carol).await;
    assert_eq!(pairs(&again)[0].pair, 0);
    // The first worker comes back too late for this pair.
    let late = [pair_games(&lost, 0, [Win, Win])[1].clone()];
    let answer = app.upload(&app.alice, &chunk(&lost, &late)).await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
    let answer = app.beat(&app.alice, &lost).await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
    // The pair counts as the second worker played it, whole.
    app.hand_in(&carol, &again, &pair_games(&again, 0, [Loss, Loss]))
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
    for _ in 0..5 {
        app.clock.advance_seconds(50);
        let reply = app.keep(&app.alice, &job).await;
        assert_eq!(reply.instruction, Instruction::Continue);
    }
    app.clock.advance_seconds(1000);
    app.beat(&app.alice, &job).await;
    let other = app.lease(&app.bob).await;
    assert_eq!(pairs(&other)[0].pair, 1, "pair 0 is alice's again");
}

#[tokio::test]
async fn heartbeats_do_not_hold_a_pair_for_ever() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    let minutes = async |minutes: u32| {
        for _ in 0..minutes {
            app.clock.advance_seconds(60);
            app.keep(&app.alice, &job).await;
        }
        let job = app.lease(&app.bob).await;
        match &job.work {
            Work::Match { pairs, .. } => Some(pairs[0].pair),
            _ => None,
        }
    };
    assert_eq!(minutes(60).await, Some(1));
    assert_eq!(minutes(2).await, Some(0), "an hour and the grace are over");
    let answer = app.beat(&app.alice, &job).await;
    assert_eq!(code(answer).await, ProblemCode::LeaseEnded);
}

#[tokio::test]
async fn a_pair_given_back_is_handed_out_at_once() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    app.lease(&app.bob).await;
    app.give_back(&app.alice, &job).await;
    let again = app.lease(&app.bob).await;
    assert_eq!(pairs(&again)[0].pair, 0);
}

#[tokio::test]
async fn games_of_a_decided_match_count_neither_for_its_tally_nor_for_ratings() {
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
    let reply = app.keep(&app.alice, &slow).await;
    assert_eq!(reply.instruction, Instruction::Abandon);
    app.hand_in(&app.alice, &slow, &pair_games(&slow, 0, [Win, Win]))
        .await;
    let after: MatchInfo = app.get("/matches/1").await;
    assert_eq!(after.tally, decided.tally);
    let rated = app.app.db.rating_basis(&run()).await.unwrap().results;
    assert_eq!((rated.len(), rated[0].wins, rated[0].losses), (1, 2, 0));
    assert_eq!(app.get::<RunInfo>("/runs/main").await.games, 4);
    app.assert_consistent().await;
}

#[tokio::test]
async fn without_a_gate_every_candidate_is_promoted() {
    let app = TestApp::of_run(0, |run| run.gate = GateRule::None).await;
    let mut events = app.app.events.subscribe();
    app.submit(0).await;
    assert_eq!(app.submit(1).await.status, NetworkStatus::Promoted);
    assert_eq!(app.best().await, Some(1));
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
async fn an_upload_that_a_newer_schema_fails_is_sent_again_and_counts_once() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    let bytes = chunk(&job, &pair_games(&job, 0, [Win, Win]));
    // What an upgrade's first coordinator does to those of the version before.
    let upgrade = "ALTER TABLE match_pairs RENAME TO pairs_of_matches";
    app.database.tamper(upgrade).await;
    let failed = problem(app.upload(&app.alice, &bytes).await).await;
    assert_eq!(failed.code, ProblemCode::Internal);
    assert_eq!(failed.remedy(), Remedy::Retry);
    let replaced = "ALTER TABLE pairs_of_matches RENAME TO match_pairs";
    app.database.tamper(replaced).await;
    let receipt = app.accepted(&app.alice, &bytes).await;
    assert_eq!((receipt.games, receipt.duplicate), (2, false));
    let tally = app.get::<MatchInfo>("/matches/1").await.tally;
    assert_eq!(tally.pairs.counts, [0, 0, 0, 0, 1]);
    app.assert_consistent().await;
}

#[tokio::test]
async fn columns_that_a_newer_version_adds_disturb_nobody() {
    let app = gated().await;
    // Every connection has prepared its statements.
    let ask_all = async || {
        for _ in 0..8 {
            let open = app.get::<MatchInfo>("/matches/1").await;
            assert_eq!(open.status, MatchStatus::Open);
            app.get::<RunInfo>("/runs/main").await;
            statuses(&app).await;
        }
    };
    ask_all().await;
    app.lease(&app.alice).await;
    for table in ["runs", "networks", "matches"] {
        let upgrade = format!("ALTER TABLE {table} ADD COLUMN of_tomorrow BIGINT");
        app.database.tamper(&upgrade).await;
    }
    ask_all().await;
    app.lease(&app.bob).await;
}
