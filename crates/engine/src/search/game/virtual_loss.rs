//! Virtual loss: visits under way, counted for every node beside the tree.

use crate::tree::NodeId;

/// How many walks go through each node of a tree, by the node's index, whose leaves are not
/// evaluated yet.
#[derive(Debug, Default)]
pub(super) struct VirtualLoss {
    in_flight: Vec<u16>,
}

impl VirtualLoss {
    /// Begins with a tree of this many nodes, through which nothing is under way.
    pub(super) fn reset(&mut self, nodes: usize) {
        self.in_flight.clear();
        self.in_flight.resize(nodes, 0);
    }

    /// Makes room for the tree's newest nodes.
    pub(super) fn grow(&mut self, nodes: usize) {
        self.in_flight.resize(nodes, 0);
    }

    pub(super) fn in_flight(&self, id: NodeId) -> u32 {
        u32::from(self.in_flight[id.index()])
    }

    /// Counts a walk along `path` as under way.
    pub(super) fn depart(&mut self, path: &[NodeId]) {
        for id in path {
            self.in_flight[id.index()] += 1;
        }
    }

    /// Undoes [`depart`](Self::depart).
    pub(super) fn arrive(&mut self, path: &[NodeId]) {
        for id in path {
            self.in_flight[id.index()] -= 1;
        }
    }

    /// Walks under way, all nodes together.
    #[cfg(test)]
    pub(super) fn all_in_flight(&self) -> u32 {
        self.in_flight.iter().copied().map(u32::from).sum()
    }
}
