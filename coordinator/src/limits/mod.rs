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

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rookery_common::ids::UserId;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use address::{ClientAddress, Proxies, around, customer, limited_as};
use bodies::{Bodies, BodyRoom};
use permits::{AddressLimit, AddressPermit, NoPermit, SharedLimit, SharedPermit};
use rate::{Rate, RateLimiter};
use settings::LimitArgs;

use crate::db::LeaseQuotas;

/// How much more than a second's worth may come at once, in seconds.
const BURST_SECONDS: f64 = 20.0;
/// Of what a contributor may upload in an hour, the part that may be refused: refused chunks are
/// verified and perhaps stored as others are, and nothing in the ledger shows them.
const REFUSED: f64 = 1.0 / 64.0;
/// How many leases a job allows whose games came in: the one that it was, and one more.
const RETURNED: f64 = 2.0;
/// How many times the registrations of one address may come from the addresses around it.
const NEIGHBOURS: f64 = 4.0;
/// What part of the files that are sent at once may go to one address.
const ADDRESS_FILES: usize = 8;

/// Too much was asked; it may be asked again after this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuch(pub Duration);

/// All limits, with what they count.
#[derive(Debug)]
pub struct Limits {
    /// Proxies that are believed.
    pub proxies: Proxies,
    /// Connections at once.
    pub connections: usize,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long a body may pause, and in what time a part of an answer must be taken.
    pub stall: Duration,
    address_connections: Arc<AddressLimit>,
    address_answers: Arc<AddressLimit>,
    files: SharedLimit,
    requests: Option<RateLimiter<IpAddr>>,
    registrations: Option<RateLimiter<IpNet>>,
    registrations_around: Option<RateLimiter<IpNet>>,
    contributors: Option<RateLimiter<UserId>>,
    uploads: Option<RateLimiter<UserId>>,
    refused: Option<RateLimiter<UserId>>,
    daily_uploads: Option<RateLimiter<UserId>>,
    daily_refused: Option<RateLimiter<UserId>>,
    unreturned: Option<RateLimiter<UserId>>,
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
            files: SharedLimit::new(Semaphore::MAX_PERMITS, Semaphore::MAX_PERMITS),
            requests: by_second(args.address_rate.unwrap_or(500.0)),
            contributors: by_second(args.contributor_rate.unwrap_or(500.0)),
            registrations: by_hour(registrations),
            registrations_around: by_hour(registrations * NEIGHBOURS),
            uploads: by_hour(upload_mib),
            refused: by_hour(upload_mib * REFUSED),
            daily_uploads: by_day(daily_mib),
            daily_refused: by_day(daily_mib * REFUSED),
            unreturned: by_day(args.unreturned_leases.unwrap_or(4096.0)),
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
    ///
    /// # Errors
    ///
    /// [`TooMuch`] if there were too many.
    pub fn request(&self, client: Option<ClientAddress>) -> Result<(), TooMuch> {
        take(self.requests.as_ref(), key(client), 1.0)
    }

    /// Counts a registration from an address.
    ///
    /// # Errors
    ///
    /// [`TooMuch`] if there were too many.
    pub fn registration(&self, client: Option<ClientAddress>) -> Result<(), TooMuch> {
        let Some(ClientAddress(address)) = client else {
            return Ok(());
        };
        // The address first: what its own limit refuses must cost its neighbours nothing.
        for (limiter, block) in [
            (&self.registrations, customer(address)),
            (&self.registrations_around, around(address)),
        ] {
            take(limiter.as_ref(), block, 1.0)?;
        }
        Ok(())
    }

    /// Counts a request of a contributor.
    ///
    /// # Errors
    ///
    /// [`TooMuch`] if there were too many.
    pub fn contributor(&self, client: Option<ClientAddress>, user: UserId) -> Result<(), TooMuch> {
        take(self.contributors.as_ref(), key(client).map(|_| user), 1.0)
    }

