//! The volunteer's program.
//!
//! `run` asks the coordinator for jobs, plays them, and uploads what was played; everything that
//! must survive a crash goes through the spool:
//!
//! ```text
//! coordinator --job--> run --games--> play --finished game--> spool --chunk--> upload --> coordinator
//!                       |               ^                       |
//!                       '--networks-----'                       '-- on disk; read again at start
//! ```
//!
//! Read it in this order:
//!
//! - [`cli`], [`config`], [`commands`]: what the program does when it is started;
//! - [`evaluate`]: a command about single positions, for which `rookery_analysis` does the rest;
//! - [`api`], [`retry`], [`shutdown`], [`random`]: talking to the coordinator, and ending well;
//! - [`trust`], [`networks`], [`network_argument`]: network files, fetched, checked and kept;
//! - [`spool`]: finished games and chunks on disk;
//! - [`device_pool`], [`machine`], [`beside`], [`tuning`], [`priority`], [`judges`], [`play`]: threads that play;
//! - [`run`]: all of it together;
//! - [`uci`]: the engine for chess programs;
//! - [`setup`], [`devices`], [`serve_device`], [`mod@bench`]: the remaining commands.

pub mod api;
pub mod bench;
pub mod beside;
pub mod cli;
pub mod commands;
pub mod config;
pub mod device_pool;
pub mod devices;
pub mod evaluate;
pub mod judges;
pub mod machine;
pub mod network_argument;
pub mod networks;
pub mod play;
pub mod priority;
pub mod random;
pub mod retry;
pub mod run;
pub mod serve_device;
pub mod setup;
pub mod shutdown;
pub mod spool;
pub mod trust;
pub mod tuning;
pub mod uci;
