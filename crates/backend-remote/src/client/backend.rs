//! The device of another machine behind the engine's [`Backend`].

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rookery_common::ids::ContentHash;
use rookery_common::network::NetworkSpec;
use rookery_common::protocol::jobs::Backend as NumericClass;
use rookery_engine::{Backend, BackendError, BackendInfo, Evaluator, LoadedNetwork, Precision};
use rookery_model::Weights;

use super::device::RemoteDevice;
use super::evaluator::RemoteEvaluator;
use super::link::{Link, NetworkError};
use crate::address::RemoteAddress;
use crate::error::{ConnectionError, tls_failure};
use crate::message::Offer;

/// How long a server that does not answer is tried again before the next device takes its place.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Between the first two attempts to connect; doubled after each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between attempts while everybody waits.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Between attempts while the next device computes.
const REPLACED_PAUSE: Duration = Duration::from_secs(30);

/// A device that a [`Server`](crate::Server) offers.
///
/// When the server does not answer it is tried again with back-off. After some patience the next device takes its
/// place, until the server is there again. The class of the results stays that of the server's device: let the next
/// device be as exact, for example the processor in 32 bits.
#[derive(Debug)]
pub struct RemoteBackend(pub(super) Arc<Remote>);

/// What a backend and its networks share.
#[derive(Debug)]
pub(super) struct Remote {
    device: RemoteDevice,
    info: BackendInfo,
    /// What takes the device's place.
    pub(super) next: Arc<dyn Backend>,
    patience: Duration,
    connection: Mutex<Connection>,
}

/// The connection, or since when there is none.
#[derive(Debug)]
struct Connection {
    link: Option<Arc<Link>>,
    outage: Option<Outage>,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    next_attempt: Instant,
    pause: Duration,
    /// The next device has taken the place.
    is_replaced: bool,
    why: String,
}

impl RemoteBackend {
    /// Connects to a server. `next` takes its place when it does not answer for `patience` ([`PATIENCE`] in programs).
    /// The server decides on the precision.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if it cannot be reached for `patience`, is not trusted, refuses the token, or computes in
    /// another precision than the one that was asked for.
    pub fn open(
        device: RemoteDevice,
        precision: Precision,
        next: Arc<dyn Backend>,
        patience: Duration,
    ) -> Result<Self, BackendError> {
        let address = &device.address;
        let (link, offer) =
            first_link(&device, patience).map_err(|error| unusable(address, &error))?;
        let info = info_of(address, &offer)?;
        if precision != Precision::Auto && precision != info.precision {
            return Err(BackendError::Failed(format!(
                "{address} computes in {} and not in {precision}: leave the precision to it, or set it at the server",
                info.precision
            )));
        }
        tracing::info!("{address} is {} in {}", offer.device, offer.precision);
        Ok(Self(Arc::new(Remote {
            device,
            info,
            next,
            patience,
            connection: Mutex::new(Connection {
                link: Some(Arc::new(link)),
                outage: None,
            }),
        })))
    }
}

