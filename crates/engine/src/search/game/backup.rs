//! Values and proofs on their way from a leaf to the root.

use super::Searcher;
use super::select::is_allowed;
use crate::evaluator::Wdl;
use crate::search::solver;
use crate::tree::NodeId;

impl Searcher {
    /// Counts one visit along `path`, `value` being the leaf mover's.
    pub(super) fn back_up(&mut self, path: &[NodeId], value: Wdl) {
        solver::back_up(&mut self.tree, path, value);
        let depth = path.len() - 1;
        self.counts.visits += u32::from(depth > 0);
        self.counts.walks += 1;
        self.counts.barren = self.counts.barren.saturating_add(1);
        self.counts.depths += depth as u64;
        self.counts.deepest = self.counts.deepest.max(depth);
    }

    /// Draws the conclusions from the leaf of `path`, just looked at, being the end of a game.
    pub(super) fn conclude(&mut self, path: &[NodeId]) {
        if solver::conclude(&mut self.tree, path) {
            self.prove_root();
        }
    }

    /// What is proven of the root, if only the allowed moves are played.
    pub(super) fn prove_root(&mut self) {
        let allowed = &self.allowed;
        self.root_proof = self
            .tree
            .prove(NodeId::ROOT, |edge| is_allowed(edge, allowed));
    }
}
