//! The coordinator's API as the trainer uses it.
//!
//! [`client`] has one method for each call; every call is tried until it succeeds, is refused for
//! good, or the user stops. [`error`] is what remains.

pub mod client;
pub mod error;

pub use client::Client;
pub use error::CallError;
