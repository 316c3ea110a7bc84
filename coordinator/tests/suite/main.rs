//! The coordinator's tests: the store's suite, and the API through the router; on SQLite here, on
//! PostgreSQL in `postgres.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod api;
mod server;
mod store;
mod support;
