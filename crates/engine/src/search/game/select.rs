//! PUCT selection where visits are under way and results proven.
//!
//! A visit under way counts as a visit whose value is not known yet: it lowers its move's
//! exploration term, so that the next walk goes elsewhere, and leaves the mean alone (Lc0 calls this
//! virtual loss too; AlphaGo counted a loss, which distorts more). With nothing under way and
//! nothing proven the choice is that of self-play's search.

use rookery_common::chess::PackedMove;

use super::virtual_loss::VirtualLoss;
use crate::search::Puct;
use crate::tree::{Edge, NodeId, Proof, Tree};

/// The place of the edge to walk, none if none is worth walking.
pub(super) fn select(
    tree: &Tree,
    virtual_loss: &VirtualLoss,
    at: NodeId,
    puct: &Puct,
    allowed: &[PackedMove],
) -> Option<usize> {
    let node = tree.node(at);
    let u = puct.factor(node.visits + virtual_loss.in_flight(at));
    let (mut best, mut new) = (None::<Candidate>, None::<Candidate>);
    let mut seen = 0.0;
    for (place, edge) in tree.edges(at).iter().enumerate() {
        if at == NodeId::ROOT && !is_allowed(edge, allowed) {
            continue;
        }
        let Some(child) = edge.child() else {
            consider(&mut new, place, u * edge.prior);
            // Below the root, the first move never tried is the one to try next.
            match at {
                NodeId::ROOT => continue,
                _ => break,
            }
        };
        let (stats, under_way) = (tree.node(child), virtual_loss.in_flight(child));
        let explore = u * edge.prior / (1 + stats.visits + under_way) as f32;
        if stats.visits == 0 {
            consider(&mut new, place, explore);
            continue;
        }
        seen += edge.prior;
        // The opponent can win after this move.
        if !matches!(stats.proof, Proof::Won(_)) {
            consider(&mut best, place, explore - stats.q);
        }
    }
    let urgency = puct.first_play(node.q, seen);
    match (best, new) {
        (Some(best), Some(new)) if urgency + new.score > best.score => Some(new.place),
        (Some(best), _) => Some(best.place),
        (None, new) => new.map(|new| new.place),
    }
}

/// Whether the root may play a move; an empty list allows all.
pub(super) fn is_allowed(edge: &Edge, allowed: &[PackedMove]) -> bool {
    allowed.is_empty() || allowed.contains(&edge.packed)
}

#[derive(Clone, Copy)]
struct Candidate {
    place: usize,
    score: f32,
}

fn consider(best: &mut Option<Candidate>, place: usize, score: f32) {
    if best.is_none_or(|best| score > best.score) {
        *best = Some(Candidate { place, score });
    }
}
