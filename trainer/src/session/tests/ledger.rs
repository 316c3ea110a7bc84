//! The coordinator's ledger is followed: chunks that are held, and a ledger restored from a backup.

use std::path::Path;

use rookery_client::testing::Server;
use rookery_common::protocol::jobs::ChunkRow;

use super::*;
use crate::buffer::GameStore;
use crate::data::{ChunkFolder, ExcludedChunks, HeldOut, Ledger};

fn client(server: &Server) -> Client {
    let run = "main".parse().unwrap();
    Client::new(&server.url, None, run, Shutdown::default()).unwrap()
}

/// What a trainer knows of the ledger in this folder; it takes chunks after this delay.
fn ledger_sync(folder: &Path, delay: Duration) -> LedgerSync {
    LedgerSync::new(
        Ledger::open(&folder.join("ledger.jsonl")).unwrap(),
        ChunkFolder::new(folder.join("chunks")),
        ExcludedChunks::open(&folder.join("holds.json")).unwrap(),
        delay,
    )
}

/// The games of a chunk that is held are in no batch; when it is let go, the window is what it was.
#[tokio::test(flavor = "multi_thread")]
async fn held_chunks_leave_the_window_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    let server = coordinator.serve().await;
    let client = client(&server);
    let here = |name: &str| dir.path().join(name);
    let open = || {
        let store = GameStore::open(here("window")).unwrap();
        let ingest = ChunkIngest::new(store, 10_000, HeldOut::share(0.0));
        (ledger_sync(dir.path(), Duration::ZERO), ingest)
    };
    let positions = |ingest: &ChunkIngest| {
        let window = ingest.training().window(u64::MAX);
        let history = |age| {
            let (game, ply) = window.position(age).unwrap();
            game.history(ply).unwrap().repetition_key()
        };
        (0..window.len()).map(history).collect::<Vec<u64>>()
    };
    let (mut ledger_sync, mut ingest) = open();
    let mut windows = Vec::new();
    for change in [
        None,
        Some((2, true)),
        Some((6, true)),
        Some((2, false)),
        Some((6, false)),
    ] {
        if let Some((place, held)) = change {
            coordinator.hold(place, held);
        }
        ledger_sync.update(&client).await.unwrap();
        ledger_sync.take_new(&client, &mut ingest).await.unwrap();
        assert_eq!(
            ledger_sync.taken_positions(),
            ingest.training().positions(),
            "held ones do not count as new"
        );
        windows.push(positions(&ingest));
    }
    let [all, without_2, without_both, without_6, again] = &windows[..] else {
        panic!("five windows");
    };
    assert_eq!(all, again);
    let lengths = [all, without_2, without_6, without_both].map(Vec::len);
    assert_eq!(
        lengths[0] - lengths[1],
        lengths[2] - lengths[3],
        "the positions of chunk 2"
    );
    assert!(lengths[1] < lengths[0] && lengths[2] < lengths[0]);
    assert_eq!(
        coordinator.take_chunk_requests(),
        8,
        "each was fetched once"
    );

    // A trainer that starts again knows what is held before it has asked.
    coordinator.hold(2, true);
    ledger_sync.update(&client).await.unwrap();
    drop((ledger_sync, ingest));
    let asked = server.requests().len();
    let (mut ledger_sync, mut ingest) = open();
    let until = ledger_sync.ledger().cursor();
    ledger_sync
        .refill(&client, &mut ingest, until, 10_000)
        .await
        .unwrap();
    assert_eq!(positions(&ingest), *without_2);
    assert_eq!(server.requests().len(), asked);
}

/// A newcomer's chunk that waited for its audit while a candidate was trained is new for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_candidate_was_trained_without_counts_as_new_once_it_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    coordinator.hold(2, true);
    let server = coordinator.serve().await;
    let client = client(&server);
    let ingest = || ChunkIngest::new(GameStore::in_memory(), 10_000, HeldOut::share(0.0));
    let (mut first, mut games) = (ledger_sync(dir.path(), Duration::ZERO), ingest());
    first.update(&client).await.unwrap();
    first.take_new(&client, &mut games).await.unwrap();
    first.begin_candidate().unwrap();
    let cursor = first.taken_until();
    assert_eq!(first.taken_positions(), first.positions_until(cursor));
    drop((first, games));

    coordinator.hold(2, false);
    let (mut again, mut games) = (ledger_sync(dir.path(), Duration::ZERO), ingest());
    let refilled = again.refill(&client, &mut games, cursor, 10_000);
    refilled.await.unwrap();
    again.update(&client).await.unwrap();
    again.take_new(&client, &mut games).await.unwrap();
    let waited = u64::from(coordinator.rows()[2].positions);
    let new = again.taken_positions() - again.positions_until(cursor);
    assert_eq!(new, waited);
    again.begin_candidate().unwrap();
    assert_eq!(again.taken_positions(), again.positions_until(cursor));
}

