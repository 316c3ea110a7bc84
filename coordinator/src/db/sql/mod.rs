//! Connections to SQLite and PostgreSQL: the one writer, the readers, and what statements are made of.
//!
//! ```text
//!                 collector (many requests, one operation) ─┐
//! dialect ──> connect ──> writer: one connection, groups of operations
//!                    └──> pool of readers
//! ```

pub mod announcements;
pub(super) mod collector;
pub(super) mod connect;
pub(super) mod deadlines;
pub(super) mod dialect;
pub(super) mod ledger;
pub(super) mod load;
pub(super) mod rows;
pub(super) mod savepoints;
pub(super) mod statement;

pub(super) mod writer;

pub use connect::{Found, ledger_file};
pub use deadlines::Deadlines;
pub use dialect::{is_temporary, shown};
pub use ledger::Ledger;
