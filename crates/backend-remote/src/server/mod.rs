//! A device offered to other machines.

mod budget;
mod connection;
mod device;
mod networks;
mod queue;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rookery_engine::Backend;
use rookery_tls::ServerCertificate;

use crate::token::DeviceToken;
use device::Device;
use networks::Networks;

/// How a device is offered.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// What clients must know. Without a token only programs of the same machine are served.
    pub token: Option<DeviceToken>,
    /// What clients know the server by. With it TLS is spoken, and nothing else.
    pub certificate: Option<ServerCertificate>,
    /// How long a batch that is not full waits for those of other clients.
    pub gather: Duration,
    /// Between two attempts to open a lost device anew.
    pub reopen_pause: Duration,
    /// What clients may take.
    pub limits: Limits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            token: None,
            certificate: None,
            gather: Duration::from_millis(1),
            reopen_pause: Duration::from_secs(60),
            limits: Limits::default(),
        }
    }
}

/// What clients may take of the server.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Clients at once.
    pub clients: usize,
    /// Connections that have not proved that they know the token, handshakes of TLS among them. The oldest is closed for one more.
    pub greetings: usize,
    /// Networks that are loaded at once.
    pub networks: usize,
    /// Networks that one client uses at once.
    pub networks_of_client: usize,
    /// Batches and requests for networks of one client that are not answered. More are not read until some are.
    pub batches_in_flight: usize,
    /// Bytes of these with their answers.
    pub bytes_in_flight: usize,
    /// How long a client may take for its greeting, and before it for the handshake of TLS.
    pub greeting_time: Duration,
    /// How long a client may take for a frame that it has begun.
    pub frame_time: Duration,
    /// How long writing one frame may take: clients that read too slowly are disconnected.
    pub write_time: Duration,
    /// Interval of keep-alives on an idle connection.
    pub alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 64,
            greetings: 32,
            networks: 16,
            networks_of_client: 8,
            batches_in_flight: 16,
            bytes_in_flight: 8 << 20,
            greeting_time: Duration::from_secs(5),
            frame_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            alive: Duration::from_secs(5),
        }
    }
}

/// What a server has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Clients that are connected.
    pub clients: usize,
    /// Batches of clients that wait for the device.
    pub waiting: usize,
    /// Batches that the device has computed.
    pub batches: u64,
    /// Positions of these.
    pub positions: u64,
}

/// Why a device cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Anybody in the network could use it.
    #[error(
        "RK-0309: {0} is open to other machines: give a token with --device-token-file, or listen on 127.0.0.1"
    )]
    NeedsToken(SocketAddr),
    /// The socket cannot be used.
    #[error("the device cannot be offered: {0}")]
    Io(#[from] io::Error),
}

/// A device that is offered until this is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<thread::JoinHandle<()>>,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    networks: Networks,
    options: ServerOptions,
    counters: Arc<Counters>,
    clients: Arc<AtomicUsize>,
    open: Arc<Mutex<OpenConnections>>,
    is_stopped: AtomicBool,
}

impl Shared {
    fn new(backend: Arc<dyn Backend>, threads: NonZeroUsize, options: ServerOptions) -> Self {
        let counters = Arc::new(Counters::default());
        let open = Arc::<Mutex<OpenConnections>>::default();
        let device = Device::new(backend, Arc::clone(&open), options.reopen_pause);
        let networks = Networks::new(device, threads, options.clone(), Arc::clone(&counters));
        Self {
            networks,
            options,
            counters,
            clients: Arc::default(),
            open,
            is_stopped: AtomicBool::new(false),
        }
    }
}

/// The sockets of all connections, to close them.
#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    streams: HashMap<u64, Arc<TcpStream>>,
    /// Those that have not greeted, the oldest first.
    greeting: VecDeque<u64>,
}

