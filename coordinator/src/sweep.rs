//! The store against the ledger: blobs that nothing names, and names without a blob.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::ContentHash;

use crate::blobs::{BlobEntry, BlobError, BlobKind, BlobStore};
use crate::store::Store;

/// What was found of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The kind.
    pub kind: BlobKind,
    /// Blobs that the ledger needs.
    pub needed: usize,
    /// Blobs that nothing needs and that are older than the grace.
    pub orphans: Vec<BlobEntry>,
    /// Blobs that the ledger needs and that are not there.
    pub missing: Vec<ContentHash>,
}

/// Compares all blobs of a kind with the ledger. A blob is written before the ledger's row, so
/// what is younger than `grace` may be on its way in and counts as needed.
///
/// # Errors
///
/// If the ledger or the store fails.
pub async fn compare(
    store: &dyn Store,
    blobs: &dyn BlobStore,
    kind: BlobKind,
    grace: SignedDuration,
    now: Timestamp,
) -> anyhow::Result<Found> {
    // What is needed before and after the list was made: rows may come and go meanwhile.
    let before: HashSet<ContentHash> = store.blobs_needed(kind).await?.into_iter().collect();
    let listed = blobs.list(kind).await?;
    let after: HashSet<ContentHash> = store.blobs_needed(kind).await?.into_iter().collect();
    let there: HashSet<ContentHash> = listed.iter().map(|entry| entry.hash).collect();
    let mut missing: Vec<ContentHash> = before
        .intersection(&after)
        .filter(|hash| !there.contains(hash))
        .copied()
        .collect();
    missing.sort_unstable();
    let orphans = listed
        .into_iter()
        .filter(|entry| !before.contains(&entry.hash) && !after.contains(&entry.hash))
        .filter(|entry| is_old(entry, grace, now))
        .collect();
    Ok(Found {
        kind,
        needed: after.len(),
        orphans,
        missing,
    })
}

fn is_old(entry: &BlobEntry, grace: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(entry.modified) > grace
}

/// Removes what was found to be needed by nothing, but for what was written again since: a blob
/// that is uploaded anew is as young as its last upload.
///
/// # Errors
///
/// If the store fails.
pub async fn remove(
    blobs: &dyn BlobStore,
    found: &Found,
    grace: SignedDuration,
) -> anyhow::Result<()> {
    for orphan in &found.orphans {
        match blobs.entry(found.kind, &orphan.hash).await {
            Ok(entry) if is_old(&entry, grace, Timestamp::now()) => {
                blobs.remove(found.kind, &orphan.hash).await?;
            }
            Ok(_) | Err(BlobError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
