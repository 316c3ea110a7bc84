//! How much of the coordinator one address or one contributor may have.
//!
//! ```text
//! connection ─ Peer ─> ClientAddress (proxies) ─> requests a second of the address
//!                                  token's owner ─> requests a second, MiB an hour of the contributor
//! ```
//!
//! [`address`] finds out who asks, [`rate`] limits rates, [`permits`] what there is at once, [`bodies`]
//! memory, [`settings`] is what operators write.
//! Requests from this machine itself are not limited: they are a load test or the operator's own,
//! or come from a proxy that was not named in `--trusted-proxies`.

pub mod address;
pub mod bodies;
pub mod permits;
pub mod rate;
pub mod settings;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rookery_common::ids::UserId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use address::{ClientAddress, Proxies, around, limited_as};
use bodies::{Bodies, BodyRoom};
use permits::{AddressLimit, AddressPermit, NoPermit, SharedLimit, SharedPermit};
use rate::{Rate, RateLimiter};
use settings::LimitArgs;

use crate::concurrency::{FairLimit, Permit};
use crate::db::LeaseQuotas;

/// How much more than a second's worth may come at once, in seconds.
const BURST_SECONDS: f64 = 20.0;
/// Of what a contributor may upload in an hour, the part that may be refused, or held because of a quarantine: such chunks are
/// verified and perhaps stored as others are, and nobody trains on them.
const REFUSED: f64 = 1.0 / 64.0;
/// How many leases a job allows whose games came in: the one that it was, and one more.
const RETURNED: f64 = 2.0;
/// How many times the registrations of one address may come from the addresses around it.
const NEIGHBOURS: f64 = 4.0;
/// How many requests of one address that change nothing are looked into at once; more wait behind these. Some take the
/// ledger long, and those of others must find their turn.
const ADDRESS_READS: usize = 16;
/// What part of the files that are sent at once may go to one address.
const ADDRESS_FILES: usize = 8;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Too much was asked; it may be asked again after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch(pub Duration);

/// A rate limit; without a rate there is none. This machine has no key.
#[derive(Debug)]
struct Limit<K>(Option<RateLimiter<K>>);

impl<K: Hash + Eq + Copy> Limit<K> {
    /// This many units in a period, all of which may come at once; 0 is no limit.
    fn per(period: Duration, units: f64) -> Self {
        Self::new(units / period.as_secs_f64(), units)
    }

    /// This many units a second, of which [`BURST_SECONDS`] may come at once; 0 is no limit.
    fn by_second(units: f64) -> Self {
        Self::new(units, units * BURST_SECONDS)
    }

    fn new(per_second: f64, burst: f64) -> Self {
        let burst = burst.max(1.0);
        Self((per_second > 0.0).then(|| RateLimiter::new(Rate { per_second, burst })))
    }

    /// Takes units, if there is room for them.
    fn take(&self, key: Option<K>, units: f64) -> Result<(), TooMuch> {
        match (&self.0, key) {
            (Some(limiter), Some(key)) => limiter.take(key, units, Instant::now()).map_err(TooMuch),
            _ => Ok(()),
        }
    }

    /// Counts units that were taken already.
    fn charge(&self, key: Option<K>, units: f64) {
        if let (Some(limiter), Some(key)) = (&self.0, key) {
            limiter.charge(key, units, Instant::now());
        }
    }

    fn pay_back(&self, key: K, units: f64) {
        if let Some(limiter) = &self.0 {
            limiter.pay_back(key, units, Instant::now());
        }
    }
}

/// All limits, with what they count.
#[derive(Debug)]
pub struct Limits {
    pub proxies: Proxies,
    /// Connections at once.
    pub connections: usize,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long a body may pause, and in what time a part of an answer must be taken.
    pub stall: Duration,
    address_connections: Arc<AddressLimit>,
    address_answers: Arc<AddressLimit>,
    reads: FairLimit<IpAddr>,
    files: SharedLimit,
    requests: Limit<IpAddr>,
    registrations: Limit<IpAddr>,
    registrations_around: Limit<IpNet>,
    contributors: Limit<UserId>,
    uploads: Limit<UserId>,
    refused: Limit<UserId>,
    daily_uploads: Limit<UserId>,
    daily_refused: Limit<UserId>,
    unreturned: Limit<UserId>,
    listeners: SharedLimit,
    bodies: Option<Bodies>,
    leases: LeaseQuotas,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(LimitArgs::default())
    }
}

