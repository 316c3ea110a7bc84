//! Chunks: every way in which one is accepted or refused, and that nothing counts twice.

use axum::http::{Method, StatusCode};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::{ChunkPage, HeartbeatReply, Instruction, Job, Work};
use rookery_common::protocol::runs::RunInfo;
use rookery_common::protocol::{Problem, ProblemCode};
use rookery_coordinator::blobs::{BlobKind, key};
use serde_json::json;

use crate::support::app::{TestApp, body, code, problem};
use crate::support::games::{EITHER_MATES, chunk, lying, selfplay, selfplay_from_book};

async fn training() -> (TestApp, Job) {
    let app = TestApp::with_network().await;
    let job = app.lease(&app.alice).await;
    assert!(matches!(job.work, Work::SelfPlay { games: 4, .. }));
    (app, job)
}

async fn games_counted(app: &TestApp) -> u64 {
    app.get::<RunInfo>("/runs/main").await.games
}

#[tokio::test]
async fn a_chunk_is_acknowledged_stored_listed_and_counted_once() {
    let (app, job) = training().await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1), selfplay(&job, 2, 2)]);
    let receipt = app.accepted(&app.alice, &bytes).await;
    assert_eq!(
        (receipt.games, receipt.positions, receipt.duplicate),
        (2, 16, false)
    );
    let hash = ContentHash::of(&bytes);
    let stored = std::fs::read(app.files().root().join(key(BlobKind::Chunk, &hash))).unwrap();
    assert_eq!(stored, bytes);
    for _ in 0..2 {
        let again = app.accepted(&app.alice, &bytes).await;
        assert!(again.duplicate);
        assert_eq!(again.sequence, receipt.sequence);
    }
    let run: RunInfo = app.get("/runs/main").await;
    assert_eq!((run.games, run.positions, run.chunks), (2, 16, 1));
    assert_eq!(
        (run.training_positions, run.chunk_bytes),
        (16, bytes.len() as u64)
    );
    let page: ChunkPage = app.get_as(&app.trainer, "/chunks?run=main").await;
    assert_eq!(
        (page.chunks.len(), page.next, page.more),
        (1, receipt.sequence, false)
    );
    let path = format!("/chunks/{hash}");
    let file = app.look(&app.trainer, &path).await;
    assert_eq!(body(file).await, bytes);
    app.assert_consistent().await;
}

#[tokio::test]
async fn self_play_begins_in_the_book_where_the_job_says_so() {
    let app = TestApp::of_run(1, |run| run.selfplay.book_share = 0.5).await;
    let job = app.lease(&app.alice).await;
    let Work::SelfPlay { openings, .. } = &job.work else {
        panic!("a self-play job")
    };
    let fens: Vec<_> = openings.iter().map(|line| line.fen.as_deref()).collect();
    assert_eq!(fens, [Some(EITHER_MATES); 2]);
    let honest = [selfplay_from_book(&job, 1, 1), selfplay(&job, 2, 2)];
    for index in [1, 2] {
        let elsewhere = match index {
            1 => selfplay(&job, 1, 3),
            _ => selfplay_from_book(&job, 2, 3),
        };
        let bytes = chunk(&job, &[elsewhere]);
        let refusal = problem(app.upload(&app.alice, &bytes).await).await;
        assert_eq!(
            refusal.chunk_error.as_deref(),
            Some("wrong-start"),
            "{refusal:?}"
        );
    }
    let receipt = app.hand_in(&app.alice, &job, &honest).await;
    assert_eq!(receipt.games, 2);
}