impl OpenConnections {
    /// Adds a connection that is to greet, and gives its number. Where there are `most` of these, the oldest is closed:
    /// whoever knows the token greets at once, and strangers who only connect keep nobody out.
    fn add(&mut self, stream: Arc<TcpStream>, most: usize) -> u64 {
        while self.greeting.len() >= most.max(1)
            && let Some(oldest) = self.greeting.pop_front()
        {
            if let Some(stream) = self.streams.get(&oldest) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.next += 1;
        self.streams.insert(self.next, stream);
        self.greeting.push_back(self.next);
        self.next
    }

    fn has_greeted(&mut self, number: u64) {
        self.greeting.retain(|one| *one != number);
    }

    fn remove(&mut self, number: u64) {
        self.has_greeted(number);
        self.streams.remove(&number);
    }

    fn close_all(&self) {
        for stream in self.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// What the device has computed.
#[derive(Debug, Default)]
struct Counters {
    batches: AtomicU64,
    positions: AtomicU64,
}

impl Counters {
    fn count(&self, positions: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.positions.fetch_add(positions as u64, Relaxed);
    }
}

/// One of a limited number of connections.
#[derive(Debug)]
struct ClientSlot(Arc<AtomicUsize>);

impl ClientSlot {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let one_more = |count: usize| (count < most).then_some(count + 1);
        taken.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Server {
    /// Offers a backend on a socket. A processor computes each batch by `threads`; a GPU this number of batches at once.
    ///
    /// # Errors
    ///
    /// [`ServerError::NeedsToken`] if other machines could use it without a token, [`ServerError::Io`] if the socket
    /// fails.
    pub fn start(
        listener: TcpListener,
        backend: Arc<dyn Backend>,
        threads: NonZeroUsize,
        options: ServerOptions,
    ) -> Result<Self, ServerError> {
        let address = listener.local_addr()?;
        if options.token.is_none() && !address.ip().is_loopback() {
            return Err(ServerError::NeedsToken(address));
        }
        let shared = Arc::new(Shared::new(backend, threads, options));
        let accepting = thread::Builder::new().name("device-accept".to_owned());
        let accepting = accepting.spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        })?;
        Ok(Self {
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        let Shared {
            counters, clients, ..
        } = &*self.shared;
        Statistics {
            clients: clients.load(Relaxed),
            waiting: self.shared.networks.device().waiting(),
            batches: counters.batches.load(Relaxed),
            positions: counters.positions.load(Relaxed),
        }
    }
}

impl Drop for Server {
    /// Closes all connections; clients in the middle of a batch take another device.
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Relaxed);
        // Wakes the thread that accepts, which then sees that it is over.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let woken = TcpStream::connect_timeout(&own, Duration::from_secs(1));
        if let Some(accepting) = self.accepting.take().filter(|_| woken.is_ok()) {
            let _ = accepting.join();
        }
        self.shared.open.lock().close_all();
    }
}

/// Accepts connections until the server is dropped.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.is_stopped.load(Relaxed) {
            return;
        }
        let begun = accepted.and_then(|(stream, from)| begin(stream, from, shared));
        if let Err(error) = begun {
            tracing::warn!("a connection was not accepted: {error}");
            // For example too many open files: others may be closed meanwhile.
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Starts a connection's thread.
fn begin(stream: TcpStream, from: SocketAddr, shared: &Arc<Shared>) -> io::Result<()> {
    let most = shared.options.limits.greetings;
    let stream = Arc::new(stream);
    let number = shared.open.lock().add(Arc::clone(&stream), most);
    let thread = thread::Builder::new().name("device-client".to_owned());
    let of_thread = Arc::clone(shared);
    let spawned = thread.spawn(move || {
        tracing::info!("{from} has connected");
        match connection::serve(&stream, &of_thread, number) {
            Ok(()) => tracing::info!("{from} has left"),
            Err(error) => tracing::warn!("{from} was disconnected: {error}"),
        }
        of_thread.open.lock().remove(number);
    });
    if spawned.is_err() {
        shared.open.lock().remove(number);
    }
    spawned.map(drop)
}
