//! The ledger: every operation is one transaction.
//!
//! ```text
//! api, pages, commands, jobs ──> Database ──> one writer (batched), many readers
//!                                   │
//!                                   └── scheduling, rollout: pure functions of rows (what to hand out,
//!                                       what a lease allows)
//! ```
//!
//! Facts (chunks, games, verdicts, acts of operators) are appended and never edited; sums (counters,
//! tallies, scores, credit) move in the same transaction and can be recomputed
//! ([`Database::check`]). Times are given by the caller, so that tests can choose them.

pub mod changes;
pub mod error;
pub mod gate_decision;
pub mod model;
pub mod rollout;
pub mod scheduling;
pub mod sql;
pub mod trust;

use std::sync::Arc;

use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkReceipt;

pub use error::{DbError, GameRefusal, Result};
pub use model::*;
pub use sql::Database;
pub use sql::announcements::ReplicaEvents;
pub use trust::*;

/// A database that can be shared.
pub type SharedDatabase = Arc<Database>;

/// A network that is in the ledger.
#[derive(Debug, Clone)]
pub struct NetworkSubmitted {
    /// The receipt.
    pub receipt: NetworkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
}
