//! Whose a store of networks and chunks is: the ledger's that it is marked with, and no other's.
//!
//! ```text
//! ledger: its identifier ──┬── the same: go on
//! store:  its mark ────────┴── another one: refuse, until an operator adopts the store
//!                              none: mark the store, unless it has networks of another ledger
//! ```
//!
//! A ledger that was copied into another database and goes on there has its store there, too.
//! With the store of another ledger, everything in it would seem to be needed by nothing. A copy of
//! a ledger has the identifier of its original, so that a backup fits the store.

use std::collections::HashSet;

use bytes::Bytes;
use rookery_common::ids::ContentHash;

use crate::blobs::{BlobError, BlobKind, BlobStore, MARK, Marking};
use crate::db::{Action, Actor, Database, DbError, LedgerId, Moved};

/// What a mark says before the ledger's identifier.
const WORDS: &str = "rookery ledger ";
/// What an operator can do.
const ADVICE: &str = "check --storage and --database (or --data-dir). To give the store to this \
                      ledger, make sure that no other ledger uses it, and run `storage adopt`";

/// Why a store is not used.
#[derive(Debug, thiserror::Error)]
pub enum StorageIdentityError {
    #[error(transparent)]
    Ledger(#[from] DbError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The ledger goes on in another database, and the store with it.
    #[error("{0}")]
    Moved(Moved),
    /// It is the store of another ledger.
    #[error(
        "RK-0206: the store belongs to another ledger: it is marked with the identifier {owner}, and this \
         ledger has {id}; {advice}", advice = ADVICE
    )]
    Other {
        owner: LedgerId,
        /// Who wanted it.
        id: LedgerId,
    },
    /// It is not marked, and has networks, but none that the ledger names.
    #[error(
        "RK-0206: the store belongs to another ledger, it seems: of the {networks} networks in it this \
         ledger names none; {advice}", advice = ADVICE
    )]
    Strange {
        /// How many there are.
        networks: usize,
    },
    /// Its mark is none.
    #[error(
        "RK-0206: the store belongs to another ledger, it seems: its mark, {mark:?} in it, cannot be read; {advice}",
        mark = MARK, advice = ADVICE
    )]
    Unreadable,
}

impl StorageIdentityError {
    /// Whether the store is known not to be the ledger's; else it could not be found out.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Moved(_) | Self::Other { .. } | Self::Strange { .. } | Self::Unreadable => true,
            Self::Ledger(_) | Self::Blob(_) => false,
        }
    }
}

/// Whether the store is marked as the ledger's; one without a mark is not. Nothing is changed.
/// It is an error if the store is another ledger's, or the ledger goes on elsewhere.
pub async fn check(db: &Database, blobs: &dyn BlobStore) -> Result<bool, StorageIdentityError> {
    if let Some(moved) = db.moved().await? {
        return Err(StorageIdentityError::Moved(moved));
    }
    let id = db.ledger_id().await?;
    match blobs.mark().await? {
        None => Ok(false),
        Some(mark) => match read(&mark) {
            Some(owner) if owner == id => Ok(true),
            Some(owner) => Err(StorageIdentityError::Other { owner, id }),
            None => Err(StorageIdentityError::Unreadable),
        },
    }
}

/// Makes sure that the store is the ledger's before anything is written to it or removed from it;
/// one without a mark is marked, if it may be the ledger's.
/// It is an error if the store is another ledger's, or the ledger goes on elsewhere.
pub async fn claim(db: &Database, blobs: &dyn BlobStore) -> Result<(), StorageIdentityError> {
    if check(db, blobs).await? {
        return Ok(());
    }
    refuse_strange(db, blobs).await?;
    let id = db.ledger_id().await?;
    blobs.set_mark(text(id), Marking::First).await?;
    // Another ledger may have been faster.
    if !check(db, blobs).await? {
        return Err(BlobError::Missing(MARK.to_owned()).into());
    }
    tracing::info!(ledger = %id, "The store had no mark; it is marked as this ledger's now.");
    Ok(())
}

/// Makes the store the ledger's, whatever ledger it had, and notes that in the operator log; whether that
/// changed anything. `location` is where the store is.
/// It is an error if the ledger goes on elsewhere.
pub async fn adopt(
    db: &Database,
    blobs: &dyn BlobStore,
    location: &str,
    by: Actor,
) -> Result<bool, StorageIdentityError> {
    let before = match check(db, blobs).await {
        Ok(true) => return Ok(false),
        Ok(false) => "it was not marked".to_owned(),
        Err(StorageIdentityError::Other { owner, .. }) => format!("it was that of ledger {owner}"),
        Err(StorageIdentityError::Unreadable) => "its mark could not be read".to_owned(),
        Err(error) => return Err(error),
    };
    db.note(Action::AdoptStore, location, &before, by).await?;
    let id = db.ledger_id().await?;
    blobs.set_mark(text(id), Marking::Over).await?;
    Ok(true)
}

/// Refuses a store with networks if the ledger names none of them. Without a network nobody has
/// played, so a store without networks has nothing to lose.
async fn refuse_strange(db: &Database, blobs: &dyn BlobStore) -> Result<(), StorageIdentityError> {
    let listed = blobs.list(BlobKind::Network).await?;
    let named = db.blobs_needed(BlobKind::Network).await?;
    let named: HashSet<ContentHash> = named.into_iter().collect();
    if listed.is_empty() || listed.iter().any(|network| named.contains(&network.hash)) {
        return Ok(());
    }
    let networks = listed.len();
    Err(StorageIdentityError::Strange { networks })
}

fn text(id: LedgerId) -> Bytes {
    format!("{WORDS}{id}\n").into()
}

fn read(mark: &[u8]) -> Option<LedgerId> {
    let text = std::str::from_utf8(mark).ok()?;
    text.trim_end().strip_prefix(WORDS)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_ledger_and_nothing_else_does() {
        let id: LedgerId = "0123456789abcdef0123456789abcdef".parse().unwrap();
        assert_eq!(
            text(id),
            "rookery ledger 0123456789abcdef0123456789abcdef\n"
        );
        assert_eq!(read(&text(id)), Some(id));
        for other in [&b""[..], b"rookery ledger \n", b"\xff", b"ping\n"] {
            assert_eq!(read(other), None);
        }
        let alone = id.to_string();
        assert_eq!(read(alone.as_bytes()), None);
    }
}