impl Limits {
    /// The limits that were written, and defaults for the rest.
    pub fn new(args: LimitArgs) -> Self {
        let proxies = Proxies {
            trusted: args.trusted_proxies.unwrap_or_default(),
            header: args.proxy_header.unwrap_or_default(),
        };
        let seconds =
            |given: Option<u32>, usual| Duration::from_secs(given.unwrap_or(usual).into());
        let upload_mib = args.upload_mib.unwrap_or(16_384.0);
        let daily_mib = args.daily_upload_mib.unwrap_or(131_072.0);
        let registrations = args.registrations.unwrap_or(60.0);
        let body_mib = args.body_mib.unwrap_or(2048) as usize;
        Self {
            proxies,
            connections: unlimited(args.connections, 32_768),
            idle: seconds(args.idle_seconds, 75),
            stall: seconds(args.stall_seconds, 30),
            address_connections: AddressLimit::new(unlimited(args.address_connections, 4096)),
            address_answers: AddressLimit::new(unlimited(args.address_answers, 1024)),
            reads: FairLimit::new(ADDRESS_READS),
            files: SharedLimit::new(Semaphore::MAX_PERMITS, Semaphore::MAX_PERMITS),
            requests: Limit::by_second(args.address_rate.unwrap_or(500.0)),
            contributors: Limit::by_second(args.contributor_rate.unwrap_or(500.0)),
            registrations: Limit::per(HOUR, registrations),
            registrations_around: Limit::per(HOUR, registrations * NEIGHBOURS),
            uploads: Limit::per(HOUR, upload_mib),
            refused: Limit::per(HOUR, upload_mib * REFUSED),
            daily_uploads: Limit::per(DAY, daily_mib),
            daily_refused: Limit::per(DAY, daily_mib * REFUSED),
            unreturned: Limit::per(DAY, args.unreturned_leases.unwrap_or(4096.0)),
            listeners: SharedLimit::new(
                unlimited(args.listeners, 4096),
                unlimited(args.address_listeners, 64),
            ),
            bodies: (body_mib > 0).then(|| Bodies::new(body_mib.saturating_mul(1 << 20))),
            leases: LeaseQuotas {
                contributor: quota(args.contributor_leases, 4096),
                worker: quota(args.worker_leases, 64),
            },
        }
    }

