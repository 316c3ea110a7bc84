//! Leaves that wait for their evaluation.

use crate::cache::CacheKey;
use crate::evaluator::{Batch, Evaluator};
use crate::tree::NodeId;

/// One batch on its way: the positions to evaluate, and where their answers belong.
///
/// It belongs to the caller, so that one batch can be gathered while another is computed.
#[derive(Debug)]
pub struct Gathered {
    pub(super) batch: Batch,
    /// A key for each position, where there is a cache.
    pub(super) keys: Vec<CacheKey>,
    /// The walks to the batch's leaves, in its order.
    pub(super) leaves: Paths,
    /// Walks that met a leaf under way; they only keep later walks away from there.
    pub(super) collisions: Paths,
    /// The tree to which all this belongs.
    pub(super) generation: u64,
}

impl Gathered {
    /// Nothing yet, for this evaluator's encodings.
    pub fn new(evaluator: &dyn Evaluator) -> Self {
        Self {
            batch: Batch::new(evaluator.input(), evaluator.policy()),
            keys: Vec::new(),
            leaves: Paths::default(),
            collisions: Paths::default(),
            generation: 0,
        }
    }

    /// The positions to evaluate; may be empty.
    pub const fn batch(&self) -> &Batch {
        &self.batch
    }

    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.keys.clear();
        self.leaves.clear();
        self.collisions.clear();
    }
}

/// Walks, one after the other.
#[derive(Debug, Default)]
pub(super) struct Paths {
    nodes: Vec<NodeId>,
    ends: Vec<usize>,
}

impl Paths {
    pub(super) fn push(&mut self, path: &[NodeId]) {
        self.nodes.extend_from_slice(path);
        self.ends.push(self.nodes.len());
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[NodeId]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.nodes[start..*end])
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.ends.clear();
    }
}
