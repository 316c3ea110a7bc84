//! Tallies.
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
/// Pair scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Pentanomial {
    /// Counts of pair scores 0, 1/2, 1, 3/2, 2.
    pub counts: [u64; 5],
}
/// Wins, draws, losses and pairs of the candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    /// Wins.
    pub wins: u64,
    /// Draws.
    pub draws: u64,
    /// Losses.
    pub losses: u64,
    /// Pairs.
    pub pairs: Pentanomial,
}