#[tokio::test]
async fn pages_follow_the_cursor() {
    let (app, job) = training().await;
    for index in 0..3 {
        app.hand_in(&app.alice, &job, &[selfplay(&job, index, index)])
            .await;
    }
    let mut after = 0;
    let mut seen = Vec::new();
    loop {
        let path = format!("/chunks?after={after}&limit=2");
        let page: ChunkPage = app.get_as(&app.trainer, &path).await;
        seen.extend(page.chunks.iter().map(|chunk| chunk.sequence));
        after = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!(seen.len(), 3);
    assert!(seen.is_sorted());
}

#[tokio::test]
async fn the_same_chunk_from_another_contributor_is_refused() {
    let (app, job) = training().await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    // The lease is not bob's.
    assert_eq!(
        code(app.upload(&app.bob, &bytes).await).await,
        ProblemCode::NotFound
    );
    app.accepted(&app.alice, &bytes).await;
    assert_eq!(
        code(app.upload(&app.bob, &bytes).await).await,
        ProblemCode::Conflict
    );
    assert_eq!(games_counted(&app).await, 1);
}

async fn refusal(app: &TestApp, bytes: &[u8]) -> Problem {
    let problem = problem(app.upload(&app.alice, bytes).await).await;
    assert_eq!(problem.code, ProblemCode::ChunkRefused, "{problem}");
    problem
}

#[tokio::test]
async fn bad_chunks_are_refused_with_their_codes_and_nothing_counts() {
    let (app, job) = training().await;
    let good = selfplay(&job, 0, 1);
    let expect = async |bytes: &[u8], code: &str, game: Option<u32>| {
        let problem = refusal(&app, bytes).await;
        assert_eq!(
            (problem.chunk_error.as_deref(), problem.game),
            (Some(code), game)
        );
    };
    expect(b"nonsense", "bad-compression", None).await;
    expect(&chunk(&job, &[]), "empty", None).await;
    expect(
        &chunk(&job, &[good.clone(), lying(&job, 1)]),
        "false-result",
        Some(1),
    )
    .await;
    expect(&chunk(&job, &[selfplay(&job, 4, 1)]), "bad-index", Some(0)).await;
    expect(
        &chunk(&job, &[good.clone(), good.clone()]),
        "duplicate-index",
        Some(1),
    )
    .await;
    let mut seed = good.clone();
    seed.seed.0 ^= 1;
    expect(&chunk(&job, &[seed]), "wrong-seed", Some(0)).await;
    let same_game = [good.clone(), selfplay(&job, 1, 1)];
    expect(&chunk(&job, &same_game), "duplicate-game", Some(1)).await;
    let mut other = job.clone();
    let Work::SelfPlay { network, .. } = &mut other.work else {
        unreachable!()
    };
    *network = ContentHash::of(b"another");
    expect(
        &chunk(&other, std::slice::from_ref(&good)),
        "wrong-networks",
        None,
    )
    .await;
    assert_eq!(games_counted(&app).await, 0);
    app.hand_in(&app.alice, &job, &[good]).await;
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_game_counts_once_by_index_and_by_content() {
    let (app, job) = training().await;
    app.hand_in(&app.alice, &job, &[selfplay(&job, 0, 1)]).await;
    let repeated = [selfplay(&job, 1, 2), selfplay(&job, 0, 3)];
    let problem = refusal(&app, &chunk(&job, &repeated)).await;
    assert_eq!(problem.chunk_error.as_deref(), Some("duplicate-index"));
    assert_eq!(problem.game, Some(1));
    // Another contributor hands in the same moves and visits under a lease of his own.
    let copied = app.lease(&app.bob).await;
    let stolen = chunk(&copied, &[selfplay(&copied, 3, 9), selfplay(&copied, 0, 1)]);
    let answer = crate::support::app::problem(app.upload(&app.bob, &stolen).await).await;
    assert_eq!(answer.chunk_error.as_deref(), Some("duplicate-game"));
    assert_eq!(answer.game, Some(1));
    assert_eq!(games_counted(&app).await, 1);
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_body_that_changed_on_the_way_is_a_hash_mismatch() {
    let (app, job) = training().await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    let path = format!("/chunks/{}", ContentHash::of(b"something else"));
    let answer = app.call(Method::PUT, &path, &app.alice, bytes).await;
    assert_eq!(code(answer).await, ProblemCode::HashMismatch);
}

#[tokio::test]
async fn a_chunk_of_no_job_is_refused() {
    let (app, job) = training().await;
    let mut unknown = job.clone();
    unknown.id.0 = uuid::Uuid::from_u128(7);
    let bytes = chunk(&unknown, &[selfplay(&unknown, 0, 1)]);
    assert_eq!(
        code(app.upload(&app.alice, &bytes).await).await,
        ProblemCode::NotFound
    );
}

#[tokio::test]
async fn a_store_that_fails_acknowledges_nothing() {
    let (app, job) = training().await;
    let bytes = chunk(&job, &[selfplay(&job, 0, 1)]);
    app.files().break_down();
    let answer = app.upload(&app.alice, &bytes).await;
    let problem = problem(answer).await;
    assert_eq!(problem.code, ProblemCode::Unavailable);
    assert!(
        !problem.detail.contains("chunks/"),
        "the cause is not told: {}",
        problem.detail
    );
    assert_eq!(games_counted(&app).await, 0);
    app.files().mend();
    app.accepted(&app.alice, &bytes).await;
}

#[tokio::test]
async fn late_selfplay_is_welcome_after_the_lease_and_after_giving_back() {
    let (app, job) = training().await;
    app.clock.advance_seconds(100_000);
    app.hand_in(&app.alice, &job, &[selfplay(&job, 0, 1)]).await;
    app.give_back(&app.alice, &job).await;
    app.hand_in(&app.alice, &job, &[selfplay(&job, 1, 2)]).await;
    let beat = app.beat(&app.alice, &job).await;
    assert_eq!(code(beat).await, ProblemCode::LeaseEnded);
    app.assert_consistent().await;
}

#[tokio::test]
async fn a_paused_run_hands_out_nothing_and_tells_its_workers() {
    let (app, job) = training().await;
    assert_eq!(
        app.keep(&app.alice, &job).await,
        HeartbeatReply {
            lease_seconds: 60,
            instruction: Instruction::Continue,
            notices: Vec::new(),
        }
    );
    app.patch_run(&json!({"status": "paused"})).await;
    let reply = app.keep(&app.alice, &job).await;
    assert_eq!(reply.instruction, Instruction::Abandon);
    let nothing = app.ask(&app.alice).await;
    assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
    let wait = nothing.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse::<u32>()
        .unwrap();
    assert!((1..=60).contains(&wait));
    app.hand_in(&app.alice, &job, &[selfplay(&job, 0, 1)]).await;
}

#[tokio::test]
async fn another_contributors_lease_cannot_be_touched() {
    let (app, job) = training().await;
    let path = format!("/jobs/{}", job.id);
    let gone = app.call(Method::DELETE, &path, &app.bob, "").await;
    assert_eq!(code(gone).await, ProblemCode::NotFound);
    let beat = app.beat(&app.bob, &job).await;
    assert_eq!(code(beat).await, ProblemCode::NotFound);
}
