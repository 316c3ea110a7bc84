//! The memory that bodies of requests take while they are received.
//!
//! Two rooms: short bodies (JSON) have one of their own, so that uploads cannot take everybody's
//! word away. Memory is taken for bytes that are there, not for those that are announced, and one
//! address may have an eighth of a room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that a permit stands for.
const UNIT: usize = 1 << 10;
/// Longest body that goes to the room for short ones, in bytes.
const SHORT: u64 = 256 << 10;
/// How much smaller the room for short bodies is.
const SHORT_ROOM: usize = 16;
/// One address may have this part of a room.
const SHARE: usize = 8;

/// Both rooms.
#[derive(Debug)]
pub(super) struct Bodies {
    uploads: Arc<BodyBudget>,
    short: Arc<BodyBudget>,
}

impl Bodies {
    /// Memory budgets: this number of bytes for uploads, and a sixteenth of it for short bodies.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            uploads: BodyBudget::new(bytes),
            short: BodyBudget::new(bytes / SHORT_ROOM),
        }
    }

    /// A place without any bytes yet, for a body of at most `longest` bytes.
    pub(super) fn place(&self, address: Option<IpAddr>, longest: Option<u64>) -> BodyRoom {
        let short = longest.is_some_and(|longest| longest <= SHORT);
        let room = if short { &self.short } else { &self.uploads };
        BodyRoom(Some(Reservation {
            room: room.clone(),
            address,
            units: 0,
            permits: None,
        }))
    }
}

#[derive(Debug)]
struct BodyBudget {
    all: Arc<Semaphore>,
    /// Most units of one address.
    share: usize,
    shares: Mutex<HashMap<IpAddr, usize>>,
}

impl BodyBudget {
    fn new(bytes: usize) -> Arc<Self> {
        let units = (bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            all: Arc::new(Semaphore::new(units)),
            share: (units / SHARE).max(1),
            shares: Mutex::default(),
        })
    }
}

/// Memory for a body, given back when it is dropped.
#[derive(Debug)]
pub struct BodyRoom(Option<Reservation>);

#[derive(Debug)]
struct Reservation {
    room: Arc<BodyBudget>,
    address: Option<IpAddr>,
    units: usize,
    permits: Option<OwnedSemaphorePermit>,
}

impl BodyRoom {
    /// Memory that is not counted.
    pub(super) fn unlimited() -> Self {
        Self(None)
    }

    /// Grows the reservation to this number of bytes in all, or tells that other bodies, or others
    /// of the same address, have taken what there is. Takes twice what it had at the least, as a
    /// vector does, if there is that much.
    #[must_use]
    pub fn hold(&mut self, bytes: usize) -> bool {
        let Some(taken) = &mut self.0 else {
            return true;
        };
        let needed = bytes.div_ceil(UNIT);
        needed <= taken.units || taken.grow(needed.max(2 * taken.units)) || taken.grow(needed)
    }
}

impl Reservation {
    fn grow(&mut self, units: usize) -> bool {
        let more = units - self.units;
        let Ok(permits) = u32::try_from(more) else {
            return false;
        };
        let mut shares = self.room.shares.lock();
        let of_address = self.address.map(|address| {
            (
                address,
                shares.get(&address).copied().unwrap_or_default() + more,
            )
        });
        if of_address.is_some_and(|(_, units)| units > self.room.share) {
            return false;
        }
        let Ok(permits) = self.room.all.clone().try_acquire_many_owned(permits) else {
            return false;
        };
        match &mut self.permits {
            Some(own) => own.merge(permits),
            none => *none = Some(permits),
        }
        self.units = units;
        shares.extend(of_address);
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(address) = self.address else {
            return;
        };
        let mut shares = self.room.shares.lock();
        if let Some(units) = shares.get_mut(&address) {
            *units -= self.units;
            if *units == 0 {
                shares.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn upload(bodies: &Bodies, address: Option<&str>) -> BodyRoom {
        bodies.place(address.map(|text| text.parse().unwrap()), None)
    }

    #[test]
    fn bodies_share_their_room_and_give_it_back() {
        let bodies = Bodies::new(MIB);
        let (mut first, mut second) = (upload(&bodies, None), upload(&bodies, None));
        assert!(first.hold(600 << 10) && !second.hold(600 << 10));
        assert!(
            first.hold(1000 << 10),
            "all that is left, if not twice as much"
        );
        assert!(!second.hold(100 << 10));
        drop(first);
        assert!(second.hold(MIB) && !second.hold(MIB + 1));
    }

    #[test]
    fn a_body_takes_room_for_what_is_there() {
        let bodies = Bodies::new(MIB);
        let mut begun: Vec<_> = (0..1000).map(|_| upload(&bodies, None)).collect();
        assert!(begun.iter_mut().all(|room| room.hold(1)));
        assert!(begun.iter_mut().all(|room| room.hold(UNIT)));
        assert!(upload(&bodies, None).hold(20 * UNIT));
    }

    #[test]
    fn an_address_has_its_share_and_short_bodies_their_own_room() {
        let bodies = Bodies::new(MIB);
        let mut one = upload(&bodies, Some("192.0.2.1"));
        assert!(one.hold(MIB / SHARE) && !one.hold(MIB / SHARE + 1));
        assert!(!upload(&bodies, Some("192.0.2.1")).hold(1));
        let mut others = upload(&bodies, None);
        assert!(others.hold(MIB - MIB / SHARE) && !upload(&bodies, Some("192.0.2.2")).hold(1));
        assert!(bodies.place(None, Some(SHORT)).hold(30 << 10));
        drop(one);
        assert!(upload(&bodies, Some("192.0.2.1")).hold(MIB / SHARE));
        assert!(bodies.uploads.shares.lock().is_empty());
    }
}
