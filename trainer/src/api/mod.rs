//! The coordinator's API as the trainer uses it.
//!
//! [`client`] has one method for each call; every call is tried until it succeeds, is refused for
//! good, or the user stops ([`retry`] says how long to wait in between). [`error`] is what remains.

mod answer;
pub mod client;
pub mod error;
pub mod retry;

pub use client::{Client, Token};
pub use error::ApiError;
