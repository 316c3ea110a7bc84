//! How leases are kept: by reference, in few bytes, and found again as they were handed out.

use std::sync::Arc;

use rookery_common::ids::{Seed, UserId};
use rookery_common::openings::OpeningBook;
use rookery_common::params::RunParams;
use rookery_common::protocol::jobs::{Job, Work, WorkKind};
use rookery_common::protocol::runs::RunPatch;
use rookery_coordinator::db::{Chances, PuzzleSetDraft, SharedDatabase};
use sqlx::{AnyConnection, Connection as _};

use super::{chances, name, network, request, run, user};
use crate::support::app::params;
use crate::support::audit_scenario::AuditScenario;
use crate::support::database::TestDatabase;
use crate::support::games::puzzle;
use crate::support::{by, noon};

/// The most that a lease may take in the ledger.
const MOST_BYTES: i64 = 2048;

async fn add_puzzles(db: &SharedDatabase, numbers: std::ops::Range<usize>) {
    let set = PuzzleSetDraft {
        run: name("a"),
        name: format!("{numbers:?}"),
        puzzles: numbers
            .map(|number| puzzle(&format!("{number:032}")))
            .collect(),
    };
    db.add_puzzles(set, by("test")).await.unwrap();
}

fn largest(puzzle_share: f32) -> RunParams {
    let mut params = params();
    params.selfplay.book_share = 1.0;
    params.scheduling.puzzle_share = puzzle_share;
    params.scheduling.selfplay_games = 64;
    params.scheduling.puzzle_games = 64;
    params.scheduling.match_games = 64;
    params
}

/// Takes the largest job that a worker can get.
async fn take(db: &SharedDatabase, user: UserId, job: u128, gate: f64, book: &str) -> Job {
    let seed = Seed(job as u64 * 77);
    let chances = Chances {
        seed,
        puzzle: 0.0,
        ..chances(job, gate)
    };
    let mut request = request(user, chances);
    request.request.worker = "w".repeat(64);
    request.request.concurrent_games = u32::MAX;
    if !book.is_empty() {
        request.book = Arc::new(OpeningBook::from_epd(book).unwrap());
    }
    db.lease(request, noon()).await.unwrap().unwrap()
}

/// Bytes of all columns of the leases.
async fn bytes(database: &mut AnyConnection) -> Vec<(String, i64)> {
    sqlx::query_as(
        "SELECT kind, CAST(length(work) + length(worker) + 150 AS BIGINT) AS bytes FROM jobs
         ORDER BY leased_at, id",
    )
    .fetch_all(database)
    .await
    .unwrap()
}

#[tokio::test]
async fn the_largest_job_of_each_kind_takes_two_kilobytes_and_is_found_as_it_was() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let ann = user(&db, "ann").await;
    run(&db, "a", largest(1.0)).await;
    for number in 0..2 {
        let network = network("a", ann, number);
        db.submit_network(network, noon()).await.unwrap();
    }
    add_puzzles(&db, 0..3000).await;
    let book = "4k3/8/8/8/8/8/4P3/4K3 w - -\n4k3/8/8/8/8/8/3P4/4K3 w - -\n";
    let mut jobs = vec![
        take(&db, ann, 1, 0.0, book).await,
        take(&db, ann, 2, 0.9, "").await,
        // The gate's pairs are all out.
        take(&db, ann, 3, 0.0, "").await,
    ];
    let change = |params| RunPatch {
        params: Some(params),
        ..RunPatch::default()
    };
    let selfplay = change(largest(0.0));
    db.patch_run(&name("a"), selfplay, by("test"))
        .await
        .unwrap();
    jobs.push(take(&db, ann, 4, 0.9, "").await);
    jobs.push(take(&db, ann, 5, 0.9, book).await);
    let kinds: Vec<WorkKind> = jobs.iter().map(|job| job.work.kind()).collect();
    let (puzzles, matches) = (WorkKind::Puzzles, WorkKind::Match);
    let selfplay = WorkKind::SelfPlay;
    assert_eq!(kinds, [matches, puzzles, puzzles, selfplay, selfplay]);
    let games: Vec<u32> = jobs.iter().map(|job| job.work.games()).collect();
    assert_eq!(games[1..4], [1024, games[2], 1024]);

    // Everything that a lease may be about changes.
    let mut other = largest(0.5);
    other.selfplay.search.visits += 1;
    other.puzzle.search.visits += 1;
    other.matches.search.visits += 1;
    other.selfplay.book_share = 0.25;
    db.patch_run(&name("a"), change(other), by("test"))
        .await
        .unwrap();
    add_puzzles(&db, 0..3000).await;
    add_puzzles(&db, 2900..4000).await;
    db.close().await;
    let db = database.open().await;
    for job in &jobs {
        let leased = db.leased_job(job.id).await.unwrap();
        assert!(leased.work == job.work, "{:?}", job.work.kind());
        assert_eq!(leased.seed, job.seed);
    }

    assert_short(&database, &kinds).await;
}

/// The ledger has leases of these kinds, and none is larger than it may be.
async fn assert_short(database: &TestDatabase, kinds: &[WorkKind]) {
    let mut rows = database.connect().await;
    let leases = bytes(&mut rows).await;
    rows.close().await.unwrap();
    let fit = leases.iter().all(|(_, bytes)| *bytes <= MOST_BYTES);
    assert!(fit, "{leases:?}");
    let leased: Vec<&str> = leases.iter().map(|(kind, _)| &**kind).collect();
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    assert_eq!(leased, kinds);
}

#[tokio::test]
async fn a_match_from_the_built_in_book_takes_as_little() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let ann = user(&db, "ann").await;
    run(&db, "a", largest(0.0)).await;
    for number in 0..2 {
        let network = network("a", ann, number);
        db.submit_network(network, noon()).await.unwrap();
    }
    let job = take(&db, ann, 1, 0.0, "").await;
    db.close().await;
    let db = database.open().await;
    let leased = db.leased_job(job.id).await.unwrap();
    assert!(leased.work == job.work);
    assert_short(&database, &[WorkKind::Match]).await;
}

#[tokio::test]
async fn an_audit_takes_as_little() {
    let scenario = AuditScenario::new().await;
    scenario.alice_plays().await;
    scenario.app.clock.advance_seconds(1);
    let job = scenario.lease(&scenario.auditor).await;
    scenario.app.app.db.close().await;
    let db = scenario.app.database.open().await;
    let leased = db.leased_job(job.id).await.unwrap();
    assert!(leased.work == job.work);
    let kinds = [WorkKind::SelfPlay, WorkKind::Audit];
    assert_short(&scenario.app.database, &kinds).await;
}

#[tokio::test]
async fn leases_of_earlier_versions_are_read() {
    let database = TestDatabase::new().await;
    let db = database.open().await;
    let ann = user(&db, "ann").await;
    run(&db, "a", largest(0.0)).await;
    let first = network("a", ann, 0);
    db.submit_network(first, noon()).await.unwrap();
    let job = take(&db, ann, 1, 0.9, "").await;
    let Work::SelfPlay { openings, .. } = &job.work else {
        panic!("{:?}", job.work.kind())
    };
    assert_eq!(openings.len(), 1024);
    let mut rows = database.connect().await;
    sqlx::query("UPDATE jobs SET work = $1")
        .bind(serde_json::to_string(&job.work).unwrap())
        .execute(&mut rows)
        .await
        .unwrap();
    sqlx::query("DELETE FROM lease_values")
        .execute(&mut rows)
        .await
        .unwrap();
    rows.close().await.unwrap();
    let leased = db.leased_job(job.id).await.unwrap();
    assert!(leased.work == job.work);
}
