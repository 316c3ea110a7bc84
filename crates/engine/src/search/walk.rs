//! Walking from the root to a leaf, and what becomes of it.

use rookery_common::chess::GameHistory;
use rookery_common::params::RootSearch;

use super::gather::Scratch;
use super::softmax::softmax;
use super::{Search, Settings, forced, gumbel, puct, solver};
use crate::evaluator::Wdl;
use crate::tree::{NodeId, NodeKind, Tree};

/// Where a walk ended.
pub(super) enum Arrival {
    /// At a position whose value needs no evaluation.
    Known(Wdl),
    /// At a position to evaluate.
    Leaf,
    /// At a position that is being evaluated.
    Collision,
    /// Nowhere: no move is worth walking.
    Nowhere,
}

impl Search {
    /// Walks from the root to the first node below which nothing is searched, adding it if it is
    /// new.
    pub(super) fn walk(
        &mut self,
        game: &mut GameHistory,
        settings: &Settings,
        scratch: &mut Scratch,
    ) -> Arrival {
        scratch.path.clear();
        scratch.path.push(NodeId::ROOT);
        let mut at = NodeId::ROOT;
        while self.tree.node(at).is_searched() {
            let Some(place) = self.select(at, settings) else {
                return Arrival::Nowhere;
            };
            at = self.follow(game, at, place);
            scratch.path.push(at);
        }
        let node = self.tree.node(at);
        if let Some(value) = node.known_value() {
            Arrival::Known(value)
        } else if node.kind == NodeKind::Asked && node.in_flight > 0 {
            Arrival::Collision
        } else {
            self.look(game, settings, scratch)
        }
    }

    /// Which of a node's moves to walk.
    fn select(&self, at: NodeId, settings: &Settings) -> Option<usize> {
        match (&settings.params.root, at) {
            (RootSearch::Gumbel(gumbel), NodeId::ROOT) => {
                let planned = self.planned();
                Some(self.gumbel.select(&self.tree, planned, gumbel))
            }
            (RootSearch::Gumbel(gumbel), _) => Some(gumbel::select_inner(&self.tree, at, gumbel)),
            (RootSearch::Puct, _) => {
                let forced = self.forced.filter(|_| at == NodeId::ROOT);
                forced
                    .and_then(|k| forced::select(&self.tree, k, self.counts.spent))
                    .or_else(|| puct::select(&self.tree, at, &settings.puct, &self.allowed))
            }
        }
    }

    /// Plays the move at a place of a node's edges.
    fn follow(&mut self, game: &mut GameHistory, at: NodeId, place: usize) -> NodeId {
        let edge = self.tree.edge_id(at, place);
        if let Some(child) = self.tree.edge(edge).child() {
            game.push_entry(self.tree.entry(child));
            return child;
        }
        game.push(self.tree.edge(edge).packed.unpack(game.position()));
        self.tree.add_child(edge, at, game.entry())
    }

    /// Counts one visit along `path`, `value` being the leaf mover's.
    pub(super) fn back_up(&mut self, path: &[NodeId], value: Wdl) {
        solver::back_up(&mut self.tree, path, value);
        let (counts, depth) = (&mut self.counts, path.len() - 1);
        counts.spent += u32::from(depth > 0);
        counts.visits += 1;
        counts.visits_without_expansion = counts.visits_without_expansion.saturating_add(1);
        counts.depths += depth as u64;
        counts.deepest = counts.deepest.max(depth);
    }

    /// Gives the leaf at the end of `path` its priors and counts its visit.
    pub(super) fn open(
        &mut self,
        path: &[NodeId],
        logits: &[f32],
        value: Wdl,
        settings: &Settings,
    ) {
        if let Some(leaf) = path.last() {
            let temperature = settings.params.policy_temperature;
            expand(&mut self.tree, *leaf, logits, temperature, value);
            self.back_up(path, value);
        }
    }
}

/// Opens a node that was asked about: its edges, still in the order of `logits`, get the softmax
/// of the logits divided by the temperature as priors.
pub(super) fn expand(tree: &mut Tree, leaf: NodeId, logits: &[f32], temperature: f32, value: Wdl) {
    let mut edges = tree.edges_mut(leaf).iter_mut();
    softmax(logits, temperature, |prior| {
        if let Some(edge) = edges.next() {
            edge.prior = prior;
        }
    });
    tree.open(leaf, value.q());
}
