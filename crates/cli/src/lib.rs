//! What programs for people at a terminal have in common, on top of
//! [`rookery_common::command_line`]:
//!
//! - [`flags`]: values that several commands read alike;
//! - [`screen`], [`shutdown`]: progress, and ending at a safe point;
//! - [`pgn`], [`chunk_files`], [`network_file`]: the files that command lines name;
//! - [`testing`]: command lines in tests.

pub mod chunk_files;
pub mod flags;
pub mod network_file;
pub mod pgn;
pub mod screen;
pub mod shutdown;
pub mod testing;

pub use screen::{Screen, Task};
pub use shutdown::Shutdown;
