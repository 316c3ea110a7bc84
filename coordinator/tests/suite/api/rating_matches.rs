//! Matches for the ratings: opened by operators, by the coordinator itself, and for anchors.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use rookery_common::ids::{ContentHash, NetworkNumber, Seed};
use rookery_common::network::{Program, program_file};
use rookery_common::protocol::ProblemCode;
use rookery_common::protocol::jobs::{Work, WorkKind};
use rookery_common::protocol::matches::{MatchInfo, MatchPurpose, MatchStatus, RatingRow};
use rookery_common::protocol::networks::{NetworkInfo, NetworkReceipt, NetworkStatus};
use rookery_common::protocol::people::Scope;
use rookery_common::protocol::runs::RunInfo;
use rookery_common::rating::AnchorElo;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::db::MatchDraft;
use rookery_coordinator::trust::plan::plan_waiting;
use rookery_coordinator::{intake, ratings};
use serde_json::json;

use crate::support::anchors::submit_program;
use crate::support::app::{TestApp, code, parse, problem, run, user};
use crate::support::by;
use crate::support::games::Score::{Draw, Loss, Win};
use crate::support::games::{chunk, pair_games};
use crate::support::matches::{gated, play, statuses};
use crate::support::networks::network_file;

/// Who decides a match may end before it has fitted the ratings, and so may a fit.
#[tokio::test]
async fn ratings_that_nobody_has_fitted_are_fitted_later() {
    let app = gated().await;
    play(&app, &app.alice, [Win, Win]).await;
    let job = app.lease(&app.alice).await;
    let bytes = chunk(&job, &pair_games(&job, 0, [Win, Win]));
    let alice = app.holder(&app.alice).await;
    // No request: nobody hears that a match was decided.
    intake::take(&app.app, &alice, ContentHash::of(&bytes), bytes.into())
        .await
        .unwrap();
    let rated = async || {
        let rows: Vec<RatingRow> = app.get("/ratings").await;
        rows.len()
    };
    assert_eq!(rated().await, 0);
    ratings::refit_waiting(&app.app).await.unwrap();
    assert_eq!(rated().await, 2);
    let db = &app.app.db;
    assert_eq!(db.runs_to_rate().await.unwrap(), []);
    db.begin_fit(&run()).await.unwrap();
    assert_eq!(db.runs_to_rate().await.unwrap(), [run()]);
    ratings::refit_waiting(&app.app).await.unwrap();
    assert_eq!(db.runs_to_rate().await.unwrap(), []);
}

#[tokio::test]
async fn older_matches_are_a_page_further() {
    let app = gated().await;
    let draft = MatchDraft {
        run: run(),
        candidate: NetworkNumber(2),
        opponent: NetworkNumber(0),
        pairs: 1,
        seed: Seed(1),
    };
    // With the gate match one more than a page has.
    for _ in 0..200 {
        let draft = draft.clone();
        app.app.db.open_match(draft, by("test")).await.unwrap();
    }
    let next = "/runs/main/matches?before=2";
    let newest = app.page("/runs/main/matches").await;
    assert!(newest.contains(&format!("href=\"{next}\"")), "{newest}");
    assert!(!newest.contains("href=\"/matches/1\""), "{newest}");
    let oldest = app.says(next, &["href=\"/matches/1\""]).await;
    assert!(!oldest.contains("older matches"), "{oldest}");
    let matches: Vec<MatchInfo> = app.get("/matches?before=4&limit=2").await;
    let ids: Vec<i64> = matches.iter().map(|info| info.id.0).collect();
    assert_eq!(ids, [3, 2]);
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
    play(&app, &app.alice, [Draw, Win]).await;
    let finished: MatchInfo = app.get(&format!("/matches/{}", opened.id)).await;
    assert_eq!(finished.status, MatchStatus::Finished);
    assert_eq!(finished.tally.pairs.counts, [0, 0, 0, 1, 0]);
    app.assert_consistent().await;
}