    /// Counts what a contributor uploads.
    ///
    /// # Errors
    ///
    /// [`TooMuch`] if it was too much, or too much was refused before.
    pub fn upload(
        &self,
        client: Option<ClientAddress>,
        user: UserId,
        bytes: usize,
    ) -> Result<(), TooMuch> {
        let who = key(client).map(|_| user);
        take(self.refused.as_ref(), who, 0.0)?;
        take(self.daily_refused.as_ref(), who, 0.0)?;
        // The hour first: what it refuses comes again, and must not cost the day anything.
        take(self.uploads.as_ref(), who, mib(bytes))?;
        take(self.daily_uploads.as_ref(), who, mib(bytes))
    }

    /// Whether a contributor may take one more job: who takes many and returns few has to wait.
    ///
    /// # Errors
    ///
    /// [`TooMuch`] if too many were taken and not used.
    pub fn may_lease(&self, client: Option<ClientAddress>, user: UserId) -> Result<(), TooMuch> {
        take(self.unreturned.as_ref(), key(client).map(|_| user), 0.0)
    }

    /// Counts a job that a contributor has taken.
    pub fn leased(&self, client: Option<ClientAddress>, user: UserId) {
        if let (Some(limiter), Some(_)) = (&self.unreturned, key(client)) {
            limiter.charge(user, 1.0, Instant::now());
        }
    }

    /// Counts games that came in: this part of a job's, 0 to 1.
    pub fn returned(&self, user: UserId, part: f64) {
        if let Some(limiter) = &self.unreturned {
            limiter.pay_back(user, RETURNED * part, Instant::now());
        }
    }

