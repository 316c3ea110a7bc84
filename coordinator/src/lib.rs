//! The Rookery server.
//!
//! Requests come in through [`api`], which checks who asks and what they sent, and turns them into
//! operations of the [`db`] (one transaction each) and of [`blobs`] (the files). What happened
//! is told to everyone who listens by [`events`]. Read it in this order:
//!
//! - [`cli`], [`config`], [`commands`]: what the program does when it is started;
//! - [`clock`], [`random`], [`tokens`], [`telemetry`]: time, chance, secrets and log lines, so that tests can
//!   choose them;
//! - [`db`]: the ledger, every operation is one transaction; its decisions are pure functions of what it read;
//! - `files`: names of files that are durable;
//! - [`blobs`]: networks and chunks as files, behind a trait;
//! - [`storage_identity`]: which ledger the files belong to;
//! - [`archives`], [`sweep`]: old chunks packed together; the files against the ledger;
//! - [`retention`]: rows of the ledger that nothing refers to any more;
//! - [`dataset`]: a run's positions for everyone;
//! - [`signing`], [`versions`]: keys of runs, and which workers a run serves;
//! - [`panics`]: what a bug ends, and what goes on;
//! - [`concurrency`]: work that keeps a core or the database busy;
//! - [`fleet`]: how many workers there are, and when those ask again for which there is nothing;
//! - [`notices`], [`worker_names`]: notices to contributors, and which of their machines share a name;
//! - [`live_boards`]: games that people watch while they are played;
//! - [`intake`]: a chunk's way from bytes to the ledger;
//! - [`ratings`]: the fit of all match games;
//! - [`webhook`]: promotions and verdicts told to an address of the operator's;
//! - [`trust`]: audits, and what they mean for contributors;
//! - [`limits`], [`server`]: how much each client may have, connections and TLS;
//! - [`app`], [`api`]: HTTP;
//! - [`pages`]: the web pages.

pub mod api;
pub mod app;
pub mod archives;
pub mod blobs;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod concurrency;
pub mod config;
pub mod dataset;
pub mod db;
pub mod events;
pub mod fleet;
pub mod intake;
pub mod limits;
pub mod live_boards;
pub mod notices;
pub mod opening_backfill;
pub mod openings;
pub mod pages;
pub mod panics;
pub mod random;
pub mod ratings;
pub mod relay;
pub mod retention;
pub mod server;
pub mod signing;
pub mod storage_identity;
pub mod sweep;
pub mod telemetry;
pub mod tokens;
pub mod trust;
pub mod versions;
pub mod webhook;
pub mod worker_names;
