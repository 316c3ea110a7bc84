//! Permits: how many there may be at once of one address, and of all together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// All permits of an address are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPermit;

/// How many there may be at once of each address.
#[derive(Debug)]
pub(super) struct AddressLimit {
    most: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl AddressLimit {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    pub(super) fn permit(self: &Arc<Self>, address: IpAddr) -> Result<AddressPermit, NoPermit> {
        let mut taken = self.taken();
        let count = taken.entry(address).or_default();
        if *count >= self.most {
            return Err(NoPermit);
        }
        *count += 1;
        Ok(AddressPermit {
            limit: self.clone(),
            address,
        })
    }

    pub(super) fn taken(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock()
    }
}

/// One of an address, until it is dropped.
#[derive(Debug)]
pub struct AddressPermit {
    limit: Arc<AddressLimit>,
    address: IpAddr,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut taken = self.limit.taken();
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// How many there may be at once of all together, and of each address.
#[derive(Debug)]
pub(super) struct SharedLimit {
    all: Arc<Semaphore>,
    each: Arc<AddressLimit>,
}

impl SharedLimit {
    pub(super) fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each: AddressLimit::new(each),
        }
    }

    /// `None` if all permits are taken. This machine has no address, and no limit of its own.
    pub(super) fn permit(&self, address: Option<IpAddr>) -> Option<SharedPermit> {
        let one = address.map(|address| self.each.permit(address));
        Some(SharedPermit {
            _one: one.transpose().ok()?,
            _all: self.all.clone().try_acquire_owned().ok()?,
        })
    }
}

/// One of all, until it is dropped.
#[derive(Debug)]
pub struct SharedPermit {
    _one: Option<AddressPermit>,
    _all: OwnedSemaphorePermit,
}
