//! Old chunks go into archives and are served from there; what nothing needs is found and removed.

use std::collections::HashSet;
use std::time::SystemTime;

use axum::http::StatusCode;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::ContentHash;
use rookery_common::protocol::jobs::ChunkRow;
use rookery_coordinator::archives::{self, ArchiveError};
use rookery_coordinator::blobs::{BlobKind, key};
use rookery_coordinator::clock::Clock as _;
use rookery_coordinator::db::{Actor, Archivable};
use rookery_coordinator::sweep;

use crate::support::app::{TestApp, body, run};
use crate::support::selfplay::selfplays;

const NO_GRACE: SignedDuration = SignedDuration::ZERO;

/// A coordinator with three chunks, and their bytes.
async fn three() -> (TestApp, Vec<Vec<u8>>) {
    let app = TestApp::with_network().await;
    let mut chunks = Vec::new();
    for salt in 1..=3 {
        chunks.push(selfplays(&app, &app.alice, &[salt]).await);
    }
    (app, chunks)
}

/// What is older than one position and one second.
fn old(app: &TestApp) -> Archivable {
    app.clock.advance_seconds(2);
    Archivable {
        window: 1,
        before: app.clock.now() - SignedDuration::from_secs(1),
        limit: 100,
    }
}

/// Packs what is old: the chunks, and the archive's hash and size in bytes.
async fn pack(app: &TestApp) -> (Vec<ChunkRow>, ContentHash, u64) {
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let rows = db.archivable(&run(), old(app)).await.unwrap();
    let now = app.clock.now();
    let archived = archives::archive(db, blobs, &run(), &rows, Actor::new("test", now)).await;
    let (hash, size) = archived.unwrap();
    (rows, hash, size)
}

async fn download(app: &TestApp, bytes: &[u8]) -> Vec<u8> {
    let path = format!("/chunks/{}", ContentHash::of(bytes));
    let answer = app.look(&app.trainer, &path).await;
    assert_eq!(answer.status(), StatusCode::OK);
    body(answer).await
}

/// Numbers of orphans and of missing blobs of a kind, a day from now.
async fn compared(app: &TestApp, kind: BlobKind) -> (usize, usize) {
    let later = Timestamp::now() + SignedDuration::from_hours(24);
    let found = sweep::compare(&app.app.db, &*app.app.blobs, kind, NO_GRACE, later).await;
    let found = found.unwrap();
    (found.orphans.len(), found.missing.len())
}

#[tokio::test]
async fn old_chunks_are_packed_and_still_have_their_addresses() {
    let (app, chunks) = three().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let (rows, hash, size) = pack(&app).await;
    // The newest one is the window.
    assert_eq!(rows.len(), 2);
    for bytes in &chunks {
        assert_eq!(download(&app, bytes).await, *bytes);
        let read = archives::read_chunk(db, blobs, &ContentHash::of(bytes)).await;
        assert_eq!(read.unwrap(), *bytes);
    }
    let packed = app.files().root().join(key(BlobKind::Chunk, &rows[0].hash));
    assert!(!packed.exists(), "the chunk's own file is gone");
    let archive = blobs.get(BlobKind::Archive, &hash).await.unwrap();
    assert_eq!(archive.len() as u64, size);
    let mut tar = tar::Archive::new(&archive[..]);
    let names: Vec<String> = tar
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names[0], "manifest.json");
    assert_eq!(names[1], format!("chunks/{}", rows[0].hash));
    assert!(db.archivable(&run(), old(&app)).await.unwrap().is_empty());
    for kind in BlobKind::ALL {
        assert_eq!(compared(&app, kind).await, (0, 0), "{kind:?}");
    }
    app.assert_consistent().await;
}

#[tokio::test]
async fn an_archive_that_was_interrupted_is_made_again() {
    let (app, chunks) = three().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let (rows, hash, _) = pack(&app).await;
    // As if it had been killed before the chunks were removed.
    for row in &rows {
        let bytes = archives::read_chunk(db, blobs, &row.hash).await.unwrap();
        blobs.put(BlobKind::Chunk, &row.hash, bytes).await.unwrap();
    }
    assert_eq!(compared(&app, BlobKind::Chunk).await, (2, 0));
    // To enter the same chunks twice is refused and changes nothing.
    let now = app.clock.now();
    let again = archives::archive(db, blobs, &run(), &rows, Actor::new("test", now)).await;
    assert!(matches!(again, Err(ArchiveError::Database(_))), "{again:?}");
    let later = Timestamp::now() + SignedDuration::from_hours(24);
    let found = sweep::compare(db, blobs, BlobKind::Chunk, NO_GRACE, later).await;
    sweep::remove(blobs, &found.unwrap(), NO_GRACE)
        .await
        .unwrap();
    assert_eq!(compared(&app, BlobKind::Chunk).await, (0, 0));
    for bytes in &chunks {
        assert_eq!(download(&app, bytes).await, *bytes);
    }
    assert!(blobs.get(BlobKind::Archive, &hash).await.is_ok());
}

