//! How games are played, as far as it follows from seed, parameters and recorded searches.
//!
//! ```text
//! seed, parameters ──> GameRules ──┬─> engine: plays by them
//!                                  └─> verification: finds again what had to be played
//! ```
//!
//! [`rules`] says what differs between self-play, puzzles and matches and draws what a ply is given, [`choice`]
//! draws the move from the recorded visits, [`halving`] says how a Gumbel root spends its visits,
//! [`ending`] when the job's rules end a game. Every number that they compute is the same on all machines:
//! what is not exact by IEEE 754 comes from the pure-Rust `libm`.

pub mod choice;
pub mod ending;
pub mod halving;
pub mod rules;

pub use choice::{Chosen, TARGET_UNITS, quantize, visit_weights};
pub use rules::{Exploration, GameRules, MoveChoice, Purpose, Reuse};
