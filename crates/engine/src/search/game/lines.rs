//! What was found: the best lines and their values.

use shakmaty::{Move, Position as _};

use super::Searcher;
use crate::evaluator::Wdl;
use crate::tree::{NodeId, Proof};

/// One of the root's moves and what is expected after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The moves, this one first; at least one.
    pub moves: Vec<Move>,
    /// Visits of the first move.
    pub visits: u32,
    /// The value for the root's mover; the root's own for a move that was never visited.
    pub value: Wdl,
    /// Moves to a forced mate: positive if the root's mover mates, negative if it is mated.
    pub mate: Option<i32>,
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchStats {
    /// Mean length of this search's walks, in plies, rounded up.
    pub depth: u32,
    /// The longest of them.
    pub deepest: u32,
    /// Visits of the root, kept ones included.
    pub visits: u32,
    /// Visits of this search.
    pub new_visits: u64,
    /// Positions that endgame tables knew, the root among them.
    pub table_hits: u64,
    /// The share of the tree's room that is used, 0 to 1.
    pub fullness: f32,
    /// Moves to the mate that is proven for the root's mover (positive) or against it.
    pub mate: Option<i32>,
    /// Whether the last visits have hardly changed the distribution of all, as the configuration's `kld_stop` says;
    /// false without one.
    pub kld_converged: bool,
}

impl Searcher {
    /// The best lines, the best first: `count` of them, or fewer if fewer moves were visited. One
    /// at least once the root is evaluated: where all visited moves lose for certain, a move that was never
    /// visited is best.
    pub fn lines(&self, count: usize) -> Vec<Line> {
        let edges = self.search.tree.edges_of_root();
        let ranked = self.ranked(NodeId::ROOT).into_iter().enumerate();
        ranked
            .filter(|(rank, place)| *rank == 0 || edges[*place].child().is_some())
            .take(count)
            .map(|(_, place)| self.line(place))
            .collect()
    }

    fn line(&self, place: usize) -> Line {
        let edge = &self.search.tree.edges_of_root()[place];
        let child = edge.child();
        let stats = child.map(|child| self.search.tree.node(child));
        let searched = match stats {
            Some(node) if node.visits > 0 => node.value().flipped(),
            _ => self.search.tree.root().value(),
        };
        let value = self.known_value.unwrap_or(searched);
        let proof = self.search.tree.proof_after(edge);
        Line {
            moves: self.moves_from(place),
            visits: stats.map_or(0, |node| node.visits),
            value: proof.value().map_or(value, Wdl::flipped),
            mate: mate_after(proof),
        }
    }

    /// The line that begins with the root's move at `place`.
    fn moves_from(&self, place: usize) -> Vec<Move> {
        let mut position = self.game.position().clone();
        let (mut at, mut next, mut moves) = (NodeId::ROOT, Some(place), Vec::new());
        while let Some(place) = next {
            let edge = &self.search.tree.edges(at)[place];
            let m = edge.packed.unpack(&position);
            position.play_unchecked(m);
            moves.push(m);
            let Some(child) = edge.child() else { break };
            at = child;
            let ranked = self.ranked(at).into_iter();
            next = ranked.take(1).find(|place| self.is_known(at, *place));
        }
        moves
    }

    /// Whether a move was visited, or mates.
    fn is_known(&self, at: NodeId, place: usize) -> bool {
        let child = self.search.tree.edges(at)[place].child();
        child.is_some_and(|child| {
            let node = self.search.tree.node(child);
            node.visits > 0 || node.proof != Proof::Open
        })
    }

    /// Where the search stands.
    pub fn stats(&self) -> SearchStats {
        let counts = &self.search.counts;
        let depth = counts.depths.div_ceil(counts.visits.max(1)).max(1);
        SearchStats {
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            deepest: u32::try_from(counts.deepest.max(1)).unwrap_or(u32::MAX),
            visits: self.visits(),
            new_visits: counts.visits,
            table_hits: counts.table_hits,
            fullness: self.search.tree.fullness(),
            mate: self.search.proof.and_then(mate_of),
            kld_converged: self.kld_converged,
        }
    }
}

/// Moves to mate at a node with this proof, from its mover's view.
fn mate_of(proof: Proof) -> Option<i32> {
    match proof {
        Proof::Won(plies) => Some(i32::from(plies.div_ceil(2))),
        Proof::Lost(plies) => Some(-i32::from(plies / 2)),
        Proof::Open | Proof::Drawn => None,
    }
}

/// The same before a move that leads to such a node.
fn mate_after(proof: Proof) -> Option<i32> {
    match proof {
        Proof::Lost(plies) => mate_of(Proof::Won(plies.saturating_add(1))),
        Proof::Won(plies) => mate_of(Proof::Lost(plies.saturating_add(1))),
        Proof::Open | Proof::Drawn => None,
    }
}
