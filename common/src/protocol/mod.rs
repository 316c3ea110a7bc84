//! The JSON types of the coordinator's API, `/api/v1`.
//!
//! [`jobs`] and [`audits`] are what workers and the coordinator say to each other, [`networks`] and
//! [`matches`](mod@matches) what is trained and tested, [`people`] who does it and [`user_name`] under what names, [`trust`] how far they are
//! believed, [`runs`] what it is all for, [`server`] the coordinator itself, [`events`] what pages are told live, [`problem`] how requests fail.
//! `docs/protocol.md` says what clients do with each answer. Times are RFC 3339 texts in UTC; unknown fields are
//! ignored.

pub mod audits;
pub mod boards;
pub mod events;
pub mod jobs;
pub mod matches;
pub mod networks;
pub mod people;
pub mod problem;
pub mod runs;
pub mod server;
pub mod trust;
pub mod user_name;

use std::time::Duration;

pub use problem::{Problem, ProblemCode};

/// The version of the protocol that this build speaks. Since 2 workers draw moves from the visits that they
/// record, end games by recorded values, and say in audits which moves they would have played.
pub const PROTOCOL_VERSION: u32 = 2;

/// Oldest protocol version that a coordinator of this build serves.
pub const OLDEST_PROTOCOL_VERSION: u32 = 2;

/// Where the API begins.
pub const API_PREFIX: &str = "/api/v1";

/// Client timeout of an upload of this size, the coordinator's check included: two
/// minutes, and a second more for every 16 kB.
pub const fn upload_time(bytes: usize) -> Duration {
    Duration::from_secs(120 + bytes as u64 / 16_000)
}
