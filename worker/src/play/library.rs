//! What all threads need of the networks in use, once for all of them: the networks themselves, and a cache of
//! evaluations for each. Both are there for as long as a thread has them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rookery_common::ids::ContentHash;
use rookery_engine::{BackendError, EvaluationCache, LoadedNetwork};
use rookery_model::Weights;

use crate::machine::Machine;
use crate::networks::NetworkFile;

/// Positions that a cache holds: 80 MB when it is full.
const POSITIONS: usize = 400_000;

/// The networks in use and their caches.
#[derive(Debug, Default)]
pub(super) struct Library {
    networks: Known<dyn LoadedNetwork>,
    caches: Known<EvaluationCache>,
}

impl Library {
    /// The network of a file, which is read unless a thread has it.
    pub(super) fn network(
        &self,
        file: &NetworkFile,
        machine: &Machine,
    ) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        self.networks.get_or(file.hash, || {
            let (_, weights) = Weights::read(&file.path)?;
            machine.backend.load(&weights)
        })
    }

    /// The cache of a network.
    pub(super) fn cache(&self, network: ContentHash) -> Arc<EvaluationCache> {
        let make = || Ok::<_, Infallible>(Arc::new(EvaluationCache::new(POSITIONS)));
        let Ok(cache) = self.caches.get_or(network, make);
        cache
    }
}

/// What is in use, by network.
#[derive(Debug)]
struct Known<T: ?Sized>(Mutex<HashMap<ContentHash, Weak<T>>>);

impl<T: ?Sized> Default for Known<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized> Known<T> {
    /// What belongs to a network, made if nobody has it. Who asks meanwhile waits, so that nothing is made twice.
    fn get_or<E>(
        &self,
        network: ContentHash,
        make: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Result<Arc<T>, E> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = known.get(&network).and_then(Weak::upgrade) {
            return Ok(one);
        }
        let one = make()?;
        known.insert(network, Arc::downgrade(&one));
        Ok(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_made_once_and_gone_with_its_last_user() {
        let known = Known::<u32>::default();
        let network = ContentHash::of(b"network");
        let get =
            |number: Result<u32, &'static str>| known.get_or(network, || number.map(Arc::new));
        assert_eq!(get(Err("cannot be read")), Err("cannot be read"));
        let first = get(Ok(1)).unwrap();
        let second = get(Ok(2)).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        assert_eq!(*get(Ok(3)).unwrap(), 3);
    }
}
