//! Giving a leaf its priors.

use super::softmax::softmax;
use crate::evaluator::Wdl;
use crate::tree::{NodeId, Tree};

/// Opens a node that was asked about: its edges, still in the order of `logits`, get the softmax
/// of the logits divided by the temperature as priors.
pub(crate) fn expand(tree: &mut Tree, leaf: NodeId, logits: &[f32], temperature: f32, value: Wdl) {
    let mut edges = tree.edges_mut(leaf).iter_mut();
    softmax(logits, temperature, |prior| {
        if let Some(edge) = edges.next() {
            edge.prior = prior;
        }
    });
    tree.open(leaf, value.q());
}
