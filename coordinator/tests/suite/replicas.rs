//! Two coordinators on one PostgreSQL and one bucket.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use futures_util::future::join_all;
use rookery_common::ids::JobId;
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::jobs::{ChunkReceipt, Job};
use rookery_common::protocol::matches::{MatchInfo, MatchStatus};
use rookery_common::protocol::networks::NetworkName;
use rookery_common::protocol::runs::RunPatch;
use rookery_common::rating::gate::GateRule;
use rookery_coordinator::api;
use rookery_coordinator::app::App;
use rookery_coordinator::background::relay;
use rookery_coordinator::blobs::{BlobStore, Downloads};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::config::Registration;
use rookery_coordinator::db::Actor;
use serde_json::json;
use uuid::Uuid;

use crate::support::app::{TestApp, body, params, run};
use crate::support::games::Score::Win;
use crate::support::games::{EITHER_MATES, chunk, pair_games, pairs, selfplay};
use crate::support::s3::S3;

/// Another coordinator on the same ledger, with this store of blobs.
async fn twin(first: &TestApp, blobs: impl BlobStore) -> TestApp {
    let db = first.database.open().await;
    let book = OpeningBook::from_epd(EITHER_MATES).unwrap();
    let clock = first.clock.clone();
    let app = App::new(db, Arc::new(blobs), clock.clone(), book, Registration::Open);
    TestApp {
        alice: first.alice.clone(),
        bob: first.bob.clone(),
        trainer: first.trainer.clone(),
        operator: first.operator.clone(),
        router: api::router(app.clone()),
        app,
        clock,
        database: first.database.clone(),
        files: None,
    }
}

/// Two coordinators, the best network and a candidate.
async fn two() -> (S3, [TestApp; 2]) {
    let s3 = S3::start().await;
    let first = TestApp::on(s3.blobs(Downloads::default())).await;
    let second = twin(&first, s3.blobs(Downloads::default())).await;
    (s3, [first, second])
}

#[tokio::test]
async fn no_pair_is_handed_out_twice_and_no_promotion_decided_twice() {
    let (_s3, apps) = two().await;
    let wide = RunParams {
        gate: GateRule::Fixed {
            games: 40,
            threshold: 0.5,
        },
        ..params()
    };
    let patch = RunPatch {
        params: Some(wide),
        ..RunPatch::default()
    };
    let now = apps[0].clock.now();
    let patched = apps[0]
        .app
        .db
        .patch_run(&run(), patch, Actor::new("test", now))
        .await;
    patched.unwrap();
    apps[0].submit(0).await;
    apps[1].submit(1).await;
    // Both are asked for all the pairs at the same time.
    let jobs: Vec<Job> = join_all((0..20).map(|n| apps[n % 2].lease(&apps[0].alice))).await;
    let ids: HashSet<_> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), 20);
    let mut taken: Vec<u32> = jobs
        .iter()
        .flat_map(|job| pairs(job).iter().map(|task| task.pair))
        .collect();
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..20), "{taken:?}");
    let mut listeners = apps.each_ref().map(|app| app.app.events.subscribe());
    let chunks: Vec<Vec<u8>> = jobs
        .iter()
        .map(|job| chunk(job, &pair_games(job, 0, [Win, Win])))
        .collect();
    // Every chunk goes to both at the same time.
    let uploads = chunks
        .iter()
        .flat_map(|bytes| apps.iter().map(|app| app.accepted(&app.alice, bytes)));
    let receipts: Vec<ChunkReceipt> = join_all(uploads).await;
    let new = receipts.iter().filter(|receipt| !receipt.duplicate).count();
    assert_eq!(new, 20);
    let sequences: HashSet<i64> = receipts.iter().map(|receipt| receipt.sequence).collect();
    assert_eq!(sequences.len(), 20);
    let matches: Vec<MatchInfo> = apps[1].get("/matches").await;
    assert_eq!(matches[0].status, MatchStatus::Promoted);
    let mut promotions = 0;
    for listener in &mut listeners {
        while let Ok(event) = listener.try_recv() {
            promotions += usize::from(matches!(event, Event::Promotion { .. }));
        }
    }
    assert_eq!(promotions, 1);
    apps[0].assert_consistent().await;
    let best = apps[0].app.db.network(&run(), NetworkName::Best).await;
    assert_eq!(best.unwrap().number.0, 1);
}

