//! The ledger: every operation is one transaction.
//!
//! ```text
//! operations ──> database ──> use_cases ──> models ──> sql
//! what is asked   transactions  several       tables     connections, statements
//!                               tables
//!                                   └── scheduling, gate_decision, rollout: pure functions of rows
//! ```
//!
//! Facts (chunks, games, verdicts, acts of operators) are appended and never edited; sums (counters,
//! tallies, scores, credit) move in the same transaction and can be recomputed
//! ([`Database::check`]). Times are given by the caller, so that tests can choose them.

pub mod changes;
mod database;
pub mod error;
pub mod gate_decision;
mod models;
mod operations;
mod principals;
pub mod rollout;
pub mod scheduling;
pub mod sql;
pub mod types;
mod use_cases;

use std::sync::Arc;

use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkReceipt;

pub use database::Database;
pub use error::{DbError, GameRefusal, Result};
pub use sql::Ledger;
pub use sql::announcements::ReplicaEvents;
pub use types::*;
pub use use_cases::copy;

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
