//! What every store of blobs must do: in a folder for the test binary `suite`, in S3 for `cloud`.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use rookery_common::ids::ContentHash;
use rookery_coordinator::blobs::{BlobError, BlobKind, MARK, Marking, key};

use crate::support::files::Files;

#[tokio::test]
async fn blobs_come_back_whole_and_in_parts() {
    let files = Files::new().await;
    let store = files.open();
    let bytes = Bytes::from_static(b"0123456789");
    let hash = ContentHash::of(&bytes);
    for _ in 0..2 {
        let put = store.put(BlobKind::Chunk, &hash, bytes.clone()).await;
        put.unwrap();
    }
    assert_eq!(store.get(BlobKind::Chunk, &hash).await.unwrap(), bytes);
    let entry = store.entry(BlobKind::Chunk, &hash).await.unwrap();
    assert_eq!((entry.hash, entry.bytes), (hash, 10));
    let listed = store.list(BlobKind::Chunk).await.unwrap();
    assert_eq!(listed.len(), 1);
    // A store may tell times to the second here and more finely there.
    assert_eq!((listed[0].hash, listed[0].bytes), (hash, 10));
    assert_eq!(store.list(BlobKind::Network).await.unwrap(), []);
    for range in [3..7, 0..10, 9..10, 4..4] {
        let part = store.read(BlobKind::Chunk, &hash, range.clone()).await;
        let part: Vec<Bytes> = part.unwrap().try_collect().await.unwrap();
        let (start, end) = (range.start as usize, range.end as usize);
        assert_eq!(part.concat(), bytes[start..end]);
    }
    let stored = files.root().join(key(BlobKind::Chunk, &hash));
    assert_eq!(std::fs::read(stored).unwrap(), bytes);
    for _ in 0..2 {
        store.remove(BlobKind::Chunk, &hash).await.unwrap();
    }
    assert_eq!(store.list(BlobKind::Chunk).await.unwrap(), []);
}

#[tokio::test]
async fn a_missing_blob_is_another_error_than_a_broken_store() {
    let files = Files::new().await;
    let store = files.open();
    let hash = ContentHash::of(b"never written");
    let missing = store.get(BlobKind::Network, &hash).await;
    assert!(matches!(missing, Err(BlobError::Missing(_))), "{missing:?}");
    let missing = store.entry(BlobKind::Network, &hash).await;
    assert!(matches!(missing, Err(BlobError::Missing(_))), "{missing:?}");
    store.ping().await.unwrap();
    files.break_down();
    assert!(matches!(store.ping().await, Err(BlobError::Io { .. })));
    let write = store
        .put(BlobKind::Chunk, &hash, Bytes::from_static(b"x"))
        .await;
    assert!(matches!(write, Err(BlobError::Io { .. })), "{write:?}");
}

#[tokio::test]
async fn the_first_mark_stays_until_it_is_replaced_and_is_no_blob() {
    let files = Files::new().await;
    let store = files.open();
    assert_eq!(store.mark().await.unwrap(), None);
    let first = Bytes::from_static(b"first\n");
    let second = Bytes::from_static(b"second\n");
    for text in [&first, &second] {
        let marked = store.set_mark(text.clone(), Marking::First).await;
        marked.unwrap();
        assert_eq!(store.mark().await.unwrap(), Some(first.clone()));
    }
    for kind in BlobKind::ALL {
        assert_eq!(store.list(kind).await.unwrap(), []);
    }
    let marked = store.set_mark(second.clone(), Marking::Over).await;
    marked.unwrap();
    assert_eq!(store.mark().await.unwrap(), Some(second.clone()));
    assert_eq!(std::fs::read(files.root().join(MARK)).unwrap(), second);
    files.break_down();
    for marking in [Marking::First, Marking::Over] {
        let marked = store.set_mark(second.clone(), marking).await;
        assert!(matches!(marked, Err(BlobError::Io { .. })), "{marked:?}");
    }
}