/// The matches, newest first, once there are so many.
async fn matches(app: &TestApp, wanted: usize) -> Vec<MatchInfo> {
    loop {
        let matches: Vec<MatchInfo> = app.get("/matches").await;
        if matches.len() >= wanted {
            break matches;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn rating_matches_are_opened_one_after_the_other() {
    let app = TestApp::of_run(2, |run| {
        run.gate = GateRule::None;
        run.scheduling.rating_pairs = 1;
    })
    .await;
    for wanted in 1..=3 {
        let newest = matches(&app, wanted).await.swap_remove(0);
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
        let page = app.page(&format!("/matches/{id}")).await;
        assert!(page.contains("Rating match of 1 pair: it"), "{page}");
        assert!(!page.contains("every candidate is promoted"), "{page}");
    }
    matches(&app, 4).await;
    // A network that has not played goes first, once the match before has ended.
    assert_eq!(app.submit(2).await.status, NetworkStatus::Promoted);
    play(&app, &app.alice, [Win, Loss]).await;
    let newest = matches(&app, 5).await.swap_remove(0);
    assert_eq!(
        (newest.candidate, newest.opponent),
        (NetworkNumber(2), NetworkNumber(1))
    );
    assert_eq!(
        matches(&app, 5).await.len(),
        5,
        "never two at once, however many fits there are"
    );
    app.assert_consistent().await;
}

#[tokio::test]
async fn networks_that_come_faster_than_pairs_are_tied_to_the_newest_that_is_rated() {
    let app = TestApp::of_run(0, |run| {
        run.gate = GateRule::None;
        run.scheduling.rating_pairs = 1;
    })
    .await;
    for number in 0..2 {
        app.submit(number).await;
    }
    let mut rated = BTreeSet::from([0]);
    for wanted in 1..=3 {
        let opened = matches(&app, wanted).await.swap_remove(0);
        let (candidate, opponent) = (opened.candidate.0, opened.opponent.0);
        assert!(rated.contains(&opponent), "match {wanted}: {opened:?}");
        assert!(rated.insert(candidate), "match {wanted}: {opened:?}");
        // Two more come in before its only pair.
        let networks = app.get::<RunInfo>("/runs/main").await.networks;
        for number in networks..networks + 2 {
            app.submit(number.into()).await;
        }
        play(&app, &app.alice, [Win, Draw]).await;
    }
    let open = matches(&app, 4).await.swap_remove(0);
    rated.insert(open.candidate.0);
    // An operator lets two meet that have no rating.
    let unrated: Vec<u32> = (0..8).filter(|number| !rated.contains(number)).collect();
    let (one, other) = (unrated[1], unrated[0]);
    app.open_match(one, other, 1).await;
    for _ in 0..2 {
        play(&app, &app.alice, [Win, Draw]).await;
    }
    ratings::refit(&app.app, &run()).await.unwrap();
    let rows: Vec<RatingRow> = app.get("/ratings").await;
    let numbers: BTreeSet<u32> = rows.iter().map(|row| row.network.0).collect();
    assert_eq!(numbers, rated);
    let wide = |row: &RatingRow| row.rating.high - row.rating.low > 4000.0;
    assert!(!rows.iter().any(wide), "{rows:?}");
    let info: NetworkInfo = app.get(&format!("/networks/{one}")).await;
    assert_eq!(info.rating, None);
    let page = app.page(&format!("/runs/main/networks/{one}")).await;
    assert!(page.contains("Not rated yet"), "{page}");
    let chart = app.page("/runs/main/networks").await;
    assert!(!chart.contains(&format!("#{one}: ")), "{chart}");
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_anchor_plays_rating_matches_and_is_never_best() {
    let app = TestApp::of_run(0, |run| run.scheduling.rating_pairs = 1).await;
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
    let log = app.operator_log().await;
    let added = log.entries.iter().filter(|act| act.action == "add-anchor");
    let added: Vec<_> = added
        .map(|act| (&*act.actor, &*act.subject, &*act.detail))
        .collect();
    assert_eq!(added, [("operator", "main", "network 1: maia-1100")]);
    matches(&app, 1).await;
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
    assert_eq!(app.best().await, Some(0), "whatever it wins");
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_anchor_is_submitted_with_its_elo() {
    let app = TestApp::with_network().await;
    let file = network_file(9);
    let submit = async |query: &str| {
        let path = format!("/networks/{}?{query}", ContentHash::of(&file));
        let token = &app.operator;
        app.call(Method::PUT, &path, token, file.clone()).await
    };
    for elo in ["10001", "-10001", "NaN", "inf", "strong", ""] {
        let refused = submit(&format!("anchor=maia-1100&elo={elo}")).await;
        assert_eq!(code(refused).await, ProblemCode::BadRequest, "{elo:?}");
    }
    let path = format!("/networks/{}?elo=1100", ContentHash::of(&file));
    let nameless = app.call(Method::PUT, &path, &app.trainer, file.clone());
    let nameless = problem(nameless.await).await;
    assert_eq!(nameless.code, ProblemCode::BadRequest);
    assert!(nameless.detail.contains("as `anchor`"), "{nameless}");
    assert_eq!(statuses(&app).await.len(), 1, "nothing came in");
    let answer = submit("anchor=maia-1100&elo=1100").await;
    let receipt: NetworkReceipt = parse(StatusCode::CREATED, answer).await;
    assert_eq!(receipt.status, NetworkStatus::Anchor);
    let anchor: serde_json::Value = app.get("/networks/1").await;
    assert_eq!(
        (&anchor["anchor"], &anchor["anchor_elo"]),
        (&"maia-1100".into(), &1100.0.into())
    );
    let first: serde_json::Value = app.get("/networks/0").await;
    assert_eq!(first.get("anchor_elo"), None);
    // What is there stays as it is.
    let again = submit("anchor=maia-1100&elo=1200").await;
    let again: NetworkReceipt = parse(StatusCode::OK, again).await;
    assert!(again.duplicate);
    let anchor: NetworkInfo = app.get("/networks/1").await;
    assert_eq!(anchor.anchor_elo.unwrap().get(), 1100.0);
    let log = app.operator_log().await;
    let entry = &log.entries[0];
    assert_eq!(
        (&*entry.action, &*entry.detail),
        ("add-anchor", "network 1: maia-1100, 1100 Elo")
    );
}

#[tokio::test]
async fn a_program_is_an_anchor_and_nothing_else() {
    let app = TestApp::new().await;
    let program = Program::alpha_beta(1);
    let file = program_file(program).unwrap();
    let hash = ContentHash::of(&file);
    let candidate = async || {
        let path = format!("/networks/{hash}");
        let answer = app.call(Method::PUT, &path, &app.trainer, file.clone());
        problem(answer.await).await
    };
    let first = candidate().await;
    assert_eq!(first.code, ProblemCode::NetworkRefused);
    assert!(first.detail.contains("program alphabeta:1"), "{first}");
    assert!(statuses(&app).await.is_empty(), "nothing came in");
    app.submit(0).await;
    assert_eq!(candidate().await.code, ProblemCode::NetworkRefused);
    let receipt = submit_program(&app, program).await;
    assert_eq!(receipt.status, NetworkStatus::Anchor);
    assert_eq!(candidate().await.code, ProblemCode::NetworkRefused);
    let info: NetworkInfo = app.get("/networks/1").await;
    assert_eq!(info.spec.program(), Some(program));
    let model = b"\x08\x08 a model";
    let sha256 = ContentHash::of(model);
    let path = format!("/networks/{hash}/file?format=onnx&sha256={sha256}");
    let export = app.call(Method::PUT, &path, &app.trainer, model.to_vec());
    assert_eq!(code(export.await).await, ProblemCode::NetworkRefused);
    app.assert_consistent().await;
}

#[tokio::test]
async fn matches_against_programs_and_their_audits_are_for_workers_that_play_them() {
    let app = TestApp::of_run(1, |run| run.scheduling.rating_pairs = 1).await;
    let_programs_play(&app).await;
    let receipt = submit_program(&app, Program::Random).await;
    matches(&app, 1).await;
    let other = app.lease(&app.alice).await;
    assert_eq!(other.work.kind(), WorkKind::SelfPlay);
    let job = app.lease_with_programs(&app.alice).await;
    assert_eq!(job.work.kind(), WorkKind::Match);
    assert_eq!(job.networks[0].hash, receipt.hash);
    app.hand_in(&app.alice, &job, &pair_games(&job, 0, [Loss, Draw]))
        .await;
    while app.get::<Vec<RatingRow>>("/ratings").await.len() < 2 {
        tokio::task::yield_now().await;
    }
    let anchor: NetworkInfo = app.get("/networks/1").await;
    assert!(anchor.rating.unwrap().elo < 0.0);
    plan_waiting(&app.app).await.unwrap();
    let auditor = user(&app.app, "auditor", &[Scope::Contribute, Scope::Audit]).await;
    let other = app.lease(&auditor).await;
    assert_eq!(other.work.kind(), WorkKind::SelfPlay);
    let audit = app.lease_with_programs(&auditor).await;
    assert_eq!(audit.work.kind(), WorkKind::Audit);
    assert_eq!(audit.networks[0].hash, receipt.hash);
    app.assert_consistent().await;
}

#[tokio::test]
async fn programs_play_the_runs_networks_and_not_each_other() {
    let app = TestApp::of_run(1, |run| run.scheduling.rating_pairs = 1).await;
    let_programs_play(&app).await;
    submit_program(&app, Program::Random).await;
    matches(&app, 1).await;
    submit_program(&app, Program::alpha_beta(1)).await;
    let mut met = BTreeSet::new();
    for opened in 1..=6 {
        let newest = matches(&app, opened).await.swap_remove(0);
        let opponent = newest.opponent;
        assert_eq!(opponent, NetworkNumber(0), "match {opened}: {newest:?}");
        met.insert(newest.candidate);
        let job = app.lease_with_programs(&app.alice).await;
        app.hand_in(&app.alice, &job, &pair_games(&job, 0, [Win, Loss]))
            .await;
    }
    assert_eq!(met, BTreeSet::from([1, 2].map(NetworkNumber)));
    app.assert_consistent().await;
}

/// Lets programs play any rating match of the run, which has none by itself.
async fn let_programs_play(app: &TestApp) {
    let mut params = app.get::<RunInfo>("/runs/main").await.params;
    params.scheduling.anchor_share = 1.0;
    app.patch_run(&json!({ "params": params })).await;
}

#[tokio::test]
async fn a_new_run_has_programs_as_anchors_which_play_a_share_of_its_rating_matches() {
    let app = TestApp::of_run(1, |run| {
        run.scheduling.rating_pairs = 1;
        run.scheduling.anchor_share = 0.5;
        run.gate = GateRule::None;
    })
    .await;
    let networks: Vec<NetworkInfo> = app.get("/networks").await;
    let anchors: Vec<_> = networks
        .iter()
        .rev()
        .filter_map(|info| Some((info.anchor.as_ref()?.as_str(), info.anchor_elo)))
        .collect();
    let zero = Some(AnchorElo::default());
    assert_eq!(
        anchors,
        [
            ("random", zero),
            ("alphabeta-1-50", None),
            ("alphabeta-1", None),
            ("alphabeta-2", None),
        ]
    );
    assert_eq!(networks.last().unwrap().status, NetworkStatus::Initial);
    app.submit(1).await;
    let is_program = |number: NetworkNumber| (1..=4).contains(&number.0);
    let mut with = Vec::new();
    for opened in 1..=6 {
        let newest = matches(&app, opened).await.swap_remove(0);
        with.push(is_program(newest.candidate) || is_program(newest.opponent));
        let job = app.lease_with_programs(&app.alice).await;
        app.hand_in(&app.alice, &job, &pair_games(&job, 0, [Win, Loss]))
            .await;
    }
    assert_eq!(with.iter().filter(|with| **with).count(), 3, "{with:?}");
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_run_that_wants_no_anchors_has_none() {
    let app = TestApp::of_run(1, |run| run.scheduling.rating_pairs = 1).await;
    assert_eq!(app.get::<Vec<NetworkInfo>>("/networks").await.len(), 1);
}
