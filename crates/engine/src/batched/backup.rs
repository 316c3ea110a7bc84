//! Values and proofs on their way from a leaf to the root.

use super::proof::Proof;
use super::select::is_allowed;
use super::{Searcher, marks::Marks};
use crate::evaluator::Wdl;
use crate::tree::{NodeId, Tree};

impl Searcher {
    /// Counts one visit along `path`, `value` being the leaf mover's. What is proven is not
    /// changed by it, and passes on what is proven.
    pub(super) fn back_up(&mut self, path: &[NodeId], mut value: Wdl) {
        for id in path.iter().rev() {
            value = self.marks.proof(*id).value().unwrap_or(value);
            self.tree.node_mut(*id).add_visit(value);
            value = value.flipped();
        }
        let depth = path.len() - 1;
        self.counts.visits += u32::from(depth > 0);
        self.counts.walks += 1;
        self.counts.barren = self.counts.barren.saturating_add(1);
        self.counts.depths += depth as u64;
        self.counts.deepest = self.counts.deepest.max(depth);
    }

    /// Draws the conclusions from the leaf of `path`, just looked at, being the end of a game.
    pub(super) fn conclude(&mut self, path: &[NodeId]) {
        let Some((leaf, before)) = path.split_last() else {
            return;
        };
        let proof = Proof::by_rule(self.tree.node(*leaf).kind);
        if proof == Proof::Open || self.marks.proof(*leaf) != Proof::Open {
            return;
        }
        self.marks.prove(*leaf, proof);
        for place in (0..before.len()).rev() {
            let id = path[place];
            if id == NodeId::ROOT {
                self.prove_root();
                return;
            }
            let proof = Proof::of_moves(&self.tree, &self.marks, id, |_| true);
            let Some(value) = proof.value() else { return };
            if self.marks.proof(id) != Proof::Open {
                return;
            }
            self.marks.prove(id, proof);
            settle(&mut self.tree, &self.marks, &path[..=place], value);
        }
    }

    /// What is proven of the root, if only the allowed moves are played.
    pub(super) fn prove_root(&mut self) {
        let allowed = &self.allowed;
        self.root_proof = Proof::of_moves(&self.tree, &self.marks, NodeId::ROOT, |edge| {
            is_allowed(edge, allowed)
        });
    }
}

/// Gives the last node of `path` its proven value, and corrects the means before it, which hold
/// all its visits with the old one.
fn settle(tree: &mut Tree, marks: &Marks, path: &[NodeId], value: Wdl) {
    let Some((settled, before)) = path.split_last() else {
        return;
    };
    let node = tree.node_mut(*settled);
    let visits = node.visits as f32;
    let (mut q, draw) = (value.q() - node.q, value.draw - node.draw);
    (node.q, node.draw) = (value.q(), value.draw);
    for id in before.iter().rev() {
        if marks.proof(*id) != Proof::Open {
            return;
        }
        q = -q;
        let node = tree.node_mut(*id);
        let share = visits / node.visits.max(1) as f32;
        node.q += q * share;
        node.draw += draw * share;
    }
}
