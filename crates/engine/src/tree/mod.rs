//! A search tree in an arena of indices.
//!
//! ```text
//! entries | root | child a | child b | grandchild … |      the positions, 170 bytes each
//! nodes   | root | child a | child b | grandchild … |      the numbers, 32 bytes each
//!             |      |
//!             |      +---------------.
//!             v                      v
//! edges   | e4 .4  d4 .3  a3 .01 … | e5 .5  c5 .3 … |      12 bytes each, a node's edges together,
//!             |                         |                  in order of priors as far as needed
//!             +-> child a               +-> none: never visited
//! ```
//!
//! An edge points to its child once the move was visited; the child holds the statistics, and the
//! position apart from them, so that walking down again needs no rules of chess.
//!
//! Below the root all unvisited moves have the same value until visited, so the one with the
//! highest prior is next. The visited moves therefore are the first edges of their node, the next
//! one follows them, and selection looks no further. The rest are in no order, as most nodes never
//! see a second move: [`Tree::add_child`] brings forward what is next then. The root, where
//! temperature and noise change priors, is sorted as a whole.
//!
//! Nothing is freed one by one: a new move keeps a subtree by [copying it](reroot) into a spare
//! tree, and a new game clears. Both keep the memory.

use std::cmp::Reverse;

use rookery_common::chess::{HistoryEntry, PackedMove};

mod node;
mod proof;
mod reroot;
mod room;
mod virtual_loss;

pub(crate) use node::{Edge, Node, NodeId, NodeKind};
pub(crate) use proof::Proof;

/// A search tree; empty until it is given a root.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The position of each node.
    entries: Vec<HistoryEntry>,
    edges: Vec<Edge>,
    /// Whether it keeps the room that it began with.
    bounded: bool,
}

/// One edge of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgeId(u32);

impl Tree {
    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.entries.clear();
        self.edges.clear();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of nodes.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes; a node comes after its parent.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Bytes of memory held.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.entries.capacity() * size_of::<HistoryEntry>()
            + self.edges.capacity() * size_of::<Edge>()
    }

    /// Begins a tree at a position.
    pub(crate) fn plant(&mut self, entry: &HistoryEntry) {
        self.clear();
        self.nodes.push(Node::new());
        self.entries.push(entry.clone());
    }

    /// The position of a node.
    pub(crate) fn entry(&self, id: NodeId) -> &HistoryEntry {
        &self.entries[id.0 as usize]
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(crate) fn root(&self) -> &Node {
        self.node(NodeId::ROOT)
    }

    fn edge_range(&self, id: NodeId) -> std::ops::Range<usize> {
        let node = self.node(id);
        let first = node.first_edge as usize;
        first..first + usize::from(node.edge_count)
    }

    /// The legal moves of a node that was looked at.
    pub(crate) fn edges(&self, id: NodeId) -> &[Edge] {
        &self.edges[self.edge_range(id)]
    }

    /// The root's legal moves, none if the tree is empty.
    pub(crate) fn edges_of_root(&self) -> &[Edge] {
        if self.is_empty() {
            &[]
        } else {
            self.edges(NodeId::ROOT)
        }
    }

    /// Visits of the position after a move, 0 if it was never visited.
    pub(crate) fn visits(&self, edge: &Edge) -> u32 {
        edge.child().map_or(0, |child| self.node(child).visits)
    }

    /// Visits of the position after a move, those in flight included.
    pub(crate) fn planned_visits(&self, edge: &Edge) -> u32 {
        edge.child().map_or(0, |child| {
            let node = self.node(child);
            node.visits + u32::from(node.in_flight)
        })
    }

    /// Visits of each of the root's moves, in the order of its edges.
    pub(crate) fn child_visits(&self) -> impl Iterator<Item = u32> {
        self.edges_of_root().iter().map(|edge| self.visits(edge))
    }

    pub(crate) fn edges_mut(&mut self, id: NodeId) -> &mut [Edge] {
        let range = self.edge_range(id);
        &mut self.edges[range]
    }

    /// The edge at place `offset` of a node's edges.
    pub(crate) fn edge_id(&self, id: NodeId, offset: usize) -> EdgeId {
        EdgeId(self.node(id).first_edge + offset as u32)
    }

    pub(crate) fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id.0 as usize]
    }

    /// Adds the child of an edge that has none, with its position. Below the root that is the
    /// first such edge, and the one that is next after it comes forward.
    pub(crate) fn add_child(
        &mut self,
        edge: EdgeId,
        parent: NodeId,
        entry: &HistoryEntry,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::new());
        self.entries.push(entry.clone());
        self.edges[edge.0 as usize].child = id;
        if parent != NodeId::ROOT {
            let end = self.edge_range(parent).end;
            bring_best_first(&mut self.edges[edge.0 as usize + 1..end]);
        }
        id
    }

    /// Gives a new node its legal moves; their priors come with [`open`](Self::open).
    pub(crate) fn ask(&mut self, id: NodeId, moves: &[PackedMove]) {
        let first_edge = self.edges.len() as u32;
        self.edges.extend(moves.iter().copied().map(Edge::new));
        let node = self.node_mut(id);
        node.first_edge = first_edge;
        node.edge_count = moves.len() as u16;
        node.kind = NodeKind::Asked;
    }

    /// Marks a node as the second occurrence of the position `cycle` plies before.
    pub(crate) fn repeat(&mut self, id: NodeId, cycle: usize) {
        let node = self.node_mut(id);
        node.kind = NodeKind::Repeated;
        node.cycle = cycle.min(usize::from(u16::MAX)) as u16;
    }

    /// Marks a node as evaluated, its priors being set.
    pub(crate) fn open(&mut self, id: NodeId, raw_q: f32) {
        let node = self.node_mut(id);
        node.kind = NodeKind::Open;
        node.raw_q = raw_q;
        bring_best_first(self.edges_mut(id));
    }

    /// Sorts the root's edges: highest prior first, equal ones in canonical order.
    pub(crate) fn sort_root(&mut self) {
        self.edges_mut(NodeId::ROOT)
            .sort_unstable_by_key(|edge| Reverse(edge.rank()));
    }
}

/// Puts the edge that would be first in order to the front.
fn bring_best_first(edges: &mut [Edge]) {
    let (mut best, mut best_rank) = (0, 0);
    for (place, edge) in edges.iter().enumerate() {
        let rank = edge.rank();
        if rank > best_rank {
            (best, best_rank) = (place, rank);
        }
    }
    if best > 0 {
        edges.swap(0, best);
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::chess::moves::canonical_moves;

    use super::*;
    use crate::testing::packed;

    #[test]
    fn moves_come_forward_in_order_of_priors() {
        let game = GameHistory::default();
        let moves = canonical_moves(game.position());
        let mut tree = Tree::default();
        tree.plant(game.entry());
        tree.ask(NodeId::ROOT, &packed(&moves));
        let below = tree.add_child(tree.edge_id(NodeId::ROOT, 0), NodeId::ROOT, game.entry());
        tree.ask(below, &packed(&moves));
        for (place, edge) in tree.edges_mut(below).iter_mut().enumerate() {
            edge.prior = (place * 7 % 10) as f32;
        }
        let mut expected: Vec<Edge> = tree.edges(below).to_vec();
        expected.sort_by(|a, b| b.prior.total_cmp(&a.prior));
        tree.open(below, 0.0);
        for (place, expected) in expected.into_iter().enumerate() {
            let next = tree.edges(below)[place];
            assert_eq!((next.prior, next.packed), (expected.prior, expected.packed));
            tree.add_child(tree.edge_id(below, place), below, game.entry());
        }
    }
}
