//! The agents before and beside AlphaZero, on the boards and ladders of everything else.
//!
//! - [`neural`]: small networks and their training, without a library;
//! - [`dqn`]: Q-learning of moves, in its published form and in one that can learn;
//! - [`value_search`]: a value network with best-first search;
//! - [`zero`]: DeltaZero and a thesis's AlphaZero, by Rookery's own search and training;
//! - [`minimax`], [`mcts`]: the classical contrast, which learns nothing;
//! - [`agent`]: their names on command lines, and the players that they are.

pub mod agent;
pub mod dqn;
pub mod mcts;
pub mod minimax;
pub mod neural;
pub mod value_search;
pub mod zero;

pub use agent::Agent;
