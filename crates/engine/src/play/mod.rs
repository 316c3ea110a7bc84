//! Playing games: many at once, each a driver with the rules of its kind.
//!
//! [`job`] says what to play. A [`GamePool`] holds running games and moves them in lockstep: gather
//! one leaf of each into a batch, evaluate, apply. A [`driver`] is one running game; [`rules`] is
//! where self-play, puzzles and matches differ; [`choose`] picks moves from visits; [`judges`] end
//! games early.

mod choose;
mod driver;
pub mod job;
mod judges;
mod pool;
mod rules;

pub(crate) use choose::sample;
pub use job::{AuditedGame, Job, JobError, MatchGame, Planned, Work};
pub use judges::{Judges, Referee};
pub use pool::{GameInHand, GamePool, Progress};

#[cfg(test)]
mod tests;
