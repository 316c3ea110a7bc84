//! A search tree's most visited part, to be drawn.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use shakmaty::Move;

use crate::tree::{Edge, NodeId, Tree};

/// A position of a search tree, with what was searched below it.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The move that led here; none at the root.
    pub m: Option<Move>,
    /// The policy's probability of that move, 0 to 1; 1 at the root.
    pub prior: f32,
    /// Visits.
    pub visits: u32,
    /// Win minus loss for whoever made the move, -1 to 1; at the root, for whoever is to move.
    pub q: f32,
    /// The positions after it that are shown, the most visited first.
    pub children: Vec<Branch>,
    /// Visits of the positions after it that are not shown.
    pub hidden_visits: u32,
}

impl Branch {
    /// The `shown` most visited nodes of a tree that is not empty, the root always among them.
    pub(crate) fn new(tree: &Tree, shown: usize) -> Self {
        let chosen = most_visited(tree, shown);
        let root = tree.root();
        let mut branch = Self {
            m: None,
            prior: 1.0,
            visits: root.visits,
            q: root.q,
            children: Vec::new(),
            hidden_visits: 0,
        };
        branch.grow(tree, NodeId::ROOT, &chosen);
        branch
    }

    fn grow(&mut self, tree: &Tree, at: NodeId, chosen: &HashSet<usize>) {
        let position = tree.entry(at).position();
        for edge in tree.edges(at) {
            let Some(child) = edge.child() else { continue };
            let node = tree.node(child);
            if !chosen.contains(&child.index()) {
                self.hidden_visits += node.visits;
                continue;
            }
            let mut branch = Self {
                m: Some(edge.packed.unpack(position)),
                prior: edge.prior,
                visits: node.visits,
                q: -node.q,
                children: Vec::new(),
                hidden_visits: 0,
            };
            branch.grow(tree, child, chosen);
            self.children.push(branch);
        }
        self.children.sort_by_key(|child| Reverse(child.visits));
    }
}

/// The indices of the nodes with most visits; of equal ones the first. A node has no fewer than
/// the nodes below it, so they hang together.
fn most_visited(tree: &Tree, count: usize) -> HashSet<usize> {
    let key = |id: NodeId| (tree.node(id).visits, Reverse(id.index()));
    let all: Vec<NodeId> = tree.ids().collect();
    let mut queue = BinaryHeap::from([(key(NodeId::ROOT), NodeId::ROOT.index())]);
    let mut chosen = HashSet::new();
    while chosen.len() < count.max(1)
        && let Some((_, index)) = queue.pop()
    {
        chosen.insert(index);
        let children = tree.edges(all[index]).iter().filter_map(Edge::child);
        let visited = children.filter(|child| tree.node(*child).visits > 0);
        queue.extend(visited.map(|child| (key(child), child.index())));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use rookery_common::params::SearchParams;

    use crate::dummy::HandEvaluator;
    use crate::search::search_position;
    use crate::testing::fen;

    use super::*;

    fn count(branch: &Branch) -> usize {
        1 + branch.children.iter().map(count).sum::<usize>()
    }

    fn check(branch: &Branch) {
        let shown: u32 = branch.children.iter().map(|child| child.visits).sum();
        assert!(shown + branch.hidden_visits < branch.visits);
        assert!(
            branch
                .children
                .iter()
                .map(|c| Reverse(c.visits))
                .is_sorted()
        );
        branch.children.iter().for_each(check);
    }

    #[test]
    fn the_most_visited_nodes_are_shown_and_the_rest_counted() {
        let game = fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1");
        let mut evaluator = HandEvaluator::default();
        let params = SearchParams::default();
        let report = search_position(&game, &params, 300, &mut evaluator, 25).unwrap();
        let tree = report.tree.unwrap();
        assert_eq!((count(&tree), tree.visits), (25, 301));
        assert_eq!(tree.children[0].m, report.best);
        assert!(
            tree.children[0].q > 0.0,
            "taking a queen is good for the taker"
        );
        check(&tree);
    }
}
