//! A device of another machine as a backend.

mod backend;
mod evaluator;
mod link;

pub use backend::{PATIENCE, RemoteBackend};
