//! Giving a leaf its priors.

use crate::evaluator::Wdl;
use crate::tree::{NodeId, Tree};

/// Opens a node that was asked about: its edges, still in the order of `logits`, get the softmax
/// of the logits as priors and are sorted.
pub(super) fn expand(tree: &mut Tree, leaf: NodeId, logits: &[f32], value: Wdl) {
    let edges = tree.edges_mut(leaf);
    for (edge, logit) in edges.iter_mut().zip(logits) {
        edge.prior = *logit;
    }
    let highest = edges
        .iter()
        .map(|edge| edge.prior)
        .fold(f32::NEG_INFINITY, f32::max);
    edges
        .iter_mut()
        .for_each(|edge| edge.prior = (edge.prior - highest).exp());
    let sum: f32 = edges.iter().map(|edge| edge.prior).sum();
    edges.iter_mut().for_each(|edge| edge.prior /= sum);
    tree.open(leaf, value.q());
}
