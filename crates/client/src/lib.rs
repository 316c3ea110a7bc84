//! What every program that asks a coordinator does alike.
//!
//! ```text
//! Server, Token --> Connection --request--> send, ask --answer, or ApiError--> RetryPolicy
//! ```
//!
//! A [`Connection`] makes requests; [`ask`] sends one and reads its answer, [`send`] only sends it. Nothing is tried
//! again here: [`ApiError`] says whether that can help, [`RetryPolicy`] after which pause, and each program has its
//! own way to be stopped meanwhile. Every answer is read under a size limit, as the coordinator may be anyone's.
//!
//! In dependency order: [`address`], [`token`], [`proxy`], [`error`], [`body`], `network`, `redirect`, [`answer`],
//! [`connection`], [`retry`].

pub mod address;
pub mod answer;
pub mod body;
pub mod connection;
pub mod error;
mod network;
pub mod proxy;
mod redirect;
pub mod retry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod token;

pub use address::{Server, candidates};
pub use answer::{ask, send};
pub use body::Body;
pub use connection::{Connection, SetupError};
pub use error::{ApiError, Result};
pub use retry::RetryPolicy;
pub use token::Token;
