//! A chunk that is new to the ledger, as games and sums take it in.

use jiff::Timestamp;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;

use super::leases::JobRow;
use crate::db::model::ChunkDraft;
use crate::db::trust::ChunkStatus;

/// A chunk that is new to the ledger.
pub(super) struct AcceptedChunk<'a> {
    pub(super) job: &'a JobRow,
    pub(super) chunk: &'a ChunkDraft,
    /// Its place in the ledger.
    pub(super) sequence: i64,
    /// The candidate and its opponent; of other games the same network twice.
    pub(super) networks: (NetworkNumber, NetworkNumber),
    pub(super) kind: WorkKind,
    /// Whether it counts.
    pub(super) state: ChunkStatus,
    /// When it was accepted.
    pub(super) now: Timestamp,
}
