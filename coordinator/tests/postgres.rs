//! The tests of `suite` once more, on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg(unix)]

#[path = "suite/api/mod.rs"]
mod api;
#[path = "suite/store.rs"]
mod store;
#[path = "suite/support/mod.rs"]
mod support;
