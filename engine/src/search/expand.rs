//! Giving a leaf its priors.

use crate::evaluator::Wdl;
use crate::tree::{NodeId, Tree};

/// Opens a node that was asked about: its edges, still in the order of `logits`, get the softmax
/// of the logits as priors.
pub(crate) fn expand(tree: &mut Tree, leaf: NodeId, logits: &[f32], value: Wdl) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    let edges = tree.edges_mut(leaf);
    for (edge, logit) in edges.iter_mut().zip(logits) {
        edge.prior = (logit - highest).exp();
        sum += edge.prior;
    }
    let share = 1.0 / sum;
    edges.iter_mut().for_each(|edge| edge.prior *= share);
    tree.open(leaf, value.q());
}
