//! Trees of a bounded size.

use super::{Edge, Node, Tree};
use rookery_common::chess::HistoryEntry;

/// Moves for each node that there is room for: most positions of games have fewer.
const MOVES_PER_NODE: usize = 40;
/// Most legal moves that a position can have.
const MOST_MOVES: usize = 218;
/// Fewest nodes that there is room for.
const LEAST_NODES: usize = 1024;
/// Most nodes that there is room for, so that 32 bits number all edges.
const MOST_NODES: usize = u32::MAX as usize / MOVES_PER_NODE;
/// Nodes that a walk may add beside those of the positions to evaluate: the mates in one of the root and of a leaf.
const MATES: usize = 2;

impl Tree {
    /// An empty tree with room for about this many bytes, less where its indices do not reach further. The memory
    /// is asked for at once, so that growing never moves it; the system provides it as it is used.
    pub(crate) fn with_room(bytes: usize) -> Self {
        let nodes = nodes_within(bytes);
        Self {
            bounded: true,
            nodes: Vec::with_capacity(nodes),
            entries: Vec::with_capacity(nodes),
            edges: Vec::with_capacity(nodes * MOVES_PER_NODE),
        }
    }

    /// Whether this many more positions fit, however many moves they have and whatever mates in one are seen. A tree
    /// without bounds grows.
    pub(crate) const fn has_room(&self, positions: usize) -> bool {
        !self.bounded
            || self.nodes.capacity() - self.nodes.len() >= positions + MATES
                && self.edges.capacity() - self.edges.len() >= positions * MOST_MOVES
    }

    /// The share of the room that is used, 0 to 1.
    pub(crate) fn fullness(&self) -> f32 {
        let share = |used: usize, room: usize| used as f32 / room.max(1) as f32;
        let nodes = share(self.nodes.len(), self.nodes.capacity());
        nodes.max(share(self.edges.len(), self.edges.capacity()))
    }
}

/// Nodes, with their moves, for which this many bytes are enough.
fn nodes_within(bytes: usize) -> usize {
    let node = size_of::<Node>() + size_of::<HistoryEntry>() + MOVES_PER_NODE * size_of::<Edge>();
    (bytes / node).clamp(LEAST_NODES, MOST_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_of_the_largest_tree_has_an_index() {
        for bytes in [1 << 37, 1 << 40, usize::MAX] {
            let edges = nodes_within(bytes) * MOVES_PER_NODE;
            assert!(u32::try_from(edges).is_ok(), "{edges} edges");
        }
    }
}
