//! MCTS-solver: values and [proofs](Proof) on their way from a leaf to the root, and mates in one
//! that are seen before they are visited.
//!
//! Lc0 calls this sticky endgames.

use std::cmp::Reverse;

use rookery_common::chess::mate::find_mate;
use rookery_common::chess::{GameHistory, PackedMove};
use shakmaty::{Move, Position as _};

use super::puct::is_allowed;
use super::{Proofs, Search, Settings};
use crate::evaluator::Wdl;
use crate::tree::{Edge, NodeId, NodeKind, Proof, Tree};

/// Counts one visit along `path`, `value` being the leaf mover's. What is proven is not changed by
/// it, and passes on what is proven.
pub(super) fn back_up(tree: &mut Tree, path: &[NodeId], mut value: Wdl) {
    for id in path.iter().rev() {
        let node = tree.node_mut(*id);
        value = node.proof.value().unwrap_or(value);
        node.add_visit(value);
        value = value.flipped();
    }
}

/// Draws the conclusions from the leaf of `path` being the end of a game, or having a mate in one.
/// Whether the root's moves may prove more than before.
fn conclude(tree: &mut Tree, path: &[NodeId]) -> bool {
    let Some((leaf, before)) = path.split_last() else {
        return false;
    };
    if before.is_empty() {
        return true;
    }
    if tree.node(*leaf).proof != Proof::Open {
        return false;
    }
    let proof = match Proof::by_rule(tree.node(*leaf).kind) {
        Proof::Open => tree.prove(*leaf, |_| true),
        proof => proof,
    };
    if proof == Proof::Open {
        return false;
    }
    tree.node_mut(*leaf).proof = proof;
    for place in (0..before.len()).rev() {
        let id = before[place];
        if id == NodeId::ROOT {
            return true;
        }
        let proof = tree.prove(id, |_| true);
        let Some(value) = proof.value() else {
            return false;
        };
        if tree.node(id).proof != Proof::Open {
            return false;
        }
        tree.node_mut(id).proof = proof;
        settle(tree, &before[..=place], value);
    }
    false
}

/// Gives the last node of `path` its proven value, and corrects the means before it, which hold
/// all its visits with the old one.
fn settle(tree: &mut Tree, path: &[NodeId], value: Wdl) {
    let Some((settled, before)) = path.split_last() else {
        return;
    };
    let node = tree.node_mut(*settled);
    let visits = node.visits as f32;
    let (mut q, draw) = (value.q() - node.q, value.draw - node.draw);
    (node.q, node.draw) = (value.q(), value.draw);
    for id in before.iter().rev() {
        let node = tree.node_mut(*id);
        if node.proof != Proof::Open {
            return;
        }
        q = -q;
        let share = visits / node.visits.max(1) as f32;
        node.q += q * share;
        node.draw += draw * share;
    }
}

/// Proves all that follows from the positions in which the game is over. The root's own proof
/// stays open, as it depends on the moves that may be played there.
pub(super) fn prove_all(tree: &mut Tree) {
    // Children come after their parents.
    for id in tree.ids().rev() {
        tree.node_mut(id).proof = match Proof::by_rule(tree.node(id).kind) {
            _ if id == NodeId::ROOT => Proof::Open,
            Proof::Open => tree.prove(id, |_| true),
            known => known,
        };
    }
}

/// Adds the position after a mating move to a node on which `game` stands, without a visit.
pub(super) fn add_mate(tree: &mut Tree, at: NodeId, game: &mut GameHistory, mate: Move) {
    let packed = PackedMove::pack(mate);
    let edges = tree.edges_mut(at);
    let Some(mut place) = edges.iter().position(|edge| edge.packed == packed) else {
        return;
    };
    if edges[place].child().is_none() {
        // Below the root, moves with a child come first.
        if at != NodeId::ROOT {
            edges.swap(0, place);
            place = 0;
        }
        game.push(mate);
        let edge = tree.edge_id(at, place);
        let child = tree.add_child(edge, at, game.entry());
        game.pop();
        let node = tree.node_mut(child);
        (node.kind, node.proof) = (NodeKind::Mated, Proof::Lost(0));
        node.q = Wdl::LOSS.q();
    }
}

impl Search {
    /// Proves what it can of a root that was not looked at yet, on whose position `game` stands: by what
    /// a kept subtree has proven, or with the solver by a mate in one.
    pub(super) fn prove_root(&mut self, game: &mut GameHistory, settings: &Settings) {
        if settings.proofs == Proofs::Ignored || self.proof.is_some() {
            return;
        }
        if settings.params.solver {
            let mut moves = game.position().legal_moves();
            moves.retain(|m| {
                self.allowed.is_empty() || self.allowed.contains(&PackedMove::pack(*m))
            });
            if let Some(mate) = find_mate(game.position(), &moves) {
                add_mate(&mut self.tree, NodeId::ROOT, game, mate);
            }
        }
        self.proof = Some(self.prove_by_moves());
    }

    /// Draws the conclusions from the leaf of `path`, whose value was known.
    pub(super) fn conclude(&mut self, path: &[NodeId], settings: &Settings) {
        if settings.proofs != Proofs::Ignored && conclude(&mut self.tree, path) {
            self.proof = Some(self.prove_by_moves());
        }
    }

    /// What follows for the root from the moves that it may play.
    fn prove_by_moves(&self) -> Proof {
        let allowed = |edge: &Edge| is_allowed(edge, &self.allowed);
        self.tree.prove(NodeId::ROOT, allowed)
    }

    /// Whether the root is proven, so that the search is over.
    pub(super) const fn is_proven(&self, proofs: Proofs) -> bool {
        match self.proof {
            None | Some(Proof::Open) => false,
            Some(Proof::Drawn) => matches!(proofs, Proofs::End),
            Some(Proof::Won(_) | Proof::Lost(_)) => !matches!(proofs, Proofs::Ignored),
        }
    }

    /// Whether it is proven that the root's mover wins or loses.
    pub(super) const fn is_decided(&self) -> bool {
        self.is_proven(Proofs::EndIfDecisive)
    }

    /// The root's edge that decides, if its mover wins or loses for certain: the shortest way to mate, or
    /// the longest until being mated; of equals the first in canonical order.
    pub(super) fn decided_edge(&self) -> Option<usize> {
        if !self.is_decided() {
            return None;
        }
        let edges = self.tree.edges_of_root();
        let rank = |place: &usize| {
            let edge = &edges[*place];
            let (wins, plies) = match self.tree.proof_after(edge) {
                Proof::Lost(plies) => (true, -i32::from(plies)),
                Proof::Won(plies) => (false, i32::from(plies)),
                Proof::Open | Proof::Drawn => (false, i32::MIN),
            };
            (wins, plies, Reverse(edge.packed))
        };
        (0..edges.len()).max_by_key(rank)
    }
}

#[cfg(test)]
mod tests;
