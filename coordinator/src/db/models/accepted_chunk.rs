//! A chunk that is new to the ledger, as games and sums take it in.

use jiff::Timestamp;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;

use crate::db::models::leases::JobRow;
use crate::db::models::matches::Match;
use crate::db::trust::ChunkStatus;
use crate::db::types::ChunkDraft;

/// A chunk that is new to the ledger.
pub(in crate::db) struct AcceptedChunk<'a> {
    pub(in crate::db) job: &'a JobRow,
    pub(in crate::db) chunk: &'a ChunkDraft,
    /// Its place in the ledger.
    pub(in crate::db) sequence: i64,
    /// The match, as it was before this chunk; none of other games.
    pub(in crate::db) played_in: Option<Match>,
    /// The candidate and its opponent; of other games the same network twice.
    pub(in crate::db) networks: (NetworkNumber, NetworkNumber),
    pub(in crate::db) kind: WorkKind,
    /// Whether it counts.
    pub(in crate::db) state: ChunkStatus,
    /// When it was accepted.
    pub(in crate::db) now: Timestamp,
}
