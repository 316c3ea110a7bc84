//! PUCT selection.

use rookery_common::chess::PackedMove;
use rookery_common::params::{Fpu, PuctParams};

use crate::tree::{Edge, NodeId, Proof, Tree};

/// PUCT with the part of its formula that depends on the node's visits only.
#[derive(Debug, Clone)]
pub(crate) struct Puct {
    c_base: f32,
    c_init: f32,
    fpu: Fpu,
    /// [`factor`](Self::factor) for the smallest numbers of visits.
    factors: Vec<f32>,
}

/// Numbers of visits for which the factor is kept: few nodes ever have more.
const FACTORS: u32 = 1024;

impl Puct {
    pub(crate) fn new(params: &PuctParams) -> Self {
        let (c_base, c_init, fpu) = (params.c_base, params.c_init, params.fpu);
        let mut puct = Self {
            c_base,
            c_init,
            fpu,
            factors: Vec::new(),
        };
        puct.factors = (0..FACTORS).map(|visits| puct.factor(visits)).collect();
        puct
    }

    /// `(c_init + ln((N + c_base + 1) / c_base)) * sqrt(N)`.
    pub(crate) fn factor(&self, visits: u32) -> f32 {
        if let Some(factor) = self.factors.get(visits as usize) {
            return *factor;
        }
        let n = visits as f32;
        (self.c_init + ((n + self.c_base + 1.0) / self.c_base).ln()) * n.sqrt()
    }

    /// The value of an unvisited move where the visited ones have `seen` of the policy.
    pub(crate) fn first_play(&self, parent: f32, seen: f32) -> f32 {
        match self.fpu {
            Fpu::Absolute { value } => value,
            Fpu::Reduction { value } => parent - value * seen.sqrt(),
        }
    }
}

/// The place of the edge with the highest `Q + U` (see [`PuctParams`]; N counts the node's own
/// evaluation, and walks in flight). Equal scores: the higher prior. The root plays only `allowed`
/// moves. None if no move is worth walking.
pub(super) fn select(
    tree: &Tree,
    at: NodeId,
    puct: &Puct,
    allowed: &[PackedMove],
) -> Option<usize> {
    let node = tree.node(at);
    let u = puct.factor(node.visits + u32::from(node.in_flight));
    let (is_root, in_flight) = (at == NodeId::ROOT, node.in_flight > 0);
    let filters = is_root && !allowed.is_empty();
    let (mut best, mut new) = (Candidate::NONE, Candidate::NONE);
    let mut untried = None;
    let mut seen = 0.0;
    for (place, edge) in tree.edges(at).iter().enumerate() {
        if filters && !is_allowed(edge, allowed) {
            continue;
        }
        let Some(child) = edge.child() else {
            // Of untried moves the first has the highest prior.
            untried.get_or_insert((place, edge.prior));
            // Below the root the visited moves come before it. Noise and temperature change the
            // order at a root that was kept.
            if is_root {
                continue;
            }
            break;
        };
        let child = tree.node(child);
        let mut visits = 1 + child.visits;
        // Without walks in flight through the node, none goes through its children.
        if in_flight {
            visits += u32::from(child.in_flight);
            if !child.is_valued() {
                new.challenge(place, u * edge.prior / visits as f32);
                continue;
            }
        }
        seen += edge.prior;
        // The opponent can force mate after this move.
        if !matches!(child.proof, Proof::Won(_)) {
            best.challenge(place, u * edge.prior / visits as f32 - child.q);
        }
    }
    if let Some((place, prior)) = untried {
        new.challenge(place, u * prior);
    }
    let new_is_better =
        new.place.is_some() && puct.first_play(node.q, seen) + new.score > best.score;
    if new_is_better { new.place } else { best.place }
}

/// Whether the root may play a move; an empty list allows all.
pub(super) fn is_allowed(edge: &Edge, allowed: &[PackedMove]) -> bool {
    allowed.is_empty() || allowed.contains(&edge.packed)
}

/// The best place so far.
struct Candidate {
    place: Option<usize>,
    score: f32,
}

impl Candidate {
    const NONE: Self = Self {
        place: None,
        score: f32::NEG_INFINITY,
    };

