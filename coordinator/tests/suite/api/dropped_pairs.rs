//! Pairs of a match that were handed out and did not come back: who drops them gains nothing.

use rookery_common::ids::{NetworkNumber, Seed};
use rookery_common::protocol::jobs::{Job, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::people::Scope;
use rookery_common::rating::gate::{AtLimit, GateDecision, GateRule};
use rookery_common::rating::sprt::SprtParams;
use rookery_common::rating::{Pentanomial, Tally};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::config::Registration;
use rookery_coordinator::db::HeadToHead;

use crate::support::app::{TestApp, params, run, user};
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{PairPlan, pair_games, pairs};
use crate::support::matches::gated;

/// Seconds after which the pairs of a lease that nobody extends go to others.
const OVER: i64 = 121;

/// A run whose candidate is in a sequential gate match, with jobs of four pairs.
async fn in_fours() -> TestApp {
    let mut params = params();
    params.scheduling.match_games = 8;
    params.gate = GateRule::Sprt {
        params: SprtParams {
            elo1: 200.0,
            ..SprtParams::default()
        },
        max_pairs: 40,
        at_limit: AtLimit::Reject,
    };
    let app = TestApp::with(Registration::Open, params).await;
    app.submit(0).await;
    app.submit(1).await;
    app
}

/// Sends the first two pairs of a job.
async fn send_two(app: &TestApp, token: &str, job: &Job, plan: PairPlan) {
    let games: Vec<_> = (0..2)
        .flat_map(|place| pair_games(job, place, plan))
        .collect();
    app.hand_in(token, job, &games).await;
}

#[tokio::test]
async fn who_sends_only_won_pairs_does_not_decide_a_gate() {
    let app = in_fours().await;
    for _ in 0..5 {
        let job = app.lease(&app.alice).await;
        assert_eq!(pairs(&job).len(), 4);
        // The other two of the four she has lost, and keeps back.
        send_two(&app, &app.alice, &job, [Win, Win]).await;
    }
    let shown: MatchInfo = app.get("/matches/1").await;
    assert_eq!(shown.tally.pairs.counts, [0, 0, 0, 0, 10]);
    let as_they_came = shown.rule.decide(&shown.tally).unwrap();
    assert_eq!(as_they_came.decision, GateDecision::Promote);
    app.clock.advance_seconds(OVER);
    for kept_back in [2, 6, 10, 14, 18] {
        let open: MatchInfo = app.get("/matches/1").await;
        assert_eq!(open.status, MatchStatus::Open, "before pair {kept_back}");
        let job = app.lease(&app.bob).await;
        assert_eq!(pairs(&job)[0].pair, kept_back);
        send_two(&app, &app.bob, &job, [Loss, Loss]).await;
    }
    let ended: MatchInfo = app.get("/matches/1").await;
    assert_eq!(ended.status, MatchStatus::Rejected);
    assert_eq!(ended.tally.pairs.counts, [10, 0, 0, 0, 10]);
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_open_match_says_for_how_many_pairs_it_waits() {
    let app = in_fours().await;
    for _ in 0..5 {
        let job = app.lease(&app.alice).await;
        send_two(&app, &app.alice, &job, [Win, Win]).await;
    }
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!((open.status, open.pairs_out), (MatchStatus::Open, 10));
    // Pairs 0 and 1 are in, 2 is not.
    let in_order = open.in_order.unwrap();
    let won = Tally {
        wins: 4,
        pairs: Pentanomial {
            counts: [0, 0, 0, 0, 2],
        },
        ..Tally::default()
    };
    let sprt = open.rule.decide(&won).unwrap().sprt.unwrap();
    assert_eq!((in_order.pairs, in_order.llr), (2, Some(sprt.llr)));
    assert!(open.llr.unwrap() > sprt.llr);
    for path in ["/matches/1", "/runs/main"] {
        let shown = app.page(path).await;
        for says in ["10 of 40 pairs in, 10 being played.", "2 counted so far"] {
            assert!(shown.contains(says), "{path}: {shown}");
        }
    }
}

/// As after a restore: leases of the backup may be of workers that are long done with them.
#[tokio::test]
async fn pairs_of_silent_workers_are_not_being_played() {
    let app = gated().await;
    let (_, played) = (app.lease(&app.alice).await, app.lease(&app.bob).await);
    app.clock
        .advance_seconds(i64::from(played.lease_seconds) * 2 / 3 + 1);
    app.keep(&app.bob, &played).await;
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!((open.pairs_out, open.pairs_playing), (2, 1));
    for path in ["/matches/1", "/runs/main"] {
        let shown = app.page(path).await;
        let says = "0 of 2 pairs in, 1 being played, 1 whose worker is silent.";
        assert!(shown.contains(says), "{path}: {shown}");
    }
}

/// A start renews what a backup holds, though no worker of it may be left.
#[tokio::test]
async fn pairs_of_a_backup_are_being_played_once_their_worker_is_heard() {
    let app = gated().await;
    let job = app.lease(&app.alice).await;
    app.clock
        .advance_seconds(i64::from(job.lease_seconds) * 2 / 3 + 1);
    app.app.db.outlast_outage(app.clock.now()).await.unwrap();
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!((open.pairs_out, open.pairs_playing), (1, 0));
    app.keep(&app.alice, &job).await;
    let open: MatchInfo = app.get("/matches/1").await;
    assert_eq!((open.pairs_out, open.pairs_playing), (1, 1));
}

#[tokio::test]
async fn a_match_that_has_ended_waits_for_nothing() {
    let app = gated().await;
    let (first, second) = (app.lease(&app.alice).await, app.lease(&app.bob).await);
    assert!(
        app.page("/matches/1")
            .await
            .contains("0 of 2 pairs in, 2 being played.")
    );
    app.hand_in(&app.alice, &first, &pair_games(&first, 0, [Win, Draw]))
        .await;
    assert!(
        app.page("/matches/1")
            .await
            .contains("1 of 2 pairs in, 1 being played.")
    );
    app.hand_in(&app.bob, &second, &pair_games(&second, 0, [Draw, Draw]))
        .await;
    let ended: MatchInfo = app.get("/matches/1").await;
    assert_eq!((ended.status, ended.pairs_out), (MatchStatus::Promoted, 0));
    assert!(!app.page("/matches/1").await.contains("being played"));
}

#[tokio::test]
async fn a_gate_does_not_wait_for_pairs_that_cannot_turn_it() {
    let app = in_fours().await;
    let missing = app.lease(&app.alice).await;
    assert_eq!(pairs(&missing)[0].pair, 0);
    let status = async || app.get::<MatchInfo>("/matches/1").await.status;
    for played in 0..9 {
        assert_eq!(status().await, MatchStatus::Open, "after {played} jobs");
        let job = app.lease(&app.bob).await;
        let games: Vec<_> = (0..pairs(&job).len())
            .flat_map(|place| pair_games(&job, place, [Win, Win]))
            .collect();
        app.hand_in(&app.bob, &job, &games).await;
        if status().await == MatchStatus::Promoted {
            break;
        }
    }
    let ended: MatchInfo = app.get("/matches/1").await;
    assert_eq!(ended.status, MatchStatus::Promoted);
    // Eight won pairs decide; seven more make up for the four that may be lost.
    assert_eq!(ended.tally.pairs.counts, [0, 0, 0, 0, 15]);
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_pair_is_played_again_from_the_same_opening_with_the_same_seeds() {
    let app = in_fours().await;
    let lost = app.lease(&app.alice).await;
    let games = pair_games(&lost, 1, [Win, Loss]);
    app.hand_in(&app.alice, &lost, &games).await;
    app.clock.advance_seconds(OVER);
    let again = [app.lease(&app.bob).await, app.lease(&app.bob).await];
    let numbers = again
        .each_ref()
        .map(|job| pairs(job).iter().map(|task| task.pair).collect::<Vec<_>>());
    assert_eq!(numbers, [vec![0], vec![2, 3, 4, 5]]);
    let seeds = |job: &Job, place: usize| -> [Seed; 2] {
        [0, 1].map(|game| job.seed.of_game(2 * place as u32 + game))
    };
    for job in &again {
        for (place, task) in pairs(job).iter().enumerate() {
            let Some(before) = pairs(&lost).get(task.pair as usize) else {
                continue;
            };
            assert_eq!(task, before);
            assert_eq!(seeds(job, place), seeds(&lost, task.pair as usize));
        }
    }
}

#[tokio::test]
async fn who_dropped_a_pair_gets_it_again_only_if_others_leave_it() {
    let app = gated().await;
    let dropped = app.lease(&app.alice).await;
    let other = app.lease(&app.bob).await;
    app.give_back(&app.alice, &dropped).await;
    let minutes = async |minutes: u32| {
        for _ in 0..minutes {
            app.clock.advance_seconds(60);
            app.keep(&app.bob, &other).await;
        }
        app.lease(&app.alice).await.work.kind()
    };
    // Two minutes of the lease and its grace, and ten for the others.
    assert_eq!(minutes(0).await, WorkKind::SelfPlay);
    assert_eq!(minutes(12).await, WorkKind::SelfPlay);
    assert_eq!(minutes(1).await, WorkKind::Match);
}

#[tokio::test]
async fn two_who_pass_pairs_to_each_other_leave_them_to_others() {
    let app = gated().await;
    let carol = user(&app.app, "carol", &[Scope::Contribute]).await;
    let [alice, bob] = [&app.alice, &app.bob];
    let [first, second] = [app.lease(alice).await, app.lease(bob).await];
    let kind = async |token: &str| app.lease(token).await.work.kind();
    assert_eq!(kind(&carol).await, WorkKind::SelfPlay);
    app.give_back(alice, &first).await;
    app.give_back(bob, &second).await;
    for token in [alice, bob] {
        assert_eq!(kind(token).await, WorkKind::SelfPlay, "the other's pair");
    }
    assert_eq!(kind(&carol).await, WorkKind::Match);
}

#[tokio::test]
async fn who_leaves_pairs_of_a_match_again_waits_an_hour_longer() {
    let app = gated().await;
    let carol = user(&app.app, "carol", &[Scope::Contribute]).await;
    let first = app.lease(&app.alice).await;
    app.lease(&app.bob).await;
    let other = app.lease(&carol).await;
    assert_eq!(other.work.kind(), WorkKind::SelfPlay);
    let after = async |minutes: u32| {
        for _ in 0..minutes {
            app.clock.advance_seconds(60);
            app.keep(&carol, &other).await;
        }
        app.lease(&app.alice).await
    };
    app.give_back(&app.alice, &first).await;
    let second = after(13).await;
    assert_eq!(second.work.kind(), WorkKind::Match);
    app.give_back(&app.alice, &second).await;
    for (minutes, kind) in [
        (13, WorkKind::SelfPlay),
        (59, WorkKind::SelfPlay),
        (1, WorkKind::Match),
    ] {
        assert_eq!(after(minutes).await.work.kind(), kind, "{minutes} later");
    }
}

#[tokio::test]
async fn alone_one_gets_ones_own_pairs_again_at_once() {
    let app = gated().await;
    let dropped = app.lease(&app.alice).await;
    app.give_back(&app.alice, &dropped).await;
    assert_eq!(pairs(&app.lease(&app.alice).await), pairs(&dropped));
}

#[tokio::test]
async fn single_games_of_a_pair_do_not_count_for_ratings() {
    let app = gated().await;
    let rated = async || {
        let basis = app.app.db.rating_basis(&run()).await;
        basis.unwrap().results
    };
    let half = app.lease(&app.alice).await;
    let won = pair_games(&half, 0, [Win, Loss])[0].clone();
    app.hand_in(&app.alice, &half, &[won]).await;
    assert_eq!(rated().await, []);
    app.clock.advance_seconds(OVER);
    let again = app.lease(&app.bob).await;
    let games = pair_games(&again, 0, [Win, Loss]);
    app.hand_in(&app.bob, &again, &games).await;
    let both = HeadToHead {
        a: NetworkNumber(0),
        b: NetworkNumber(1),
        wins: 1,
        draws: 0,
        losses: 1,
    };
    assert_eq!(rated().await, [both]);
    app.assert_consistent().await;
}