/// Connects for the first time. A server that refuses is not asked again.
fn first_link(device: &RemoteDevice, patience: Duration) -> Result<(Link, Offer), ConnectionError> {
    let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        match Link::open(device) {
            Err(ConnectionError::Io(error)) if begun.elapsed() + pause < patience => {
                tracing::debug!("{}: {error}", device.address);
                thread::sleep(pause);
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

fn unusable(address: &RemoteAddress, error: &ConnectionError) -> BackendError {
    BackendError::Failed(match error {
        ConnectionError::Io(_) => format!(
            "RK-0315: the device at {address} cannot be used: {error}; is `rookery-worker serve-device` running there, \
             and does its --listen allow other machines?"
        ),
        ConnectionError::Tls(error) => {
            let remedy = match error {
                rustls::Error::InvalidMessage(_) => {
                    "; write remote://, or start `serve-device` there with --tls-cert and --tls-key"
                }
                rustls::Error::InvalidCertificate(_) => {
                    "; give the device's own certificate, or that of its authority, with --device-ca"
                }
                _ => "",
            };
            format!(
                "RK-0314: {address} cannot be used by TLS: {}{remedy}",
                tls_failure(error)
            )
        }
        _ => format!("RK-0315: the device at {address} cannot be used: {error}"),
    })
}

fn info_of(address: &RemoteAddress, offer: &Offer) -> Result<BackendInfo, BackendError> {
    let unknown = |what: &str| {
        let why =
            format!("{address} computes in {what}, which this program does not know: update it");
        BackendError::Failed(why)
    };
    let precision = offer.precision.parse();
    let precision = precision.map_err(|_| unknown(&offer.precision))?;
    let class = NumericClass::from_name(&offer.class).ok_or_else(|| unknown(&offer.class))?;
    Ok(BackendInfo {
        device: address.to_string(),
        precision,
        class,
    })
}

impl Backend for RemoteBackend {
    fn info(&self) -> &BackendInfo {
        &self.0.info
    }

    fn load(&self, weights: &Weights) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        let file = weights.to_bytes()?;
        let network = RemoteNetwork {
            hash: ContentHash::of(&file),
            remote: Arc::clone(&self.0),
            spec: weights.spec().clone(),
            file,
            placement: Mutex::default(),
            replacement: Mutex::new(None),
        };
        match network.place() {
            Err(NetworkError::Failed { passing, why }) => {
                let why = format!("{}: {why}", self.0.address());
                Err(if passing {
                    BackendError::OutOfMemory(why)
                } else {
                    BackendError::Failed(why)
                })
            }
            // The next device computes it until the server is there again.
            Err(NetworkError::Lost(_)) => {
                network.replacement()?;
                Ok(Arc::new(network))
            }
            Ok(_) => Ok(Arc::new(network)),
        }
    }
}

impl Remote {
    pub(super) const fn address(&self) -> &RemoteAddress {
        &self.device.address
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    /// The connection. If it is lost, everybody waits here until it is there again or patience has ended, and then learns
    /// why; from then on one attempt is made now and then.
    fn link(&self) -> Result<Arc<Link>, String> {
        let mut connection = self.lock();
        if let Some(link) = connection.link.take() {
            match link.lost() {
                None => {
                    connection.link = Some(Arc::clone(&link));
                    return Ok(link);
                }
                Some(why) if connection.outage.is_some() => self.failed(&mut connection, why),
                Some(why) => {
                    tracing::warn!("{}: {why}; it is tried again", self.address());
                    connection.outage = Some(Outage::new());
                }
            }
        }
        loop {
            let outage = connection.outage.get_or_insert_with(Outage::new);
            let left = outage
                .next_attempt
                .saturating_duration_since(Instant::now());
            if !left.is_zero() && outage.is_replaced {
                return Err(outage.why.clone());
            }
            thread::sleep(left);
            match self.reconnect() {
                Ok(link) => {
                    let link = Arc::new(link);
                    connection.link = Some(Arc::clone(&link));
                    return Ok(link);
                }
                Err(why) => self.failed(&mut connection, why),
            }
        }
    }

    /// Notes a failed attempt.
    fn failed(&self, connection: &mut Connection, why: String) {
        let outage = connection.outage.get_or_insert_with(Outage::new);
        let was_replaced = outage.is_replaced;
        outage.failed(why, self.patience);
        if outage.is_replaced && !was_replaced {
            let (address, why, next) = (self.address(), &outage.why, &self.next.info().device);
            tracing::warn!(
                "RK-0316: {address} does not answer ({why}): {next} takes its place until it does"
            );
        }
    }

    /// Connects again. A server whose numbers are of another class now is not the one that was chosen.
    fn reconnect(&self) -> Result<Link, String> {
        let opened = Link::open(&self.device);
        let (link, offer) = opened.map_err(|error| error.to_string())?;
        let info = info_of(self.address(), &offer).map_err(|error| error.to_string())?;
        if info != self.info {
            let (now, before) = (info.class.name(), self.info.class.name());
            return Err(format!(
                "it computes as {now} now and as {before} when this program began: start it again"
            ));
        }
        Ok(link)
    }

    /// Notes that the device has computed something.
    pub(super) fn has_answered(&self) {
        let mut connection = self.lock();
        if let Some(outage) = connection.outage.take() {
            let seconds = outage.since.elapsed().as_secs();
            tracing::info!("{} computes again, after {seconds} s", self.address());
        }
    }
}

impl Outage {
    /// An outage that begins now, with an attempt at once.
    fn new() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            next_attempt: now,
            pause: FIRST_PAUSE,
            is_replaced: false,
            why: String::new(),
        }
    }

    /// Notes that an attempt has failed.
    fn failed(&mut self, why: String, patience: Duration) {
        self.why = why;
        self.is_replaced = self.since.elapsed() + self.pause > patience;
        let pause = if self.is_replaced {
            REPLACED_PAUSE
        } else {
            self.pause
        };
        self.next_attempt = Instant::now() + pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }
}

/// A network on a device of another machine.
#[derive(Debug)]
pub(super) struct RemoteNetwork {
    pub(super) remote: Arc<Remote>,
    spec: NetworkSpec,
    hash: ContentHash,
    /// What a server gets that does not have the network.
    file: Vec<u8>,
    placement: Mutex<Placement>,
    /// The network on the next device.
    replacement: Mutex<Option<Arc<dyn LoadedNetwork>>>,
}

#[derive(Debug, Default)]
struct Placement {
    place: Option<Place>,
    refusal: Option<Refusal>,
}

/// The device has no room for the network now.
#[derive(Debug)]
struct Refusal {
    why: String,
    /// When it is asked again: it gets the whole file then.
    next_attempt: Instant,
}

/// Where the network is.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) link: Arc<Link>,
    pub(super) network: u32,
    precision: Precision,
}

