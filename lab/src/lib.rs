//! The program for people who study networks.
//!
//! - [`analyst`]: an engine that values positions; [`annotator`] comments on games with it, [`policy_eval`] judges policies;
//! - [`lineage`]: the agents before and beside AlphaZero;
//! - [`cli`], [`commands`]: what the program does when it is started.
//!
//! Matches, ladders, pictures and evaluations are those of [`rookery_analysis`].

pub mod analyst;
pub mod annotator;
pub mod cli;
pub mod commands;
pub mod lineage;
pub mod policy_eval;
