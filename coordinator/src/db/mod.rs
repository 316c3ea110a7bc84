//! The ledger, behind a trait: every operation is one transaction.
//!
//! ```text
//! api ──> dyn Database ──> sql::SqlDatabase ──> one writer (batched), many readers
//!              │
//!              └── decide, stagger: pure functions of rows (what to hand out, what a lease allows)
//! ```
//!
//! Facts (chunks, games, verdicts, acts of operators) are appended and never edited; sums (counters,
//! tallies, scores, credit) move in the same transaction and can be recomputed
//! ([`Database::check`]). Times are given by the caller, so that tests can choose them.

pub mod changes;
pub mod decide;
pub mod decisive;
pub mod error;
pub mod model;
pub mod rooms;
pub mod sql;
pub mod stagger;
pub mod trust;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::RunName;
use rookery_common::protocol::events::Event;
use rookery_common::protocol::networks::NetworkReceipt;

pub use error::{DbError, GameRefusal, Result};
pub use model::*;
pub use rooms::{Accounts, Games, Runs, Trust};
pub use sql::announcements::Announcements;
pub use trust::*;

/// The ledger: its rooms, and what concerns it as a whole.
#[async_trait]
pub trait Database: Accounts + Runs + Games + Trust + Send + Sync + 'static {
    /// Tells the other coordinators on this ledger what happened. Events are for those who watch:
    /// they may be lost when a coordinator or the database ends.
    async fn announce(&self, events: &[Event]) -> Result<()>;
    /// Begins to listen to the other coordinators; `None` where there can be none.
    async fn announcements(&self) -> Result<Option<Announcements>>;
    /// Recomputes a run's sums from its facts and tells where they differ; all but ratings, which are
    /// [fitted](crate::ratings::refit).
    async fn check(&self, run: &RunName) -> Result<Checked>;
    /// Writes a copy of the whole ledger to a new file, while it is in use.
    async fn back_up(&self, file: &Path) -> Result<()>;
    /// Which ledger this is.
    async fn ledger_id(&self) -> Result<LedgerId>;
    /// Notes in the operator log that the actor gave this ledger the store of blobs at `location`;
    /// `before` tells whose it was.
    async fn note_adoption(
        &self,
        location: &str,
        before: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Notes in the operator log that the actor removes from the store of blobs at `location` what
    /// nothing needs: `what`.
    async fn note_sweep(
        &self,
        location: &str,
        what: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<()>;
    /// Where this ledger goes on, if it was copied into another database.
    async fn moved(&self) -> Result<Option<Moved>>;
    /// Takes a ledger that was copied into another database back into service, and notes that in the
    /// operator log; where it had gone on, if it had.
    async fn reopen(&self, actor: &str, now: Timestamp) -> Result<Option<Moved>>;
    /// Whether the database answers, and whether it can be written to if it could not lately.
    async fn ping(&self) -> Result<()>;
    /// Finishes what is queued and closes.
    async fn close(&self);
}

/// A database that can be shared.
pub type SharedDatabase = Arc<dyn Database>;

/// A network that is in the ledger.
#[derive(Debug, Clone)]
pub struct NetworkSubmitted {
    /// The receipt.
    pub receipt: NetworkReceipt,
    /// What to tell those who listen.
    pub events: Vec<Event>,
}
