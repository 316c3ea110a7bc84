//! What a step learns from: positions with their targets.

use rookery_common::encoding::{PIECE_CLASSES, PolicyEncoding};
use rookery_engine::{Batch, Wdl};

use crate::error::{Result, TrainError};

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
    pub ahead: Vec<AuxiliaryTargets>,
    /// How the opponent answered in each position; may be empty for a network that does not learn it.
    pub replies: OpponentReplyTargets,
    /// What stands on the board later, none where it is unknown; may be empty for a network that does not learn it.
    pub boards: Vec<Option<BoardsAhead>>,
}

impl TrainBatch {
    /// Removes all positions, keeping the memory.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.policy.clear();
        self.values.clear();
        self.ahead.clear();
        self.replies.clear();
        self.boards.clear();
    }

    /// That its parts fit and every target is in its range.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |text: String| Err(TrainError::Batch(text));
        let (positions, moves) = (self.positions.len(), self.positions.moves().len());
        if positions == 0 {
            return refuse("it holds no position".into());
        }
        if self.policy.len() != moves || self.values.len() != positions {
            let (policy, values) = (self.policy.len(), self.values.len());
            return refuse(format!(
                "{policy} policy targets for {moves} moves, {values} value targets for {positions} \
             positions"
            ));
        }
        if let Some(row) = (0..positions).find(|row| self.positions.moves_of(*row).is_empty()) {
            return refuse(format!("position {row} has no legal move"));
        }
        if !self.ahead.is_empty() && self.ahead.len() != positions {
            let ahead = self.ahead.len();
            return refuse(format!(
                "{ahead} targets of what is ahead for {positions} positions"
            ));
        }
        let replies = self.replies.len();
        if replies != 0 && replies != positions {
            return refuse(format!("{replies} replies for {positions} positions"));
        }
        let boards = self.boards.len();
        if boards != 0 && boards != positions {
            return refuse(format!("{boards} boards ahead for {positions} positions"));
        }
        let usable_board = |boards: &BoardsAhead| {
            let mut classes = boards.future.iter().chain(&boards.last);
            classes.all(|class| *class < PIECE_CLASSES)
        };
        let usable = |number: f32| (0.0..=1.0).contains(&number);
        let usable_value = |v: &Wdl| [v.win, v.draw, v.loss].into_iter().all(usable);
        let usable_plies = |plies: f32| plies.is_finite() && plies >= 0.0;
        let usable_ahead = |ahead: &AuxiliaryTargets| {
            usable_value(&ahead.short_value) && ahead.plies.is_none_or(usable_plies)
        };
        if !self.policy.iter().copied().all(usable)
            || !self.values.iter().all(usable_value)
            || !self.ahead.iter().all(usable_ahead)
            || !self.replies.shares().iter().copied().all(usable)
            || !self.boards.iter().flatten().all(usable_board)
        {
            return refuse("a target is outside its range".into());
        }
        Ok(())
    }

    /// Mirrors the position at `index` with all its moves: files a to h become h to a. For positions that
    /// [`can_mirror`](rookery_common::encoding::can_mirror) allows.
    pub fn mirror(&mut self, index: usize) {
        self.positions.mirror(index);
        if !self.replies.is_empty() {
            self.replies.mirror(index, self.positions.policy());
        }
        if let Some(Some(boards)) = self.boards.get_mut(index) {
            boards.mirror();
        }
    }
}

/// What comes after a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuxiliaryTargets {
    /// Plies until the game's end, 0 or more; none of a game that was cut off, which teaches nothing of it.
    pub plies: Option<f32>,
    /// What its mover can expect of the next few plies.
    pub short_value: Wdl,
}

/// What stands on each square later, as [`piece_classes`](rookery_common::encoding::piece_classes) of the mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardsAhead {
    /// Some plies later.
    pub future: [u8; 64],
    /// At the game's end.
    pub last: [u8; 64],
}

impl BoardsAhead {
    fn mirror(&mut self) {
        for classes in [&mut self.future, &mut self.last] {
            classes.chunks_exact_mut(8).for_each(<[u8]>::reverse);
        }
    }
}

/// For each position the opponent's legal moves after the move that was played, and the share that the
/// opponent's own search gave to each. A position without any has no target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpponentReplyTargets {
    moves: Vec<u16>,
    shares: Vec<f32>,
    /// Where each position's moves end.
    ends: Vec<u32>,
}

impl OpponentReplyTargets {
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
