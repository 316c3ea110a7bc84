//! The operator's program: it turns the games of a run into new networks.
//!
//! ```text
//! coordinator --api--> data (ledger, chunks) --> buffer (window) --pipeline--> lessons --> learner
//!      ^                                                                                     |
//!      +------------- session (one candidate after the other, checkpoints) <-----------------+
//! ```
//!
//! In order of dependency: [`files`], [`shutdown`], [`screen`]; [`api`], the coordinator;
//! [`exports`], networks for other programs; [`buffer`], games in memory; [`data`], games on disk; [`pipeline`], batches ahead of the device;
//! [`presets`], networks by name; [`learner`] and [`lessons`], training steps; [`checkpoint`] and [`metrics`]; [`session`], the
//! circle of a run; [`arena`], matches between two network files; [`ladder`], matches against known opponents; [`analyst`], an engine that values positions, and [`judge`], what it says of searches; [`warm`], games of others to begin with; [`mod@bench`], how fast it all is; [`config`], [`cli`] and [`commands`].

pub mod analyst;
pub mod api;
pub mod arena;
pub mod bench;
pub mod buffer;
pub mod checkpoint;
pub mod cli;
pub mod commands;
pub mod config;
pub mod data;
pub mod exports;
pub mod files;
pub mod judge;
pub mod ladder;
pub mod learner;
pub mod lessons;
pub mod metrics;
pub mod pipeline;
pub mod presets;
pub mod screen;
pub mod session;
pub mod shutdown;
pub mod warm;

#[cfg(test)]
mod testing;
