//! Looking at networks, for every program that does so.
//!
//! - [`position_line`], [`lines`]: positions as text;
//! - [`encode`], [`evaluate`]: what a network is shown, and what it thinks; [`drawing`] makes pictures of both;
//! - [`device`]: where players compute, as the program opened it;
//! - [`arena`], [`ladder`]: matches between two networks, and between any two players;
//! - [`mod@matches`]: the commands that play them;
//! - [`probe`]: early signs of what a network has learnt;
//! - [`referee`]: an engine that ends decided games.
//!
//! Programs bring the backend: nothing here names a device's library.

pub mod arena;
pub mod device;
pub mod drawing;
pub mod encode;
pub mod evaluate;
pub mod ladder;
pub mod lines;
pub mod matches;
pub mod position_line;
pub mod probe;
pub mod referee;

pub use device::Device;
pub use referee::EngineReferee;

#[cfg(test)]
mod testing;
