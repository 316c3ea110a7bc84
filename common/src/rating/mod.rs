//! The mathematics of strength: Elo, sequential tests, gates and the rating fit.
//!
//! Pure functions of counts; nothing here knows of networks, files or the clock. In order of
//! dependency:
//!
//! - [`error`]: what is refused, and why;
//! - [`anchor`]: the Elo that an operator gives an anchor;
//! - `roots`, `normal`, `multinomial`: bisection, the Gaussian, and the likelihood of counts under a
//!   constraint, on which all intervals and tests stand;
//! - [`pentanomial`]: results as they are counted, games and pairs of games;
//! - [`elo`]: scores to Elo and back, an Elo difference with its interval;
//! - [`sprt`]: the sequential test on pairs;
//! - [`gate`]: the rule that promotes or rejects a candidate;
//! - [`bradley_terry`]: ratings of many players from all their games;
//! - [`performance`](mod@performance): a rating from tasks of known ratings.

pub mod anchor;
pub mod bradley_terry;
pub mod elo;
pub mod error;
pub mod gate;
mod multinomial;
mod normal;
pub mod pentanomial;
pub mod performance;
mod roots;
pub mod sprt;
#[cfg(test)]
mod testing;

pub use anchor::AnchorElo;
pub use bradley_terry::{Anchor, Pairing, PlayerRating, RatingFit};
pub use elo::EloEstimate;
pub use error::RatingError;
pub use gate::{GateDecision, GateRule, GateVerdict};
pub use pentanomial::{GameScore, Pentanomial, Tally};
pub use performance::{Performance, Tasks, performance};
pub use sprt::{SprtParams, SprtStatus, Verdict};
