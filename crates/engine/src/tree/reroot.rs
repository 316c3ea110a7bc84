//! Keeping a subtree when a move is played.
//!
//! The subtree is copied breadth first into a spare tree, as Cheney's garbage collector does: the
//! nodes copied so far are the queue. Then the two trees change places. This closes all gaps,
//! puts siblings side by side, and needs no memory of its own.

use super::node::{Edge, Node, NodeId, NodeKind};
use super::{EdgeId, Tree};

impl Tree {
    /// Makes the child behind `edge` the root and drops everything else. Without such a child
    /// the tree becomes empty. `spare` is overwritten.
    pub(crate) fn reroot(&mut self, edge: EdgeId, spare: &mut Self) {
        match self.edge(edge).child() {
            Some(child) => self.copy_subtree(child, spare),
            None => spare.clear(),
        }
        std::mem::swap(self, spare);
    }

    fn copy_subtree(&self, root: NodeId, into: &mut Self) {
        into.clear();
        into.copy_node(self, root, 0);
        let (mut next, mut depth, mut level_end) = (0, 0, 1);
        while let Some(node) = into.nodes.get(next) {
            let (first, count) = (node.first_edge, node.edge_count);
            if next == level_end {
                depth += 1;
                level_end = into.nodes.len();
            }
            let old = first as usize..first as usize + usize::from(count);
            into.nodes[next].first_edge = into.edges.len() as u32;
            for edge in &self.edges[old] {
                let child = edge
                    .child()
                    .map(|child| into.copy_node(self, child, depth + 1));
                into.edges.push(Edge {
                    child: child.unwrap_or(edge.child),
                    ..*edge
                });
            }
            next += 1;
        }
    }

    /// Copies a node that is `depth` plies after the new root, its edges still pointing into `old`.
    fn copy_node(&mut self, old: &Self, id: NodeId, depth: usize) -> NodeId {
        let mut node = *old.node(id);
        // What repeated a position that is now before the root is no longer a repetition within
        // the search: the next visit looks at it as at a new one.
        if node.kind == NodeKind::Repeated && usize::from(node.cycle) > depth {
            node = Node::new();
        }
        self.nodes.push(node);
        self.entries.push(old.entry(id).clone());
        NodeId(self.nodes.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use rookery_common::chess::GameHistory;
    use rookery_common::chess::moves::canonical_moves;
    use shakmaty::Move;

    use super::*;
    use crate::testing::packed;

    fn moves() -> Vec<Move> {
        canonical_moves(GameHistory::default().position())[..3].to_vec()
    }

    /// Root with three moves; the first two visited, the second with one child of its own, which
    /// repeats the position this many plies before.
    fn tree(cycle: usize) -> (Tree, u64) {
        let mut tree = Tree::default();
        let mut game = GameHistory::default();
        tree.plant(game.entry());
        tree.ask(NodeId::ROOT, &packed(&moves()));
        game.push(moves()[1]);
        let edge = |tree: &Tree, offset| tree.edge_id(NodeId::ROOT, offset);
        let first = tree.add_child(edge(&tree, 0), NodeId::ROOT, game.entry());
        let second = tree.add_child(edge(&tree, 1), NodeId::ROOT, game.entry());
        tree.ask(first, &packed(&moves()));
        tree.ask(second, &packed(&moves()));
        let grandchild = tree.add_child(tree.edge_id(second, 2), second, game.entry());
        tree.node_mut(grandchild).visits = 7;
        tree.repeat(grandchild, cycle);
        (tree, game.repetition_key())
    }

    #[test]
    fn a_subtree_is_kept_whole() {
        let ((mut tree, key), mut spare) = (tree(1), Tree::default());
        tree.reroot(tree.edge_id(NodeId::ROOT, 1), &mut spare);
        assert_eq!(tree.len(), 2);
        assert_eq!(tree.entry(NodeId::ROOT).repetition_key(), key);
        let child = tree.edges(NodeId::ROOT)[2].child().unwrap();
        assert_eq!(tree.node(child).visits, 7);
        assert_eq!(tree.edges(NodeId::ROOT)[0].child(), None);
    }

    #[test]
    fn a_repetition_of_what_is_now_before_the_root_is_looked_at_again() {
        let ((mut tree, _), mut spare) = (tree(2), Tree::default());
        tree.reroot(tree.edge_id(NodeId::ROOT, 1), &mut spare);
        let child = tree.edges(NodeId::ROOT)[2].child().unwrap();
        let child = tree.node(child);
        assert_eq!((child.kind, child.visits), (NodeKind::New, 0));
    }

    #[test]
    fn an_unvisited_move_leaves_nothing() {
        let ((mut tree, _), mut spare) = (tree(1), Tree::default());
        tree.reroot(tree.edge_id(NodeId::ROOT, 2), &mut spare);
        assert!(tree.is_empty());
    }
}
