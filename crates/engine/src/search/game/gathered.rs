//! Leaves that wait for their evaluation.

use crate::cache::CacheKey;
use crate::evaluator::{Batch, Evaluator};
use crate::search::Pending;

/// One batch on its way: the positions to evaluate, and where their answers belong.
///
/// It belongs to the caller, so that one batch can be gathered while another is computed.
#[derive(Debug)]
pub struct Gathered {
    pub(super) batch: Batch,
    /// A key for each position, where there is a cache.
    pub(super) keys: Vec<CacheKey>,
    pub(super) pending: Pending,
    /// The tree to which all this belongs.
    pub(super) generation: u64,
}

impl Gathered {
    /// Nothing yet, for this evaluator's encodings.
    pub fn new(evaluator: &dyn Evaluator) -> Self {
        Self {
            batch: Batch::new(evaluator.input(), evaluator.policy()),
            keys: Vec::new(),
            pending: Pending::default(),
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
        self.pending.clear();
    }
}
