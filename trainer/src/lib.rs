//! The operator's program: it turns the games of a run into new networks.
//!
//! ```text
//! coordinator --api--> data (ledger, chunks) --> buffer (window) --pipeline--> training_loop --> learner
//!      ^                                                                                     |
//!      +------------- session (one candidate after the other, checkpoints) <-----------------+
//! ```
//!
//! Read it in this order:
//!
//! - [`folder_lock`]: what everything else stands on;
//! - [`api`]: the coordinator;
//! - [`buffer`], [`data`]: games in memory and on disk;
//! - [`pipeline`]: batches ahead of the device;
//! - [`presets`]: networks by name;
//! - [`learner`], [`training_loop`], [`checkpoint`], [`metrics`]: training steps, and what is kept of them;
//! - [`exports`]: networks in the formats of other programs;
//! - [`session`]: the circle of a run;
//! - [`warm`]: games of people and engines to begin with;
//! - [`mod@bench`]: how fast it all is;
//! - [`config`], [`cli`], [`commands`]: what the program does when it is started.

pub mod api;
pub mod bench;
pub mod buffer;
pub mod checkpoint;
pub mod cli;
pub mod commands;
pub mod config;
pub mod data;
pub mod exports;
pub mod folder_lock;
pub mod learner;
pub mod metrics;
pub mod pipeline;
pub mod presets;
pub mod session;
pub mod training_loop;
pub mod warm;

#[cfg(test)]
mod testing;
