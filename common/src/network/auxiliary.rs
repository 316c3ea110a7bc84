//! Heads that only training uses: what they learn helps the tower, and play does not evaluate them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::names;

names! {
    /// A head beside policy and value. Evaluation does not compute it, other programs' formats do not hold
    /// it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum AuxiliaryHead {
        /// How many plies the game still lasts (Lc0's moves left head learns the same).
        MovesLeft = "moves-left",
        /// What the search expects over the next few plies, as win, draw and loss: the outcome of the near
        /// future, which says more of a move than that of the game (KataGo's short-term value; Wu 2020).
        ShortValue = "short-value",
        /// How the opponent will answer the move that is played, as a policy (KataGo's auxiliary policy
        /// target; Wu 2019, section 3.4).
        OpponentReply = "opponent-reply",
        /// What stands on each square [`FUTURE_PLIES`](Self::FUTURE_PLIES) later, or at the end if that is nearer
        /// (KataGo's future positions).
        FutureBoard = "future-board",
        /// What stands on each square at the game's end (KataGo's ownership; Wu 2019, section 4.1).
        FinalBoard = "final-board",
        /// The policy target with a temperature of 4 (KataGo's auxiliary soft policy target).
        SoftPolicy = "soft-policy",
    }
}

impl AuxiliaryHead {
    /// The place among [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether its targets are what stands on the squares later.
    pub const fn learns_boards(self) -> bool {
        matches!(self, Self::FutureBoard | Self::FinalBoard)
    }

    /// Plies from a position to the board that [`FutureBoard`](Self::FutureBoard) learns.
    pub const FUTURE_PLIES: u32 = 8;
    /// Planes of the 1x1 convolution of a head like the value's.
    pub const CHANNELS: u32 = 8;
    /// Units of the hidden layer of a head like the value's.
    pub const HIDDEN: u32 = 64;
    /// Planes of the 1x1 convolution of a head like a policy of planes.
    pub const POLICY_CHANNELS: u32 = 16;
    /// Planes of the 1x1 convolution of a head that says something of each square.
    pub const SQUARE_CHANNELS: u32 = 32;
}
