//! Virtual loss: walks in flight, which send the next walks elsewhere.
//!
//! A walk in flight counts as a visit whose value is not known yet: it lowers its move's
//! exploration term and leaves the mean alone (Lc0 calls this virtual loss too; AlphaGo counted a
//! loss, which distorts more).

use super::{NodeId, Tree};

impl Tree {
    /// Counts a walk along `path` as in flight.
    pub(crate) fn add_virtual_loss(&mut self, path: &[NodeId]) {
        for id in path {
            self.node_mut(*id).in_flight += 1;
        }
    }

    /// Undoes [`add_virtual_loss`](Self::add_virtual_loss).
    pub(crate) fn remove_virtual_loss(&mut self, path: &[NodeId]) {
        for id in path {
            self.node_mut(*id).in_flight -= 1;
        }
    }

    /// Forgets all walks in flight.
    pub(crate) fn clear_virtual_loss(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.in_flight = 0);
    }

    /// Walks in flight, all nodes together.
    #[cfg(test)]
    pub(crate) fn all_in_flight(&self) -> u32 {
        self.nodes
            .iter()
            .map(|node| u32::from(node.in_flight))
            .sum()
    }
}
