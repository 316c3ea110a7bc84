//! What all threads need of the networks in use, once for all of them: the networks themselves, and a cache of
//! evaluations for each. Both are there for as long as a thread has them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_engine::{Backend, BackendError, EvaluationCache, LoadedNetwork};
use rookery_model::{ModelError, Weights};

use crate::device_pool::DevicePool;
use crate::networks::NetworkFile;

/// Positions that a cache holds: 80 MB when it is full.
const POSITIONS: usize = 400_000;

/// The networks in use and their caches.
#[derive(Debug, Default)]
pub(super) struct LoadedNetworks {
    /// By network and the backend that computes it.
    networks: WeakMap<(ContentHash, usize), dyn LoadedNetwork>,
    caches: WeakMap<ContentHash, EvaluationCache>,
}

impl LoadedNetworks {
    /// The network of a file on the first device of a lane that computes it. The file is read unless a thread has the
    /// network there.
    pub(super) fn network(
        &self,
        file: &NetworkFile,
        devices: &DevicePool,
        lane: usize,
    ) -> Result<OnDevice, BackendError> {
        let (backend, network) = devices.try_each(lane, file.hash, |backend| {
            // A network in use keeps its backend, so that no other has this address.
            let address = std::ptr::from_ref(backend).addr();
            let loaded = self.networks.get_or((file.hash, address), || {
                let (_, weights) = Weights::read(&file.path).map_err(LoadError::Read)?;
                backend.load(&weights).map_err(LoadError::Device)
            });
            match loaded {
                Err(LoadError::Device(error)) => Err(error),
                Err(LoadError::Read(error)) => Ok(Err(error)),
                Ok(network) => Ok(Ok(network)),
            }
        })?;
        let network = network?;
        Ok(OnDevice { backend, network })
    }

    /// The cache of a network.
    pub(super) fn cache(&self, network: ContentHash) -> Arc<EvaluationCache> {
        let make = || Ok::<_, Infallible>(Arc::new(EvaluationCache::new(POSITIONS)));
        let Ok(cache) = self.caches.get_or(network, make);
        cache
    }
}

/// A network and what computes it.
pub(super) struct OnDevice {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) network: Arc<dyn LoadedNetwork>,
}

/// Why a network is not loaded: no other device would read its file.
enum LoadError {
    Read(ModelError),
    Device(BackendError),
}

/// What is in use, by key.
#[derive(Debug)]
struct WeakMap<K, T: ?Sized>(Mutex<HashMap<K, Weak<T>>>);

impl<K, T: ?Sized> Default for WeakMap<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T: ?Sized> WeakMap<K, T> {
    /// The value of a key, made if it is not there. Concurrent callers wait, so that nothing is made twice.
    fn get_or<E>(&self, key: K, make: impl FnOnce() -> Result<Arc<T>, E>) -> Result<Arc<T>, E> {
        let mut known = self.0.lock();
        known.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(one);
        }
        let one = make()?;
        known.insert(key, Arc::downgrade(&one));
        Ok(one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_is_made_once_and_gone_with_its_last_user() {
        let known = WeakMap::<ContentHash, u32>::default();
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
