//! Heads that only training uses: what they learn helps the tower, and play does not evaluate them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::names;

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
    /// How the opponent will answer the move that is played, as a policy (KataGo's auxiliary policy
    /// target; Wu 2019, section 3.4).
    OpponentReply,
}

names! {
    /// The name in specifications, on command lines, and of the tensors.
    AuxiliaryHead {
        MovesLeft = "moves-left",
        ShortValue = "short-value",
        OpponentReply = "opponent-reply",
    }
}

impl AuxiliaryHead {
    /// The place among [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Numbers that a head like the value's gives for a position; none for one like the policy's.
    pub const fn outputs(self) -> Option<u32> {
        match self {
            Self::MovesLeft => Some(1),
            Self::ShortValue => Some(3),
            Self::OpponentReply => None,
        }
    }

    /// Planes of the 1x1 convolution of a head like the value's.
    pub const CHANNELS: u32 = 8;
    /// Units of the hidden layer of a head like the value's.
    pub const HIDDEN: u32 = 64;
    /// Planes of the 1x1 convolution of a head like a policy of planes.
    pub const POLICY_CHANNELS: u32 = 16;
}
