//! The ledger: every operation is one transaction.
//!
//! ```text
//! database ──> use_cases ──> models ──> sql
//! what is       several       tables     connections, statements
//! batched       tables
//!                  └── scheduling, gate_decision, rollout: pure functions of rows
//! ```
//!
//! What can be asked of the ledger stands where it is done: a method of [`Ledger`] in the model or in the use case.
//!
//! Facts (chunks, games, verdicts, acts of operators) are appended and never edited; sums (counters,
//! tallies, scores, credit) move in the same transaction and can be recomputed
//! ([`Ledger::check`]). Times are given by the caller, so that tests can choose them.

pub mod changes;
mod database;
pub mod error;
pub mod gate_decision;
mod models;
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
pub(crate) use models::operator_log::Action;
pub use sql::Ledger;
pub use sql::announcements::ReplicaEvents;
pub use types::*;
pub use use_cases::copy;

pub type SharedDatabase = Arc<Database>;

#[derive(Debug, Clone)]
pub struct NetworkSubmitted {
    pub receipt: NetworkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
}