#[tokio::test]
async fn listeners_of_one_replica_get_events_of_the_other_once() {
    let (_s3, apps) = two().await;
    let relays = apps
        .each_ref()
        .map(|app| tokio::spawn(relay::relay(app.app.clone())));
    let mut listener = apps[0].app.events.subscribe();
    // The relays listen once a first event has crossed.
    let mut step = 0;
    loop {
        step += 1;
        let run = run();
        apps[1].app.events.publish(Event::Metrics { run, step });
        let heard = tokio::time::timeout(Duration::from_millis(200), listener.recv()).await;
        if heard.is_ok() {
            break;
        }
    }
    let hash = apps[1].submit(0).await.hash;
    let mut told = Vec::new();
    loop {
        let event = listener.recv().await.unwrap();
        let done = matches!(event, Event::Promotion { .. });
        told.push(event);
        if done {
            break;
        }
    }
    let networks = told
        .iter()
        .filter(|event| matches!(event, Event::Network { hash: h, .. } if *h == hash));
    assert_eq!(networks.count(), 1, "{told:?}");
    let [one, other] = &apps;
    let job = other.lease(&other.alice).await;
    let ended = |id| Event::BoardEnded {
        run: run(),
        job: id,
    };
    other.app.events.publish(ended(JobId(Uuid::nil())));
    let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let board = json!({"board": {"game": 0, "fen": fen, "moves": "e2e4", "value": 0}});
    let beat = format!("/jobs/{}/heartbeat", job.id);
    let answer = other.call(Method::POST, &beat, &other.alice, board.to_string());
    assert_eq!(answer.await.status(), StatusCode::OK);
    let mut next_board = async || loop {
        let event = listener.recv().await.unwrap();
        if event.kind().starts_with("board") {
            break event;
        }
    };
    let shown = next_board().await;
    assert_eq!(shown.kind(), "board", "the end of no board is not told");
    assert_eq!(one.app.live_boards.of(&run(), one.clock.now()).len(), 1);
    other.give_back(&other.alice, &job).await;
    assert_eq!(next_board().await, ended(job.id));
    assert!(one.app.live_boards.of(&run(), one.clock.now()).is_empty());
    for app in &apps {
        app.app.stopping.cancel();
    }
    join_all(relays).await.into_iter().for_each(Result::unwrap);
}

#[tokio::test]
async fn an_older_fit_never_replaces_a_newer_one() {
    let (_s3, apps) = two().await;
    apps[0].submit(0).await;
    let now = apps[0].clock.now();
    let (db, other) = (&apps[0].app.db, &apps[1].app.db);
    let (older, _) = db.begin_fit(&run()).await.unwrap();
    let (newer, basis) = other.begin_fit(&run()).await.unwrap();
    assert!(older < newer);
    let fitted = rookery_coordinator::ratings::fit(&basis).unwrap();
    assert!(
        other
            .store_ratings(&run(), newer, fitted.ratings(), now)
            .await
            .unwrap()
    );
    assert!(
        !db.store_ratings(&run(), older, Vec::new(), now)
            .await
            .unwrap()
    );
    assert_eq!(db.ratings(&run()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_stored_by_one_is_served_by_the_other() {
    let (_s3, apps) = two().await;
    apps[0].submit(0).await;
    let job = apps[0].lease(&apps[0].alice).await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    let receipt = apps[1].accepted(&apps[1].alice, &bytes).await;
    let path = format!("/chunks/{}", receipt.hash);
    let answer = apps[0].look(&apps[0].trainer, &path).await;
    assert_eq!(body(answer).await, bytes);
}
