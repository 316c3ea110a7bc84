//! What a search found.

use shakmaty::{Chess, Move, Position};

use super::{RootState, Search};
use crate::tree::{Edge, NodeId, Proof, Tree};

/// One of the root's moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MoveSummary {
    /// The move.
    pub(crate) m: Move,
    /// Its visits; see [`Search::summary`].
    pub(crate) visits: u32,
    /// Its prior at the root, temperature and noise included.
    pub(crate) prior: f32,
    /// Its value for the root's mover if it was visited.
    pub(crate) q: Option<f32>,
}

/// The root's moves in canonical order.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) moves: Vec<MoveSummary>,
    /// The place of each among the root's edges.
    pub(crate) edges: Vec<usize>,
}

impl Summary {
    /// The place of the move with most visits; of equal ones that with the higher value, then
    /// that with the higher prior.
    pub(crate) fn most_visited(&self) -> usize {
        self.most_visited_of(|_| true).unwrap_or_default()
    }

    /// The same of the places for which `counts` holds.
    fn most_visited_of(&self, counts: impl Fn(usize) -> bool) -> Option<usize> {
        let rank = |place: usize| {
            let m = &self.moves[place];
            (m.visits, m.q.unwrap_or(-2.0), m.prior)
        };
        let places = (0..self.moves.len()).filter(|place| counts(*place));
        places.reduce(
            |best, next| {
                if rank(next) > rank(best) { next } else { best }
            },
        )
    }
}

impl Search {
    /// What is known of the root's moves; `position` is the root's.
    ///
    /// What is proven shows in the visits, from which moves are chosen and learned. If the root's
    /// result is, they are one, of the move that decides. Else a PUCT root's visits of moves that
    /// lose for certain are shared out among the others, in proportion to theirs, also if a kept subtree
    /// had all visits already; those of a Gumbel root follow from its schedule and stay.
    pub(crate) fn summary(&self, position: &Chess) -> Summary {
        let edges = self.tree.edges_of_root();
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_unstable_by_key(|edge| edges[*edge].packed);
        let moves = order
            .iter()
            .map(|edge| self.move_summary(position, &edges[*edge]))
            .collect();
        let mut summary = Summary {
            moves,
            edges: order,
        };
        if let Some(decided) = self.decided_edge() {
            for (m, edge) in summary.moves.iter_mut().zip(&summary.edges) {
                m.visits = u32::from(*edge == decided);
            }
        } else if self.root != RootState::Gumbel {
            self.share_refuted_visits(&mut summary);
        }
        summary
    }

    /// Shares out visits of moves that lose for certain. What rounding leaves goes to the most visited of the
    /// others, and all to the one of highest prior if none was visited.
    fn share_refuted_visits(&self, summary: &mut Summary) {
        let edges = self.tree.edges_of_root();
        let places = summary.edges.iter();
        let refuted: Vec<bool> = places
            .map(|edge| self.tree.is_refuted(&edges[*edge]))
            .collect();
        if !refuted.contains(&true) {
            return;
        }
        let Some(best) = summary.most_visited_of(|place| !refuted[place]) else {
            return;
        };
        let all: u64 = summary.moves.iter().map(|m| u64::from(m.visits)).sum();
        for (m, refuted) in summary.moves.iter_mut().zip(&refuted) {
            m.visits = if *refuted { 0 } else { m.visits };
        }
        let kept: u64 = summary.moves.iter().map(|m| u64::from(m.visits)).sum();
        for m in &mut summary.moves {
            m.visits = (u64::from(m.visits) * all / kept.max(1)) as u32;
        }
        let shared: u64 = summary.moves.iter().map(|m| u64::from(m.visits)).sum();
        summary.moves[best].visits += (all - shared) as u32;
    }

    fn move_summary(&self, position: &Chess, edge: &Edge) -> MoveSummary {
        MoveSummary {
            m: edge.packed.unpack(position),
            visits: self.tree.visits(edge),
            prior: edge.prior,
            q: edge.child().map(|child| -self.tree.node(child).q),
        }
    }

    /// The line of most visits from the root; `position` is the root's.
    pub(crate) fn principal_variation(&self, position: &Chess) -> Vec<Move> {
        let (mut at, mut position, mut line) = (NodeId::ROOT, position.clone(), Vec::new());
        while let Some((edge, child)) = most_visited_child(&self.tree, at) {
            let m = edge.packed.unpack(&position);
            position.play_unchecked(m);
            line.push(m);
            at = child;
        }
        line
    }
}

fn most_visited_child(tree: &Tree, at: NodeId) -> Option<(&Edge, NodeId)> {
    let visited = tree
        .edges(at)
        .iter()
        .filter_map(|edge| Some((edge, edge.child()?)));
    let rank = |id: NodeId| {
        let node = tree.node(id);
        let (mates, loses) = (
            matches!(node.proof, Proof::Lost(_)),
            matches!(node.proof, Proof::Won(_)),
        );
        (mates, !loses, node.visits, -node.q)
    };
    visited.reduce(|best, next| {
        if rank(next.1) > rank(best.1) {
            next
        } else {
            best
        }
    })
}
