//! The Rookery server.
//!
//! Requests come in through [`api`], which checks who asks and what they sent, and turns them into
//! operations of the [`db`] (one transaction each) and of [`blobs`] (the files). What happened
//! is told to everyone who listens by [`events`]. `docs/architecture.md` says what each module is for, and which
//! way the arrows point.

#![expect(
    missing_docs,
    reason = "a program; what it exports is for its tests, and names say most of it"
)]

pub mod alerts;
pub mod api;
pub mod app;
pub mod archives;
pub mod background;
pub mod blobs;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod concurrency;
pub mod config;
pub mod dataset;
pub mod db;
pub mod disk_space;
pub mod events;
pub mod fleet;
pub mod intake;
pub mod limits;
pub mod live_boards;
pub mod notices;
pub mod openings;
pub mod pages;
pub mod panics;
pub mod random;
pub mod ratings;
pub mod server;
pub mod signing;
pub mod storage_identity;
pub mod sweep;
pub mod telemetry;
pub mod tokens;
pub mod trust;
pub mod versions;
pub mod worker_names;