    fn challenge(&mut self, place: usize, score: f32) {
        if score > self.score {
            (self.place, self.score) = (Some(place), score);
        }
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use shakmaty::Position;

    use super::*;
    use crate::evaluator::Wdl;
    use crate::search::walk::expand;
    use crate::testing::packed;

    /// The standard start with uniform priors, its first moves visited once with these values for
    /// their own mover.
    fn tree(values: &[f32]) -> Tree {
        let game = GameHistory::default();
        let moves = game.position().legal_moves();
        let mut tree = Tree::default();
        tree.plant(game.entry());
        tree.ask(NodeId::ROOT, &packed(&moves));
        expand(&mut tree, NodeId::ROOT, &[0.0; 20], 1.0, Wdl::DRAW);
        tree.node_mut(NodeId::ROOT).visits = 1 + values.len() as u32;
        for (offset, q) in values.iter().enumerate() {
            let child = tree.add_child(
                tree.edge_id(NodeId::ROOT, offset),
                NodeId::ROOT,
                game.entry(),
            );
            tree.node_mut(child).add_visit(Wdl::from_q(*q));
        }
        tree
    }

    fn select_in(tree: &Tree, fpu: Fpu, allowed: &[PackedMove]) -> usize {
        let params = PuctParams {
            fpu,
            ..PuctParams::default()
        };
        select(tree, NodeId::ROOT, &Puct::new(&params), allowed).unwrap()
    }

    fn select_with(values: &[f32], fpu: Fpu) -> usize {
        select_in(&tree(values), fpu, &[])
    }

    #[test]
    fn the_move_that_is_bad_for_the_opponent_is_preferred() {
        let low = Fpu::Absolute { value: -1.0 };
        assert_eq!(select_with(&[0.5, -0.5, 0.0], low), 1);
    }

    #[test]
    fn first_play_urgency_decides_when_to_try_something_new() {
        assert_eq!(select_with(&[0.1], Fpu::Absolute { value: -1.0 }), 0);
        assert_eq!(select_with(&[0.1], Fpu::Absolute { value: 0.0 }), 1);
        // The parent's value is 0 and 1/20 of the policy is seen: -0.2 * sqrt(0.05) = -0.045.
        assert_eq!(select_with(&[0.1], Fpu::Reduction { value: 0.2 }), 1);
        assert_eq!(select_with(&[0.0], Fpu::Reduction { value: 2.0 }), 0);
    }

    #[test]
    fn walks_in_flight_send_the_next_walk_elsewhere() {
        let (low, equal) = (Fpu::Absolute { value: -1.0 }, Fpu::Absolute { value: 0.0 });
        let mut tree = tree(&[-0.01, 0.0]);
        let child = |tree: &Tree, place: usize| tree.edges(NodeId::ROOT)[place].child().unwrap();
        assert_eq!(select_in(&tree, low, &[]), 0);
        let path = [NodeId::ROOT, child(&tree, 0)];
        tree.add_virtual_loss(&path);
        assert_eq!(select_in(&tree, low, &[]), 1);
        // A new move in flight counts as unvisited, its prior shared with the walk.
        let place = GameHistory::default();
        let new = tree.add_child(tree.edge_id(NodeId::ROOT, 2), NodeId::ROOT, place.entry());
        tree.add_virtual_loss(&[new]);
        assert_eq!(select_in(&tree, equal, &[]), 3);
        let only = tree.edges(NodeId::ROOT)[2].packed;
        assert_eq!(select_in(&tree, equal, &[only]), 2);
    }

    #[test]
    fn scores_are_as_in_the_pseudocode() {
        // N = 3, P = 1/20, one child with n = 1, q = 0 and one unvisited with value v: they are
        // equal when U/2 = v + U with U = P sqrt(3) (1.25 + ln((3 + 19653) / 19652)).
        let u = 3_f64.sqrt() / 20.0 * (1.25 + (19_656.0_f64 / 19_652.0).ln());
        let at = |shift: f64| Fpu::Absolute {
            value: (shift - u / 2.0) as f32,
        };
        assert_eq!(select_with(&[0.0, 0.0], at(1e-4)), 2);
        assert_eq!(select_with(&[0.0, 0.0], at(-1e-4)), 0);
    }
}
