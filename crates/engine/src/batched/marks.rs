//! What batched search notes of each node beside the tree: visits under way, and proofs.

use super::proof::Proof;
use crate::tree::{NodeId, Tree};

/// A note for every node of a tree, by the node's index.
#[derive(Debug, Default)]
pub(super) struct Marks {
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Walks through this node whose leaves are not evaluated yet.
    in_flight: u16,
    proof: Proof,
}

impl Marks {
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Makes the notes for a tree that was just planted or cut: nothing is under way, and proofs
    /// follow from the positions in which the game is over. Children come after their parents.
    pub(super) fn rebuild(&mut self, tree: &Tree) {
        self.marks.clear();
        self.marks.resize(tree.len(), Mark::default());
        for id in tree.ids().rev() {
            self.marks[id.index()].proof = match Proof::by_rule(tree.node(id).kind) {
                // What the root proves depends on the moves that it may play.
                _ if id == NodeId::ROOT => Proof::Open,
                Proof::Open => Proof::of_moves(tree, self, id, |_| true),
                known => known,
            };
        }
    }

    /// Adds a note for the tree's newest node.
    pub(super) fn grow(&mut self) {
        self.marks.push(Mark::default());
    }

    pub(super) fn in_flight(&self, id: NodeId) -> u32 {
        u32::from(self.marks[id.index()].in_flight)
    }

    pub(super) fn proof(&self, id: NodeId) -> Proof {
        self.marks[id.index()].proof
    }

    pub(super) fn prove(&mut self, id: NodeId, proof: Proof) {
        self.marks[id.index()].proof = proof;
    }

    /// Counts a walk along `path` as under way.
    pub(super) fn depart(&mut self, path: &[NodeId]) {
        for id in path {
            self.marks[id.index()].in_flight += 1;
        }
    }

    /// Undoes [`depart`](Self::depart).
    pub(super) fn arrive(&mut self, path: &[NodeId]) {
        for id in path {
            self.marks[id.index()].in_flight -= 1;
        }
    }

    /// Walks under way, all nodes together.
    #[cfg(test)]
    pub(super) fn all_in_flight(&self) -> u32 {
        self.marks
            .iter()
            .map(|mark| u32::from(mark.in_flight))
            .sum()
    }
}
