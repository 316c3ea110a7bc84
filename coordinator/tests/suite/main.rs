//! The coordinator's tests: the database's suite, and the API through the router; on SQLite and
//! in a folder here, on PostgreSQL and S3 in `cloud.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alerts;
mod api;
mod archives;
mod blobs;
mod db;
mod fleets;
mod opening_books;
mod s3;
mod server;
mod storage_identity;
mod support;
mod upkeep;