/// A ledger that comes back from a backup gives the numbers of lost chunks to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_ledger_is_followed_from_where_it_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    let server = coordinator.serve().await;
    let client = client(&server);
    let open = |name: &str| {
        let folder = dir.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let ingest = ChunkIngest::new(GameStore::in_memory(), 10_000, HeldOut::share(0.0));
        (ledger_sync(&folder, Duration::ZERO), ingest)
    };
    let (mut ledger_sync, mut ingest) = open("old");
    coordinator.hold(2, true);
    ledger_sync.update(&client).await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    assert_eq!(ledger_sync.take_restored(), None);
    for (name, left, new) in [
        ("as many", 5, 3),
        ("more", 4, 9),
        ("fewer", 7, 1),
        ("none", 2, 0),
        ("all", 0, 4),
    ] {
        coordinator.restore(left);
        let known = coordinator.rows().last().map_or(0, |row| row.sequence);
        (0..new).for_each(|seed| {
            let seed = 100 + 10 * left as u64 + seed;
            coordinator.add_chunk(testing::chunk(seed, 5).1);
        });
        ledger_sync.update(&client).await.unwrap();
        ledger_sync.take_new(&client, &mut ingest).await.unwrap();
        assert_eq!(ledger_sync.take_restored(), Some(known), "{name}");
        assert_eq!(ledger_sync.ledger().rows(), coordinator.rows(), "{name}");
        let (mut fresh, mut expected) = open(name);
        fresh.update(&client).await.unwrap();
        fresh.take_new(&client, &mut expected).await.unwrap();
        assert_eq!(
            ingest.training().positions(),
            expected.training().positions(),
            "{name}"
        );
        assert_eq!(
            ledger_sync.taken_positions(),
            fresh.taken_positions(),
            "{name}"
        );
    }
    let copy = Ledger::open(&dir.path().join("old/ledger.jsonl")).unwrap();
    assert_eq!(copy.rows(), coordinator.rows());
}

/// Positions that a restored ledger has lost are not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_goes_on_after_its_coordinators_ledger_was_restored() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    coordinator.restore(4);
    coordinator.add_chunk(testing::chunk(100, 5).1);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
}

/// Positions that were trained on and are held afterwards are not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_goes_on_after_what_it_trained_on_was_held() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    session(&coordinator, settings(dir.path())).await.unwrap();
    (0..6).for_each(|place| coordinator.hold(place, true));
    coordinator.add_chunk(testing::chunk(100, 5).1);
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 3);
}

/// Training goes on from a promoted network that a restored ledger does not know any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_trainer_goes_on_from_a_network_that_was_lost_with_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    let from_best = || Settings {
        on_rejection: OnRejection::Best,
        ..settings(dir.path())
    };
    session(&coordinator, from_best()).await.unwrap();
    let lost = coordinator.networks()[1].hash;
    coordinator.forget_network();
    session(&coordinator, from_best()).await.unwrap();
    let networks = coordinator.networks();
    assert_eq!(networks[1].spec.parent, Some(lost));
    assert_eq!(networks[1].spec.training_step, 60);
}

/// A candidate that a restored ledger does not know is handed in again, and gets its verdict.
#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_was_lost_with_the_ledger_is_submitted_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(10);
    coordinator.lose_candidate();
    session(&coordinator, settings(dir.path())).await.unwrap();
    assert_eq!(coordinator.networks().len(), 2);
    let log = std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap();
    assert!(log.contains("\"promoted\":1"), "{log}");
}

/// A chunk that is lost is not asked for again when the window is filled anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_chunk_is_asked_for_once_until_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(3);
    coordinator.damage(1);
    let server = coordinator.serve().await;
    let client = client(&server).impatient();
    let mut ledger_sync = ledger_sync(dir.path(), Duration::ZERO);
    let mut ingest = ChunkIngest::new(GameStore::in_memory(), 10_000, HeldOut::share(0.0));
    ledger_sync.update(&client).await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    assert!(coordinator.take_chunk_requests() > 3);
    let positions = ingest.training().positions();
    assert!(positions > 0);
    ingest.clear();
    let (until, capacity) = (ledger_sync.taken_until(), ingest.capacity());
    ledger_sync
        .refill(&client, &mut ingest, until, capacity)
        .await
        .unwrap();
    assert_eq!(ingest.training().positions(), positions);
    assert_eq!(coordinator.take_chunk_requests(), 0);
}

/// What is measured on stays the same when a trainer starts again, also where its window is far smaller than the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn games_held_out_are_the_same_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(12);
    let server = coordinator.serve().await;
    let client = client(&server);
    let mut ledger_sync = ledger_sync(dir.path(), Duration::ZERO);
    let mut ingest = ChunkIngest::new(GameStore::in_memory(), 10, HeldOut::share(0.5));
    ledger_sync.update(&client).await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    let positions =
        |ingest: &ChunkIngest| [ingest.training().positions(), ingest.validation().len()];
    let before = positions(&ingest);
    let rows = coordinator.rows();
    let held_out = rows
        .iter()
        .filter(|row| !ingest.trains_on(row.hash))
        .count();
    assert!(held_out > 1 && held_out < rows.len(), "{held_out}");
    ingest.clear();
    let (until, capacity) = (ledger_sync.taken_until(), ingest.capacity());
    let refilled = ledger_sync.refill(&client, &mut ingest, until, capacity);
    refilled.await.unwrap();
    assert_eq!(positions(&ingest), before);
}

