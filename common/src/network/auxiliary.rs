//! Heads that only training uses: what they learn helps the tower, and nobody asks them in play.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A head beside policy and value. Evaluation does not compute it, other programs' formats do not hold
/// it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AuxiliaryHead {
    /// How many plies the game still lasts (Lc0's moves left head learns the same).
    MovesLeft,
    /// What the search expects over the next few plies, as win, draw and loss: the outcome of the near
    /// future, which says more of a move than that of the game (KataGo's short-term value; Wu 2020).
    ShortValue,
}

impl AuxiliaryHead {
    /// All heads.
    pub const ALL: [Self; 2] = [Self::MovesLeft, Self::ShortValue];

    /// The name in specifications, on command lines, and of the tensors.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MovesLeft => "moves-left",
            Self::ShortValue => "short-value",
        }
    }

    /// The head of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|head| head.name() == name)
    }

    /// Numbers that it gives for a position.
    pub const fn outputs(self) -> u32 {
        match self {
            Self::MovesLeft => 1,
            Self::ShortValue => 3,
        }
    }

    /// Planes of its 1x1 convolution.
    pub const CHANNELS: u32 = 8;
    /// Units of its hidden layer.
    pub const HIDDEN: u32 = 64;
}
