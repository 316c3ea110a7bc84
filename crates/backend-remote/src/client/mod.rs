//! A device of another machine as a backend.

mod backend;
mod device;
mod evaluator;
mod link;

pub use backend::{PATIENCE, RemoteBackend};
pub use device::RemoteDevice;