impl RemoteNetwork {
    /// Where the network is; it is brought there if the server is another one than before. A device that has no room for
    /// it is asked again later.
    pub(super) fn place(&self) -> Result<Place, NetworkError> {
        let mut placement = self.placement.lock();
        let now = Instant::now();
        if let Some(refusal) = &placement.refusal
            && now < refusal.next_attempt
        {
            let (passing, why) = (true, refusal.why.clone());
            return Err(NetworkError::Failed { passing, why });
        }
        loop {
            let link = self.remote.link().map_err(NetworkError::Lost)?;
            if let Some(place) = &placement.place
                && Arc::ptr_eq(&place.link, &link)
            {
                return Ok(place.clone());
            }
            match link.load(self.hash, &self.file) {
                Ok((network, precision)) => {
                    let new = Place {
                        link,
                        network,
                        precision,
                    };
                    placement.refusal = None;
                    placement.place = Some(new.clone());
                    return Ok(new);
                }
                Err(NetworkError::Lost(why)) => tracing::debug!("{}: {why}", self.remote.address()),
                Err(error) => {
                    if let NetworkError::Failed { passing: true, why } = &error {
                        placement.refusal = Some(self.refusal(why.clone()));
                    }
                    return Err(error);
                }
            }
        }
    }

    fn refusal(&self, why: String) -> Refusal {
        let (hash, seconds) = (self.hash.short(), REPLACED_PAUSE.as_secs());
        tracing::warn!(
            "{} has no room for network {hash}: {why}; the next try is in {seconds} s",
            self.remote.address()
        );
        Refusal {
            why,
            next_attempt: Instant::now() + REPLACED_PAUSE,
        }
    }

    /// The network on the next device.
    pub(super) fn replacement(&self) -> Result<Arc<dyn LoadedNetwork>, BackendError> {
        let mut replacement = self.replacement.lock();
        if let Some(network) = &*replacement {
            return Ok(Arc::clone(network));
        }
        let (_, weights) = Weights::from_bytes(&self.file)?;
        let network = self.remote.next.load(&weights)?;
        *replacement = Some(Arc::clone(&network));
        Ok(network)
    }

    /// Drops the network on the next device, but for threads that still use it.
    pub(super) fn drop_replacement(&self) {
        let mut replacement = self.replacement.lock();
        *replacement = None;
    }
}

impl Drop for RemoteNetwork {
    fn drop(&mut self) {
        if let Some(place) = &self.placement.get_mut().place {
            place.link.release(place.network);
        }
    }
}

impl LoadedNetwork for RemoteNetwork {
    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn precision(&self) -> Precision {
        let placement = self.placement.lock();
        let precision = placement.place.as_ref().map(|place| place.precision);
        precision.unwrap_or(self.remote.info.precision)
    }

    fn evaluator(self: Arc<Self>) -> Box<dyn Evaluator + Send> {
        Box::new(RemoteEvaluator::new(self))
    }
}
