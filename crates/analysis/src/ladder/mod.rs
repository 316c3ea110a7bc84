//! A player against opponents that everyone knows.
//!
//! [`anchor`] names the opponents, [`factory`] makes players, [`uci`] is one that is another program, [`games`] plays
//! a match of any two players, many games at a time on each thread. Results are counted as those of
//! [`arena`](crate::arena), whose matches are between two networks.

pub mod anchor;
pub mod factory;
pub mod games;
pub mod uci;

pub use anchor::Anchor;
pub use factory::PlayerFactory;
pub use games::{Seats, play};