#[tokio::test]
async fn a_damaged_chunk_is_not_archived() {
    let (app, _) = three().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let rows = db.archivable(&run(), old(&app)).await.unwrap();
    let file = app.files().root().join(key(BlobKind::Chunk, &rows[1].hash));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let now = app.clock.now();
    let refused = archives::archive(db, blobs, &run(), &rows, Actor::new("test", now)).await;
    assert!(
        matches!(refused, Err(ArchiveError::Damaged(_))),
        "{refused:?}"
    );
    assert_eq!(compared(&app, BlobKind::Chunk).await, (0, 0));
}

#[tokio::test]
async fn what_nothing_needs_is_removed_once_it_is_old_and_what_is_missing_is_named() {
    let (app, chunks) = three().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let stray = Bytes::from_static(b"uploaded, never entered");
    let hash = ContentHash::of(&stray);
    blobs.put(BlobKind::Chunk, &hash, stray).await.unwrap();
    let now = Timestamp::try_from(SystemTime::now()).unwrap();
    let day = SignedDuration::from_hours(24);
    let young = sweep::compare(db, blobs, BlobKind::Chunk, day, now)
        .await
        .unwrap();
    assert!(
        young.orphans.is_empty() && young.missing.is_empty(),
        "{young:?}"
    );
    let found = sweep::compare(db, blobs, BlobKind::Chunk, NO_GRACE, now + day)
        .await
        .unwrap();
    assert_eq!(found.orphans.len(), 1);
    assert_eq!(found.orphans[0].hash, hash);
    // A blob that was written again in the meantime is left alone.
    sweep::remove(blobs, &found, day).await.unwrap();
    assert!(blobs.get(BlobKind::Chunk, &hash).await.is_ok());
    sweep::remove(blobs, &found, -day).await.unwrap();
    assert!(blobs.get(BlobKind::Chunk, &hash).await.is_err());
    let lost = ContentHash::of(&chunks[0]);
    blobs.remove(BlobKind::Chunk, &lost).await.unwrap();
    let found = sweep::compare(db, blobs, BlobKind::Chunk, day, now)
        .await
        .unwrap();
    assert_eq!(found.missing, [lost]);
}

#[tokio::test]
async fn an_archive_tells_and_gives_its_chunks_without_the_ledger_but_no_damaged_ones() {
    let (app, chunks) = three().await;
    let (db, blobs) = (&*app.app.db, &*app.app.blobs);
    let (rows, hash, _) = pack(&app).await;
    let entry = blobs.entry(BlobKind::Archive, &hash).await.unwrap();
    let told = archives::contents(blobs, &entry).await.unwrap();
    assert_eq!(told, [rows[0].hash, rows[1].hash]);
    let bytes = blobs.get(BlobKind::Archive, &hash).await.unwrap();
    let second = HashSet::from([rows[1].hash]);
    let given = archives::unpack(&bytes, &second).unwrap();
    assert_eq!(given, [(rows[1].hash, Bytes::from(chunks[1].clone()))]);
    let mut damaged = bytes.to_vec();
    let place = db.archived(&rows[0].hash).await.unwrap().unwrap().begins;
    damaged[place as usize] ^= 1;
    let wanted = HashSet::from([rows[0].hash, rows[1].hash]);
    assert_eq!(archives::unpack(&damaged, &wanted).unwrap(), given);
    let stray = Bytes::from_static(b"no archive");
    let hash = ContentHash::of(&stray);
    blobs.put(BlobKind::Archive, &hash, stray).await.unwrap();
    let entry = blobs.entry(BlobKind::Archive, &hash).await.unwrap();
    let refused = archives::contents(blobs, &entry).await;
    assert!(matches!(refused, Err(ArchiveError::Io(_))), "{refused:?}");
}
