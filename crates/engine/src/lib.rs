//! Search and play against an [`Evaluator`].
//!
//! In dependency order:
//!
//! - [`evaluator`]: the interface to whatever evaluates positions, in batches;
//! - [`backend`]: the interface to whatever loads networks: a device, its library and its precision;
//! - [`parallel`]: one batch on several threads;
//! - [`cache`]: evaluations kept across games;
//! - [`dummy`]: evaluators without a network;
//! - `tree`: the arena of nodes and edges;
//! - [`search`]: the one search (PUCT and Gumbel, proofs, virtual loss), of a position or of a game
//!   that goes on;
//! - [`play`]: many games at once, self-play, puzzles and matches: a [`Job`] goes in, game
//!   records come out;
//! - [`players`]: whatever chooses moves: a random mover, alpha-beta, a searching network;
//! - [`branch`]: a search tree's most visited part, to be drawn.
//!
//! Nothing here does I/O. Time and threads are known to `backend`, which times, and to `parallel` alone.

pub mod backend;
pub mod branch;
pub mod cache;
pub mod dummy;
pub mod evaluator;
pub mod parallel;
pub mod play;
pub mod players;
pub mod search;
#[cfg(test)]
mod testing;
mod tree;

pub use backend::{
    Backend, BackendError, BackendInfo, DeviceChoice, LoadedNetwork, Precision, fastest,
};
pub use cache::EvaluationCache;
pub use evaluator::{Batch, Evaluations, Evaluator, EvaluatorError, Wdl};
pub use parallel::ParallelEvaluator;
pub use play::{
    AuditedGame, GameInHand, GamePool, Job, JobError, Judges, MatchGame, Planned, Progress,
    Referee, Work,
};
