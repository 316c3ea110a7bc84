//! The tests of `suite` once more, on PostgreSQL and S3, and of what only these do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg(unix)]

#[path = "suite/alerts.rs"]
mod alerts;
#[path = "suite/api/mod.rs"]
mod api;
#[path = "suite/archives.rs"]
mod archives;
#[path = "suite/blobs.rs"]
mod blobs;
#[path = "suite/db/mod.rs"]
mod db;
#[path = "suite/opening_books.rs"]
mod opening_books;
#[path = "suite/outages.rs"]
mod outages;
#[path = "suite/postgres.rs"]
mod postgres;
#[path = "suite/replicas.rs"]
mod replicas;
#[path = "suite/storage_identity.rs"]
mod storage_identity;
#[path = "suite/support/mod.rs"]
mod support;
#[path = "suite/upkeep.rs"]
mod upkeep;
