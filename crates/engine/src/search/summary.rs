//! What a search found.

use shakmaty::{Chess, Move, Position};

use super::Search;
use crate::tree::{Edge, NodeId, Tree};

/// One of the root's moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MoveSummary {
    /// The move.
    pub(crate) m: Move,
    /// Its visits.
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
        let rank = |m: &MoveSummary| (m.visits, m.q.unwrap_or(-2.0), m.prior);
        let mut best = 0;
        for (place, m) in self.moves.iter().enumerate().skip(1) {
            if rank(m) > rank(&self.moves[best]) {
                best = place;
            }
        }
        best
    }
}

impl Search {
    /// What is known of the root's moves; `position` is the root's.
    pub(crate) fn summary(&self, position: &Chess) -> Summary {
        let edges = self.tree.edges_of_root();
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_unstable_by_key(|edge| edges[*edge].packed);
        let moves = order
            .iter()
            .map(|edge| self.move_summary(position, &edges[*edge]))
            .collect();
        Summary {
            moves,
            edges: order,
        }
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
    let rank = |id: NodeId| (tree.node(id).visits, -tree.node(id).q);
    visited.reduce(|best, next| {
        if rank(next.1) > rank(best.1) {
            next
        } else {
            best
        }
    })
}
