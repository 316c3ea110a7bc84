//! Nodes and edges.

use rookery_common::chess::{GameResult, PackedMove};
use shakmaty::Color;

use super::Proof;
use crate::evaluator::Wdl;

/// Index of a node in its tree; the root is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const ROOT: Self = Self(0);
    /// Stands for a child that was never visited.
    const NONE: Self = Self(u32::MAX);

    /// Its place among the nodes of its tree.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a node's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Nothing yet: it was never looked at.
    New,
    /// Its legal moves are there, its evaluation is awaited: priors are not set.
    Asked,
    /// Evaluated: priors are set.
    Open,
    /// The mover is mated.
    Mated,
    /// Drawn by the rules.
    Drawn,
    /// The position stood on the board before, within the search: counts as a draw.
    Repeated,
    /// Endgame tables say that the mover wins.
    TableWon,
    /// Endgame tables say that it is a draw.
    TableDrawn,
    /// Endgame tables say that the mover loses.
    TableLost,
}

impl NodeKind {
    /// What a result that endgame tables know is for `mover`.
    pub(crate) const fn by_tables(result: GameResult, mover: Color) -> Self {
        match result.score_for(mover) {
            1 => Self::TableWon,
            0 => Self::TableDrawn,
            _ => Self::TableLost,
        }
    }

    /// The value of a node that needs no evaluation, for its mover.
    pub(crate) const fn terminal(self) -> Option<Wdl> {
        match self {
            Self::New | Self::Asked | Self::Open => None,
            Self::TableWon => Some(Wdl::WIN),
            Self::Mated | Self::TableLost => Some(Wdl::LOSS),
            Self::Drawn | Self::Repeated | Self::TableDrawn => Some(Wdl::DRAW),
        }
    }
}

/// What search knows of a position that it reached. 32 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    /// Evaluations backed up through this node, its own included.
    pub(crate) visits: u32,
    /// Mean of win minus loss over the visits, for this node's mover.
    pub(crate) q: f32,
    /// Mean probability of a draw over the visits.
    pub(crate) draw: f32,
    /// The evaluator's own win minus loss here.
    pub(crate) raw_q: f32,
    /// Where its edges begin.
    pub(super) first_edge: u32,
    /// How many edges it has: its legal moves, once known.
    pub(super) edge_count: u16,
    /// Walks through this node whose leaves wait for their evaluation.
    pub(crate) in_flight: u16,
    /// For [`NodeKind::Repeated`]: plies back to the earlier occurrence.
    pub(super) cycle: u16,
    /// What is proven of it; always open at the root, and where the solver is off.
    pub(crate) proof: Proof,
    pub(crate) kind: NodeKind,
}

impl Node {
    pub(super) const fn new() -> Self {
        Self {
            visits: 0,
            q: 0.0,
            draw: 0.0,
            raw_q: 0.0,
            first_edge: 0,
            edge_count: 0,
            in_flight: 0,
            cycle: 0,
            proof: Proof::Open,
            kind: NodeKind::New,
        }
    }

    /// The value for its mover of a node below which nothing is searched: the game is over there,
    /// or the result is proven.
    pub(crate) fn known_value(&self) -> Option<Wdl> {
        self.proof.value().or(self.kind.terminal())
    }

    /// Whether search goes on below it: it is evaluated, and its result is not proven.
    pub(crate) fn is_searched(&self) -> bool {
        self.kind == NodeKind::Open && self.proof == Proof::Open
    }

    /// Whether its value means something: not while its first evaluation is in flight. Without a
    /// visit it counts as drawn, as what repeated a position that is now before the root.
    pub(crate) const fn is_valued(&self) -> bool {
        self.visits > 0 || self.in_flight == 0
    }

    /// Counts one visit of this value for the node's mover.
    pub(crate) fn add_visit(&mut self, value: Wdl) {
        self.visits += 1;
        let share = 1.0 / self.visits as f32;
        self.q += (value.q() - self.q) * share;
        self.draw += (value.draw - self.draw) * share;
    }

    /// The mean value for the node's mover.
    pub(crate) fn value(&self) -> Wdl {
        Wdl::from_q_and_draw(self.q, self.draw)
    }
}

/// A legal move of a node. 12 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edge {
    /// The policy's probability, from 0 to 1.
    pub(crate) prior: f32,
    pub(super) child: NodeId,
    pub(crate) packed: PackedMove,
}

impl Edge {
    pub(super) const fn new(packed: PackedMove) -> Self {
        Self {
            prior: 0.0,
            child: NodeId::NONE,
            packed,
        }
    }

    /// What puts edges in order: higher priors have higher ranks; among equal priors, moves that
    /// come first in canonical order have.
    pub(super) const fn rank(&self) -> u64 {
        // The bits of floats that are not negative are in the floats' order.
        (self.prior.to_bits() as u64) << 16 | !self.packed.bits() as u64
    }

    /// The position after the move, if it was ever visited.
    pub(crate) fn child(&self) -> Option<NodeId> {
        (self.child != NodeId::NONE).then_some(self.child)
    }
}
