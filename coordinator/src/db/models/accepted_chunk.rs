//! A chunk that is new to the ledger, as games and sums take it in.

use jiff::Timestamp;
use rookery_common::ids::NetworkNumber;
use rookery_common::protocol::jobs::WorkKind;

use crate::db::models::leases::JobRow;
use crate::db::models::matches::Match;
use crate::db::types::ChunkDraft;
use crate::db::types::ChunkStatus;

/// A chunk that is new to the ledger.
pub(crate) struct AcceptedChunk<'a> {
    pub(crate) job: &'a JobRow,
    pub(crate) chunk: &'a ChunkDraft,
    pub(crate) sequence: i64,
    /// The match, as it was before this chunk; none of other games.
    pub(crate) played_in: Option<Match>,
    /// The candidate and its opponent; of other games the same network twice.
    pub(crate) networks: (NetworkNumber, NetworkNumber),
    pub(crate) kind: WorkKind,
    /// Whether it counts.
    pub(crate) state: ChunkStatus,
    pub(crate) now: Timestamp,
}
