//! Trees of a bounded size.

use super::{Edge, Node, Tree};
use rookery_common::chess::HistoryEntry;

/// Moves for each node that there is room for: most positions of games have fewer.
const MOVES_PER_NODE: usize = 40;
/// Most legal moves that a position can have.
const MOST_MOVES: usize = 218;
/// Fewest nodes that there is room for.
const LEAST_NODES: usize = 1024;

impl Tree {
    /// An empty tree with room for about this many bytes. The memory is asked for at once, so that
    /// growing never moves it; the system provides it as it is used.
    pub(crate) fn with_room(bytes: usize) -> Self {
        let node =
            size_of::<Node>() + size_of::<HistoryEntry>() + MOVES_PER_NODE * size_of::<Edge>();
        let nodes = (bytes / node).max(LEAST_NODES);
        Self {
            bounded: true,
            nodes: Vec::with_capacity(nodes),
            places: Vec::with_capacity(nodes),
            edges: Vec::with_capacity(nodes * MOVES_PER_NODE),
        }
    }

    /// Whether this many more positions fit, however many moves they have. A tree without bounds
    /// grows.
    pub(crate) const fn has_room(&self, positions: usize) -> bool {
        !self.bounded
            || self.nodes.capacity() - self.nodes.len() >= positions
                && self.edges.capacity() - self.edges.len() >= positions * MOST_MOVES
    }

    /// The share of the room that is used, 0 to 1.
    pub(crate) fn fullness(&self) -> f32 {
        let share = |used: usize, room: usize| used as f32 / room.max(1) as f32;
        let nodes = share(self.nodes.len(), self.nodes.capacity());
        nodes.max(share(self.edges.len(), self.edges.capacity()))
    }
}
