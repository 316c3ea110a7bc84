//! Which move is best, and how safe that is.

use shakmaty::Move;

use super::Searcher;
use crate::play::sample;
use crate::search::puct::is_allowed;
use crate::tree::{Edge, NodeId, Proof};

/// How far the best move is ahead of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BestMoveMargin {
    /// No other move can become best: it is the only one, or its result is proven.
    Decided,
    /// By this many visits.
    Visits(u32),
}

/// How good a move is; the highest is best.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Rank {
    /// The opponent can mate after it, in this many plies: the later the better.
    Loses(u16),
    /// By visits, then value, then prior.
    Searched(u32, f32, f32),
    /// It mates; the sooner the better (a negative number of plies).
    Wins(i32),
}

impl Searcher {
    pub(super) fn rank(&self, edge: &Edge) -> Rank {
        let Some(child) = edge.child() else {
            return Rank::Searched(0, -2.0, edge.prior);
        };
        let node = self.search.tree.node(child);
        match node.proof {
            Proof::Won(plies) => Rank::Loses(plies),
            Proof::Lost(plies) => Rank::Wins(-i32::from(plies)),
            Proof::Open | Proof::Drawn => Rank::Searched(node.visits, -node.q, edge.prior),
        }
    }

    /// The places of a node's moves, the best first; at the root only those that are allowed. None of an empty tree.
    pub(super) fn ranked(&self, at: NodeId) -> Vec<usize> {
        if self.search.tree.is_empty() {
            return Vec::new();
        }
        let edges = self.search.tree.edges(at);
        let counts =
            |place: &usize| at != NodeId::ROOT || is_allowed(&edges[*place], &self.search.allowed);
        let mut places: Vec<usize> = (0..edges.len()).filter(counts).collect();
        let rank = |place: &usize| self.rank(&edges[*place]);
        places.sort_by(|a, b| {
            let order = rank(b).partial_cmp(&rank(a));
            order.unwrap_or(std::cmp::Ordering::Equal)
        });
        places
    }

    /// How far the best move is ahead.
    pub fn margin(&self) -> BestMoveMargin {
        let edges = self.search.tree.edges_of_root();
        let ranked = self.ranked(NodeId::ROOT);
        let rank = |place: usize| ranked.get(place).map(|place| self.rank(&edges[*place]));
        match (rank(0), rank(1)) {
            (Some(Rank::Searched(best, ..)), Some(Rank::Searched(second, ..))) => {
                BestMoveMargin::Visits(best - second)
            }
            _ => BestMoveMargin::Decided,
        }
    }

    /// Whether the move that is best by visits is also the one of highest value among those that
    /// were visited as much as a tenth of that.
    pub fn is_settled(&self) -> bool {
        let edges = self.search.tree.edges_of_root();
        let ranks = || {
            let ranked = self.ranked(NodeId::ROOT).into_iter();
            ranked.map(|place| self.rank(&edges[place]))
        };
        let Some(Rank::Searched(most, q, _)) = ranks().next() else {
            return true;
        };
        !ranks()
            .any(|rank| matches!(rank, Rank::Searched(n, other, _) if n > most / 10 && other > q))
    }

    /// The move to play: the best, or with a temperature above 0 one drawn from
    /// `visits^(1 / temperature)`, of the moves that do not lose for certain. None before the
    /// root's evaluation.
    pub fn choose(&mut self, temperature: f32) -> Option<Move> {
        let edges = self.search.tree.edges_of_root();
        let ranked = self.ranked(NodeId::ROOT);
        let weights: Vec<f64> = ranked
            .iter()
            .map_while(|place| match self.rank(&edges[*place]) {
                Rank::Searched(visits, ..) => Some(f64::from(visits)),
                Rank::Wins(_) | Rank::Loses(_) => None,
            })
            .collect();
        let drawn = temperature > 0.0 && weights.iter().any(|weight| *weight > 0.0);
        let place = if drawn {
            sample(weights.iter().copied(), temperature, &mut self.rng)
        } else {
            0
        };
        let edge = edges.get(*ranked.get(place)?)?;
        Some(edge.packed.unpack(self.game.position()))
    }
}
