//! What a step learns from: positions with their targets.

use rookery_common::encoding::PolicyEncoding;
use rookery_engine::{Batch, Wdl};

/// Positions with what the network ought to say of them.
#[derive(Debug, Clone)]
pub struct TrainBatch {
    /// The positions with all their legal moves.
    pub positions: Batch,
    /// A share for each legal move, aligned with `positions.moves()`, from 0 to 1. A position
    /// whose shares are all 0 has no policy target and counts for the value only.
    pub policy: Vec<f32>,
    /// A value for each position, for its mover.
    pub values: Vec<Wdl>,
    /// What auxiliary heads learn of each position; may be empty for a network without any.
    pub ahead: Vec<Ahead>,
    /// How the opponent answered in each position; may be empty for a network that does not learn it.
    pub replies: Replies,
}

impl TrainBatch {
    /// Removes all positions, keeping the memory.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.policy.clear();
        self.values.clear();
        self.ahead.clear();
        self.replies.clear();
    }

    /// Mirrors the position at `index` with all its moves: files a to h become h to a. For positions that
    /// [`can_mirror`](rookery_common::encoding::can_mirror) allows.
    pub fn mirror(&mut self, index: usize) {
        self.positions.mirror(index);
        if !self.replies.is_empty() {
            self.replies.mirror(index, self.positions.policy());
        }
    }
}

/// What comes after a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ahead {
    /// Plies until the game's end, 0 or more; none of a game that was cut off, which teaches nothing of it.
    pub plies: Option<f32>,
    /// What its mover can expect of the next few plies.
    pub short_value: Wdl,
}

/// For each position the opponent's legal moves after the move that was played, and the share that the
/// opponent's own search gave to each. A position without any has no target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replies {
    moves: Vec<u16>,
    shares: Vec<f32>,
    /// Where each position's moves end.
    ends: Vec<u32>,
}

impl Replies {
    /// Adds a position: policy indices as the opponent sees the board, and a share from 0 to 1 for each.
    pub fn push(&mut self, moves: &[u16], shares: &[f32]) {
        let count = moves.len().min(shares.len());
        self.moves.extend_from_slice(&moves[..count]);
        self.shares.extend_from_slice(&shares[..count]);
        self.ends.push(self.moves.len() as u32);
    }

    /// Number of positions.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no position.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Moves and shares of the position at `index`.
    pub fn of(&self, index: usize) -> (&[u16], &[f32]) {
        let range = self.range(index);
        (&self.moves[range.clone()], &self.shares[range])
    }

    /// Shares of all positions.
    pub fn shares(&self) -> &[f32] {
        &self.shares
    }

    /// Removes all positions, keeping the memory.
    pub fn clear(&mut self) {
        self.moves.clear();
        self.shares.clear();
        self.ends.clear();
    }

    fn mirror(&mut self, index: usize, policy: PolicyEncoding) {
        let range = self.range(index);
        for m in &mut self.moves[range] {
            *m = policy.mirrored(*m);
        }
    }

    fn range(&self, index: usize) -> std::ops::Range<usize> {
        let before = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        before as usize..self.ends[index] as usize
    }
}