    /// The same where no more files than this can be open: at most half of them are connections,
    /// and at most a quarter files that are sent, so that the ledger and the store keep theirs.
    #[must_use]
    pub fn within(self, open_files: u64) -> Self {
        let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let sent = (open_files / 4).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            connections: self.connections.min(open_files / 2).max(1),
            files: SharedLimit::new(sent, (sent / ADDRESS_FILES).max(1)),
            ..self
        }
    }

    /// Counts a request of an address.
    pub fn request(&self, client: Option<ClientAddress>) -> Result<(), TooMuch> {
        self.requests.take(key(client), 1.0)
    }

    /// Counts a registration from an address.
    pub fn registration(&self, client: Option<ClientAddress>) -> Result<(), TooMuch> {
        let Some(ClientAddress(address)) = client else {
            return Ok(());
        };
        // The address first: what its own limit refuses must cost its neighbours nothing.
        self.registrations.take(limited_as(address), 1.0)?;
        self.registrations_around.take(around(address), 1.0)
    }

    /// Counts a request of a contributor.
    pub fn contributor(&self, client: Option<ClientAddress>, user: UserId) -> Result<(), TooMuch> {
        self.contributors.take(key(client).map(|_| user), 1.0)
    }

    /// Counts what a contributor uploads.
    pub fn upload(
        &self,
        client: Option<ClientAddress>,
        user: UserId,
        bytes: usize,
    ) -> Result<(), TooMuch> {
        let who = key(client).map(|_| user);
        self.refused.take(who, 0.0)?;
        self.daily_refused.take(who, 0.0)?;
        // The hour first: what it refuses comes again, and must not cost the day anything.
        self.uploads.take(who, mib(bytes))?;
        self.daily_uploads.take(who, mib(bytes))
    }

    /// Whether a contributor may take one more job: who takes many and returns few has to wait.
    pub fn may_lease(&self, client: Option<ClientAddress>, user: UserId) -> Result<(), TooMuch> {
        self.unreturned.take(key(client).map(|_| user), 0.0)
    }

    /// Counts a job that a contributor has taken.
    pub fn leased(&self, client: Option<ClientAddress>, user: UserId) {
        self.unreturned.charge(key(client).map(|_| user), 1.0);
    }

    /// Counts games that came in: this part of a job's, 0 to 1.
    pub fn returned(&self, user: UserId, part: f64) {
        self.unreturned.pay_back(user, RETURNED * part);
    }

    /// Counts bytes of a contributor's chunk that was refused or is held.
    pub fn refused(&self, client: Option<ClientAddress>, user: UserId, bytes: usize) {
        let who = key(client).map(|_| user);
        self.refused.charge(who, mib(bytes));
        self.daily_refused.charge(who, mib(bytes));
    }

    /// How many leases may be out to a contributor and to one worker of it.
    pub fn leases(&self, client: Option<ClientAddress>) -> LeaseQuotas {
        key(client).map(|_| self.leases).unwrap_or_default()
    }

    /// A permit to listen to events; `None` if all are taken, those of the address or those of all.
    pub fn listener(&self, client: Option<ClientAddress>) -> Option<SharedPermit> {
        self.listeners.permit(key(client))
    }

    /// A permit for a connection from an address. Proxies and this machine need none.
    pub fn connection(&self, peer: IpAddr) -> Result<Option<AddressPermit>, NoPermit> {
        let address = limited_as(peer).filter(|_| !self.proxies.trust(peer.to_canonical()));
        let permit = address.map(|address| self.address_connections.permit(address));
        permit.transpose()
    }

    /// A permit for an answer to an address. This machine needs none.
    pub fn answer(&self, client: Option<ClientAddress>) -> Result<Option<AddressPermit>, NoPermit> {
        let permit = key(client).map(|address| self.address_answers.permit(address));
        permit.transpose()
    }

    /// Waits until fewer requests of the address that change nothing are looked into. This machine does not wait.
    pub async fn read(&self, client: Option<ClientAddress>) -> Option<Permit> {
        match key(client) {
            Some(address) => Some(self.reads.next(address).await),
            None => None,
        }
    }

    /// A permit to be sent a file; `None` if all are taken, those of the address or those of all.
    pub fn file(&self, client: Option<ClientAddress>) -> Option<SharedPermit> {
        self.files.permit(key(client))
    }

    /// Room for a body of at most `longest` bytes, which grows as they arrive.
    pub fn body(&self, client: Option<ClientAddress>, longest: Option<u64>) -> BodyRoom {
        match &self.bodies {
            Some(bodies) => bodies.place(key(client), longest),
            None => BodyRoom::unlimited(),
        }
    }
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A number where 0 means as many as can be.
fn unlimited(given: Option<u32>, usual: u32) -> usize {
    match given.unwrap_or(usual) {
        0 => Semaphore::MAX_PERMITS,
        number => number as usize,
    }
}

/// A number where 0 is no limit.
fn quota(given: Option<u32>, usual: u32) -> Option<u32> {
    Some(given.unwrap_or(usual)).filter(|most| *most > 0)
}

fn key(client: Option<ClientAddress>) -> Option<IpAddr> {
    client.and_then(|ClientAddress(address)| limited_as(address))
}
