//! Evaluation caches, one for each network, shared by all threads for as long as one plays with
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rookery_common::ids::ContentHash;
use rookery_engine::EvaluationCache;

/// Positions that a cache holds: 80 MB when it is full.
const POSITIONS: usize = 400_000;

/// The caches of the networks in use.
#[derive(Debug, Default)]
pub struct Caches(Mutex<HashMap<ContentHash, Weak<EvaluationCache>>>);

impl Caches {
    /// The cache of a network.
    pub fn of(&self, network: ContentHash) -> Arc<EvaluationCache> {
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        caches.retain(|_, cache| cache.strong_count() > 0);
        if let Some(cache) = caches.get(&network).and_then(Weak::upgrade) {
            return cache;
        }
        let cache = Arc::new(EvaluationCache::new(POSITIONS));
        caches.insert(network, Arc::downgrade(&cache));
        cache
    }
}