/// A chunk that has to wait for audits is in no batch until then, and never if it is held meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_wait_for_audits_before_they_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(8);
    let now = jiff::Timestamp::now();
    for place in 0..8 {
        let age = if place < 5 { 75 } else { 45 };
        coordinator.date(place, now - jiff::SignedDuration::from_mins(age));
    }
    let server = coordinator.serve().await;
    let client = client(&server);
    let open = |name: &str, delay: Duration| {
        let folder = dir.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let ingest = ChunkIngest::new(GameStore::in_memory(), 10_000, HeldOut::share(0.0));
        (ledger_sync(&folder, delay), ingest)
    };
    let hour = Duration::from_secs(3600);
    let (mut ledger_sync, mut ingest) = open("patient", hour);
    ledger_sync.update(&client).await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    let (taken, waiting) = (
        ledger_sync.taken_positions(),
        ledger_sync.waiting_positions(),
    );
    assert_eq!(ingest.training().positions(), taken);
    let all: u64 = coordinator
        .rows()
        .iter()
        .map(|row| u64::from(row.positions))
        .sum();
    assert_eq!(taken + waiting, all);
    assert_eq!(coordinator.take_chunk_requests(), 5, "the others wait");
    drop((ledger_sync, ingest));

    // Three of them are old enough for a shorter time, and one was held in it.
    coordinator.hold(6, true);
    let (mut ledger_sync, mut ingest) = open("patient", hour / 2);
    ledger_sync.update(&client).await.unwrap();
    let until = ledger_sync.ledger().rows()[4].sequence;
    let capacity = ingest.capacity();
    let refilled = ledger_sync.refill(&client, &mut ingest, until, capacity);
    refilled.await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    assert_eq!(ledger_sync.waiting_positions(), 0);
    assert_eq!(ledger_sync.taken_positions(), ingest.training().positions());
    assert_eq!(coordinator.take_chunk_requests(), 2, "not the held one");
}

/// What a restart needs stays, also if a chunk is held out of training later; the window may be larger than before.
#[tokio::test(flavor = "multi_thread")]
async fn chunks_that_no_window_needs_are_removed() {
    const WINDOW: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let coordinator = with_chunks(40);
    let server = coordinator.serve().await;
    let client = client(&server);
    let open = || {
        // Nothing that was decoded is known again: a window is made of chunks.
        let ingest = ChunkIngest::new(GameStore::in_memory(), WINDOW, HeldOut::share(0.3));
        (ledger_sync(dir.path(), Duration::ZERO), ingest)
    };
    let (mut ledger_sync, mut ingest) = open();
    ledger_sync.update(&client).await.unwrap();
    ledger_sync.take_new(&client, &mut ingest).await.unwrap();
    assert_eq!(coordinator.take_chunk_requests(), 40);
    let rows = coordinator.rows();
    let until = rows[29].sequence;
    ledger_sync.remove_old(&ingest, until, WINDOW).unwrap();

    let folder = ChunkFolder::new(dir.path().join("chunks"));
    let is_here = |row: &&ChunkRow| folder.get(row.hash).unwrap().is_some();
    let (kept, gone): (Vec<&ChunkRow>, Vec<&ChunkRow>) = rows.iter().partition(is_here);
    let is_of_window = |row: &&ChunkRow| row.sequence <= until && ingest.trains_on(row.hash);
    let of_window: Vec<&ChunkRow> = kept.into_iter().filter(is_of_window).collect();
    let positions = |rows: &[&ChunkRow]| -> u64 {
        let positions = rows.iter().map(|row| u64::from(row.positions));
        positions.sum()
    };
    // A half more than the window.
    assert!(positions(&of_window) >= 600 && positions(&of_window[1..]) < 600);
    assert!(!gone.is_empty());
    for row in &gone {
        assert!(row.sequence < of_window[0].sequence, "{row:?}");
        assert!(ingest.trains_on(row.hash), "{row:?} is measured on");
    }

    let newest = of_window.last().unwrap().hash;
    let place = rows.iter().position(|row| row.hash == newest);
    coordinator.hold(place.unwrap(), true);
    let (mut ledger_sync, mut ingest) = open();
    ledger_sync.update(&client).await.unwrap();
    for (capacity, downloads) in [(WINDOW, 0), (u64::MAX, gone.len())] {
        ingest.clear();
        ingest.set_capacity(capacity);
        ledger_sync
            .refill(&client, &mut ingest, until, capacity)
            .await
            .unwrap();
        assert!(ingest.training().positions() >= WINDOW);
        assert_eq!(coordinator.take_chunk_requests(), downloads);
    }
}
