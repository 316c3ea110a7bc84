//! The store against the ledger: blobs that nothing names, and names without a blob.
//!
//! A ledger that was restored from a backup may name chunks that have gone into an archive since;
//! that archive it does not know. Their bytes are found there, and put back.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};
use rookery_common::ids::ContentHash;
use rookery_common::text::quantity;

use crate::archives::{self, ArchiveError};
use crate::blobs::{BlobEntry, BlobError, BlobKind, BlobStore};
use crate::db::{Action, Actor, Database};

/// What was found of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub kind: BlobKind,
    pub needed: usize,
    /// Blobs that nothing needs, however young.
    pub unnamed: Vec<BlobEntry>,
    /// Those of them that are older than the grace.
    pub orphans: Vec<BlobEntry>,
    /// Blobs that the ledger needs and that are not there.
    pub missing: Vec<ContentHash>,
}

/// Compares all blobs of a kind with the ledger. A blob is written before the ledger's row, so
/// what is younger than `grace` may be on its way in and counts as needed.
pub async fn compare(
    db: &Database,
    blobs: &dyn BlobStore,
    kind: BlobKind,
    grace: SignedDuration,
    now: Timestamp,
) -> anyhow::Result<Found> {
    // What is needed before and after the list was made: rows may come and go meanwhile.
    let before: HashSet<ContentHash> = db.blobs_needed(kind).await?.into_iter().collect();
    let listed = blobs.list(kind).await?;
    let after: HashSet<ContentHash> = db.blobs_needed(kind).await?.into_iter().collect();
    let there: HashSet<ContentHash> = listed.iter().map(|entry| entry.hash).collect();
    let mut missing: Vec<ContentHash> = before
        .intersection(&after)
        .filter(|hash| !there.contains(hash))
        .copied()
        .collect();
    missing.sort_unstable();
    let unnamed: Vec<BlobEntry> = listed
        .into_iter()
        .filter(|entry| !before.contains(&entry.hash) && !after.contains(&entry.hash))
        .collect();
    let old = |entry: &&BlobEntry| is_old(entry, grace, now);
    let orphans = unnamed.iter().filter(old).copied().collect();
    Ok(Found {
        kind,
        needed: after.len(),
        unnamed,
        orphans,
        missing,
    })
}

/// Compares all blobs of all kinds with the ledger, as [`compare`] does.
pub async fn compare_all(
    db: &Database,
    blobs: &dyn BlobStore,
    grace: SignedDuration,
    now: Timestamp,
) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    for kind in BlobKind::ALL {
        all.push(compare(db, blobs, kind, grace, now).await?);
    }
    Ok(all)
}

/// Removes what was found to be needed by nothing, as [`remove`] does, and notes that in the operator log before;
/// nothing while a blob is missing, as what seems to be needed by nothing may hold its only copy. Tells whether it
/// removed. `location` is where the store is.
pub async fn remove_all(
    db: &Database,
    blobs: &dyn BlobStore,
    all: &[Found],
    grace: SignedDuration,
    location: &str,
    by: Actor,
) -> anyhow::Result<bool> {
    if missing(all) > 0 {
        return Ok(false);
    }
    let some = all.iter().filter(|found| !found.orphans.is_empty());
    let what: Vec<String> = some.map(Found::told).collect();
    if !what.is_empty() {
        let what = what.join(", ");
        db.note(Action::SweepStore, location, &what, by).await?;
    }
    for found in all {
        remove(blobs, found, grace).await?;
    }
    Ok(true)
}

impl Found {
    pub fn bytes(&self) -> u64 {
        self.orphans.iter().map(|orphan| orphan.bytes).sum()
    }

    /// The orphans as the operator log writes them.
    fn told(&self) -> String {
        let (orphans, kind) = (self.orphans.len(), self.kind.folder());
        format!("{orphans} of {kind} ({})", quantity(self.bytes(), "byte"))
    }
}

pub fn missing(all: &[Found]) -> usize {
    all.iter().map(|found| found.missing.len()).sum()
}

fn is_old(entry: &BlobEntry, grace: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(entry.modified) > grace
}

/// Removes what was found to be needed by nothing, but for what was written again since: a blob
/// that is uploaded anew is as young as its last upload.
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

/// An archive that the ledger does not name, and missing chunks that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub archive: ContentHash,
    pub chunks: Vec<ContentHash>,
}

/// What archives that the ledger does not name have of the chunks that are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    /// Archives with some of them.
    pub holders: Vec<Holder>,
    /// Archives that cannot be read, and why.
    pub unreadable: Vec<(ContentHash, String)>,
}

/// Looks for the chunks that are missing in the archives that the ledger does not name. Nothing is
/// read if none is missing.
pub async fn look_into_archives(blobs: &dyn BlobStore, all: &[Found]) -> Salvage {
    let of = |kind: BlobKind| all.iter().filter(move |found| found.kind == kind);
    let missing: HashSet<ContentHash> = of(BlobKind::Chunk)
        .flat_map(|found| found.missing.iter().copied())
        .collect();
    let mut salvage = Salvage::default();
    if missing.is_empty() {
        return salvage;
    }
    for archive in of(BlobKind::Archive).flat_map(|found| &found.unnamed) {
        let mut chunks = match archives::contents(blobs, archive).await {
            Ok(chunks) => chunks,
            Err(error) => {
                salvage.unreadable.push((archive.hash, error.to_string()));
                continue;
            }
        };
        chunks.retain(|hash| missing.contains(hash));
        if !chunks.is_empty() {
            let archive = archive.hash;
            salvage.holders.push(Holder { archive, chunks });
        }
    }
    salvage
}

/// Puts chunks that were found in archives back into the store, each under its own hash, and tells
/// how many. One whose bytes have another hash stays missing.
/// If it fails, what was put back until then stays.
pub async fn put_back(blobs: &dyn BlobStore, salvage: &Salvage) -> Result<usize, ArchiveError> {
    let mut done: HashSet<ContentHash> = HashSet::new();
    for holder in &salvage.holders {
        let mut wanted: HashSet<ContentHash> = holder.chunks.iter().copied().collect();
        wanted.retain(|hash| !done.contains(hash));
        if wanted.is_empty() {
            continue;
        }
        let archive = blobs.get(BlobKind::Archive, &holder.archive).await?;
        for (hash, bytes) in archives::unpack(&archive, &wanted)? {
            blobs.put(BlobKind::Chunk, &hash, bytes).await?;
            done.insert(hash);
        }
    }
    Ok(done.len())
}