    /// Counts bytes of a contributor's chunk that was refused.
    pub fn refused(&self, client: Option<ClientAddress>, user: UserId, bytes: usize) {
        if key(client).is_none() {
            return;
        }
        for limiter in [&self.refused, &self.daily_refused].into_iter().flatten() {
            limiter.charge(user, mib(bytes), Instant::now());
        }
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
    ///
    /// # Errors
    ///
    /// [`NoPermit`] if the address has too many.
    pub fn connection(&self, peer: IpAddr) -> Result<Option<AddressPermit>, NoPermit> {
        let address = limited_as(peer).filter(|_| !self.proxies.trust(peer.to_canonical()));
        let permit = address.map(|address| self.address_connections.permit(address));
        permit.transpose()
    }

    /// A permit for an answer to an address. This machine needs none.
    ///
    /// # Errors
    ///
    /// [`NoPermit`] if too many are being sent.
    pub fn answer(&self, client: Option<ClientAddress>) -> Result<Option<AddressPermit>, NoPermit> {
        let permit = key(client).map(|address| self.address_answers.permit(address));
        permit.transpose()
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

fn by_second<K: std::hash::Hash + Eq + Copy>(per_second: f64) -> Option<RateLimiter<K>> {
    let burst = (per_second * BURST_SECONDS).max(1.0);
    (per_second > 0.0).then(|| RateLimiter::new(Rate { per_second, burst }))
}

fn by_day<K: std::hash::Hash + Eq + Copy>(per_day: f64) -> Option<RateLimiter<K>> {
    let (per_second, burst) = (per_day / 86_400.0, per_day.max(1.0));
    (per_day > 0.0).then(|| RateLimiter::new(Rate { per_second, burst }))
}

fn by_hour<K: std::hash::Hash + Eq + Copy>(per_hour: f64) -> Option<RateLimiter<K>> {
    let (per_second, burst) = (per_hour / 3600.0, per_hour.max(1.0));
    (per_hour > 0.0).then(|| RateLimiter::new(Rate { per_second, burst }))
}

fn key(client: Option<ClientAddress>) -> Option<IpAddr> {
    client.and_then(|ClientAddress(address)| limited_as(address))
}

fn take<K: std::hash::Hash + Eq + Copy>(
    limiter: Option<&RateLimiter<K>>,
    key: Option<K>,
    units: f64,
) -> Result<(), TooMuch> {
    match (limiter, key) {
        (Some(limiter), Some(key)) => limiter.take(key, units, Instant::now()).map_err(TooMuch),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<ClientAddress> {
        text.parse().ok().map(ClientAddress)
    }

    #[test]
    fn an_address_has_so_many_connections_and_listeners_and_this_machine_any_number() {
        let limits = Limits::new(LimitArgs {
            address_connections: Some(2),
            listeners: Some(3),
            address_listeners: Some(2),
            trusted_proxies: Some(vec!["192.0.2.9/32".parse().unwrap()]),
            ..LimitArgs::default()
        });
        let connect = |text: &str| limits.connection(text.parse().unwrap());
        let held = [connect("192.0.2.1"), connect("192.0.2.1")];
        assert!(connect("192.0.2.1").is_err() && connect("192.0.2.2").is_ok());
        drop(held);
        assert!(connect("192.0.2.1").is_ok());
        let many: Vec<_> = (0..9)
            .flat_map(|_| [connect("127.0.0.1"), connect("192.0.2.9")])
            .collect();
        assert!(many.iter().all(Result::is_ok));
        let _held = [client("192.0.2.1"), client("192.0.2.1")].map(|c| limits.listener(c).unwrap());
        assert!(limits.listener(client("192.0.2.1")).is_none());
        let _third = limits.listener(client("127.0.0.1")).unwrap();
        assert!(
            limits.listener(client("192.0.2.2")).is_none(),
            "all places are taken"
        );
        assert!(limits.address_connections.taken().is_empty());
    }

    #[test]
    fn connections_and_files_fit_into_what_the_system_allows() {
        let limits = Limits::new(LimitArgs {
            connections: Some(0),
            ..LimitArgs::default()
        });
        let limits = limits.within(12);
        assert_eq!(limits.connections, 6);
        let files: Vec<_> = (0..3).map(|_| limits.file(None).unwrap()).collect();
        assert!(limits.file(None).is_none());
        drop(files);
        assert!(limits.file(None).is_some());
        let boundless = Limits::default().within(u64::MAX);
        assert_eq!(boundless.connections, 32_768);
    }

    #[test]
    fn nothing_is_limited_by_zero() {
        let limits = Limits::new(LimitArgs {
            address_rate: Some(0.0),
            contributor_rate: Some(0.0),
            registrations: Some(0.0),
            upload_mib: Some(0.0),
            body_mib: Some(0),
            address_answers: Some(0),
            contributor_leases: Some(0),
            worker_leases: Some(0),
            daily_upload_mib: Some(0.0),
            unreturned_leases: Some(0.0),
            ..LimitArgs::default()
        });
        let who = client("192.0.2.1");
        for _ in 0..100_000 {
            limits.request(who).unwrap();
            limits.registration(who).unwrap();
            limits.upload(who, UserId(1), 1 << 30).unwrap();
        }
        assert!(limits.body(who, None).hold(1 << 40));
        assert_eq!(limits.leases(who), LeaseQuotas::default());
    }

    #[test]
    fn one_address_has_a_share_of_the_files_that_are_sent() {
        let limits = Limits::default().within(1024);
        let (slow, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let taken: Vec<_> = (0..256).map_while(|_| limits.file(slow)).collect();
        assert_eq!(taken.len(), 32);
        assert!(limits.file(other).is_some());
    }

    #[test]
    fn what_an_address_is_refused_costs_its_neighbours_nothing() {
        let limits = Limits::new(LimitArgs {
            registrations: Some(10.0),
            ..LimitArgs::default()
        });
        let greedy = client("198.51.100.1");
        let registered = (0..1000).filter(|_| limits.registration(greedy).is_ok());
        assert_eq!(registered.count(), 10);
        limits.registration(client("198.51.100.2")).unwrap();
    }

    #[test]
    fn an_upload_that_the_hour_refuses_costs_the_day_nothing() {
        let limits = Limits::new(LimitArgs {
            upload_mib: Some(10.0),
            daily_upload_mib: Some(1000.0),
            ..LimitArgs::default()
        });
        let (who, user) = (client("192.0.2.1"), UserId(1));
        let upload = || limits.upload(who, user, 1 << 20);
        let (_, refused) = (0..2000).fold((0, 0), |(taken, refused), _| match upload() {
            Ok(()) => (taken + 1, refused),
            Err(_) => (taken, refused + 1),
        });
        assert!(refused > 1900, "{refused}");
        take(limits.daily_uploads.as_ref(), Some(user), 900.0).unwrap();
    }

    #[test]
    fn neighbours_register_as_often_as_a_few_addresses() {
        let limits = Limits::new(LimitArgs {
            registrations: Some(10.0),
            ..LimitArgs::default()
        });
        let registered = |address: &dyn Fn(u32) -> String| {
            let all = (0..200).map(|n| client(&address(n)));
            all.filter(|who| limits.registration(*who).is_ok()).count()
        };
        assert_eq!(registered(&|n| format!("2001:db8:0:{n:x}::1")), 10, "a /56");
        let spread = |n: u32| format!("2001:db8:1:{:x}::1", (n << 8) & 0xffff);
        assert_eq!(registered(&spread), 40, "a /48");
        assert_eq!(registered(&|n| format!("198.51.100.{n}")), 40, "a /24");
        assert_eq!(registered(&|_| "203.0.113.1".to_owned()), 10);
        assert_eq!(registered(&|_| "127.0.0.1".to_owned()), 200);
    }

    #[test]
    fn who_returns_games_may_take_any_number_of_jobs() {
        let limits = Limits::new(LimitArgs {
            unreturned_leases: Some(100.0),
            ..LimitArgs::default()
        });
        let (who, honest, idle) = (client("192.0.2.1"), UserId(1), UserId(2));
        for _ in 0..10_000 {
            // Half of the jobs are lost, and the others come in two parts.
            for _ in 0..2 {
                limits.may_lease(who, honest).unwrap();
                limits.leased(who, honest);
            }
            limits.returned(honest, 0.5);
            limits.returned(honest, 0.5);
        }
        let take = |user| {
            limits.may_lease(who, user)?;
            limits.leased(who, user);
            Ok::<_, TooMuch>(())
        };
        let taken = (0..1000).map_while(|_| take(idle).ok()).count();
        assert_eq!(taken, 101);
        let TooMuch(wait) = take(idle).unwrap_err();
        assert!(wait <= Duration::from_secs(864), "a hundredth of a day");
    }

    #[test]
    fn what_was_refused_in_a_day_is_paid_for() {
        let limits = Limits::new(LimitArgs {
            upload_mib: Some(0.0),
            daily_upload_mib: Some(64.0),
            ..LimitArgs::default()
        });
        let who = client("192.0.2.1");
        limits.upload(who, UserId(1), 1 << 20).unwrap();
        limits.refused(who, UserId(1), 2 << 20);
        let TooMuch(wait) = limits.upload(who, UserId(1), 1).unwrap_err();
        assert!(wait > Duration::from_secs(23 * 3600), "{wait:?}");
        limits.upload(who, UserId(2), 64 << 20).unwrap();
        limits.upload(who, UserId(2), 1 << 20).unwrap_err();
    }

    #[test]
    fn leases_are_limited_but_for_this_machine() {
        let limits = Limits::new(LimitArgs {
            worker_leases: Some(2),
            ..LimitArgs::default()
        });
        let quotas = limits.leases(client("192.0.2.1"));
        assert_eq!((quotas.contributor, quotas.worker), (Some(4096), Some(2)));
        assert_eq!(limits.leases(client("127.0.0.1")), LeaseQuotas::default());
    }
}
