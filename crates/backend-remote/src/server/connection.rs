//! One client of a server.
//!
//! The thread that reads knows what the client may do. A second one writes, so that a client that reads slowly holds up
//! nobody but itself. Both are joined by a budget: every request takes a permit before it is obeyed or answered, and
//! gives it back when its answer is written. The reader waits for permits. When the writer ends, the queued answers are
//! dropped with their permits, so the reader ends, too.
//!
//! ```text
//! client --> reader --batch, permit--> queue of the network --answer, permit--\
//!               \----- answer about a network, permit -------------------------> writer --> client
//! ```

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use rookery_common::ids::ContentHash;
use rookery_common::network::file::MAX_FILE_BYTES;
use rookery_engine::BackendError;
use rustls::ServerConnection;

use super::budget::{Budget, InFlight, Permit};
use super::networks::UsedNetwork;
use super::queue::{Answer, Outgoing, WaitingBatch};
use super::{ClientSlot, Shared};
use crate::VERSION;
use crate::error::ConnectionError;
use crate::frame::{FrameReader, MAX_GREETING, MAX_REQUEST};
use crate::message::{Offer, Reply, Request};
use crate::positions::read_positions;
use crate::stream::{self, ReadHalf, WriteHalf};

type Result<T> = std::result::Result<T, ConnectionError>;

/// Serves a client until it leaves or breaks the rules. `number` is its connection's.
pub(super) fn serve(socket: &Arc<TcpStream>, shared: &Arc<Shared>, number: u64) -> Result<()> {
    let limits = shared.options.limits;
    socket.set_nodelay(true)?;
    let (read, mut writer) = open(socket, shared)?;
    let mut reader = FrameReader::new(read, limits.frame_time);
    greet(&mut writer, &mut reader, shared)?;
    shared.open.lock().has_greeted(number);
    let Some(slot) = ClientSlot::take(&shared.clients, limits.clients) else {
        let why = format!("the device has {} clients already", limits.clients);
        return refuse(&mut writer, ConnectionError::Refused(why));
    };
    let slot = Arc::new(slot);
    let info = shared.networks.device().info();
    let welcome = Reply::Welcome(Offer {
        device: info.device.clone(),
        precision: info.precision.name().to_owned(),
        class: info.class.name().to_owned(),
    });
    write(&mut writer, &welcome)?;
    let (outgoing, frames) = channel();
    let writing = thread::Builder::new().name("device-writer".to_owned());
    let (socket, held, alive) = (Arc::clone(socket), Arc::clone(&slot), limits.alive);
    writing.spawn(move || {
        let _held = held;
        // Whatever it was, the reader notices that the connection is closed.
        let _ = write_all(&mut writer, &frames, alive);
        let _ = socket.shutdown(Shutdown::Both);
    })?;
    let client = Client {
        shared,
        budget: Budget::new(InFlight {
            requests: limits.batches_in_flight,
            bytes: limits.bytes_in_flight,
        }),
        outgoing,
        networks: HashMap::new(),
        next_network: 0,
    };
    client.serve(&mut reader)
}

/// Shakes hands with the client, where the device speaks TLS.
fn open(socket: &Arc<TcpStream>, shared: &Shared) -> Result<(ReadHalf, WriteHalf)> {
    let limits = shared.options.limits;
    let Some(certificate) = &shared.options.certificate else {
        return Ok(stream::plain(socket, limits.write_time));
    };
    let session = ServerConnection::new(certificate.config())?;
    let opened = stream::encrypted(
        socket,
        session.into(),
        limits.greeting_time,
        limits.write_time,
    );
    if let Err(ConnectionError::Silent(_)) = opened {
        // A client of TLS speaks first. This one waits for a greeting.
        let why = "it speaks TLS: write remotes://HOST:PORT, with --device-ca for a certificate of its own";
        write(
            &mut stream::plain(socket, limits.write_time).1,
            &Reply::Refused(why.to_owned()),
        )?;
        return Err(ConnectionError::protocol("it speaks no TLS"));
    }
    opened
}

/// Makes sure that the client speaks this version and knows the token.
fn greet(writer: &mut WriteHalf, reader: &mut FrameReader, shared: &Shared) -> Result<()> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|error| ConnectionError::protocol(error.to_string()))?;
    let token = shared.options.token.as_ref();
    let challenge = Reply::Challenge {
        version: VERSION,
        wants_token: token.is_some(),
        nonce,
    };
    write(writer, &challenge)?;
    let (kind, payload) = reader.next(Some(shared.options.limits.greeting_time), MAX_GREETING)?;
    let Request::Hello { version, proof } = Request::read(kind, payload)? else {
        return Err(ConnectionError::protocol(
            "it does not begin with a greeting",
        ));
    };
    if version != VERSION {
        let why = format!(
            "the client speaks version {version} and this device {VERSION}: update the older of the two"
        );
        return refuse(writer, ConnectionError::Refused(why));
    }
    match token {
        Some(token) if !token.accepts(&nonce, &proof) => {
            let why = "the token is wrong: give the device's own with --device-token-file";
            refuse(writer, ConnectionError::Refused(why.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Says why the connection ends.
fn refuse(writer: &mut WriteHalf, why: ConnectionError) -> Result<()> {
    write(writer, &Reply::Refused(why.to_string()))?;
    Err(why)
}

fn write(writer: &mut WriteHalf, reply: &Reply<'_>) -> Result<()> {
    Ok(writer.write_all(&reply.to_frame())?)
}

/// Writes what comes until all senders are gone.
fn write_all(
    writer: &mut WriteHalf,
    frames: &Receiver<Outgoing>,
    alive: std::time::Duration,
) -> Result<()> {
    loop {
        match frames.recv_timeout(alive) {
            Ok(Outgoing { frame, permit }) => {
                writer.write_all(&frame)?;
                drop(permit);
            }
            Err(RecvTimeoutError::Timeout) => write(writer, &Reply::Alive)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// A client that is known.
struct Client<'a> {
    shared: &'a Shared,
    budget: Arc<Budget>,
    outgoing: Sender<Outgoing>,
    networks: HashMap<u32, UsedNetwork>,
    next_network: u32,
}

impl Client<'_> {
    fn serve(mut self, reader: &mut FrameReader) -> Result<()> {
        loop {
            let wanted = match reader.next(None, MAX_REQUEST) {
                Ok((kind, payload)) => self.obey(kind, payload),
                Err(ConnectionError::Closed) => return Ok(()),
                Err(error) => Err(error),
            };
            let done = wanted.and_then(|wanted| match wanted {
                Some((hash, length)) => self.receive(reader, hash, length),
                None => Ok(()),
            });
            if let Err(error) = done {
                // It is the only one, so it needs no permit, and no answer holds it up.
                self.queue(Reply::Refused(error.to_string()).to_frame(), None);
                return Err(error);
            }
        }
    }

    /// Does what a frame asks for; gives the network that the client is to send.
    fn obey(&mut self, kind: u8, payload: &[u8]) -> Result<Option<(ContentHash, u64)>> {
        match Request::read(kind, payload)? {
            Request::Evaluate {
                id,
                network,
                positions,
            } => {
                let used = self.networks.get(&network);
                let used = used.ok_or_else(|| unknown_network(network))?;
                let served = used.served();
                let spec = served.network.spec();
                let batch = read_positions(positions, spec.input, spec.policy.encoding)?;
                // A logit has twice the bytes of its move.
                let bytes = payload.len() + 12 * batch.len() + 4 * batch.moves().len();
                let permit = self.budget.acquire(bytes);
                let answer = Answer::new(id, self.outgoing.clone(), permit);
                served.queue.push(WaitingBatch { batch, answer });
            }
            Request::Network { hash, length } => return self.network(hash, length),
            Request::Release { network } => {
                let released = self.networks.remove(&network);
                released.ok_or_else(|| unknown_network(network))?;
            }
            Request::Data(_) => {
                return Err(ConnectionError::protocol(
                    "a network's file that was not asked for",
                ));
            }
            Request::Hello { .. } => return Err(ConnectionError::protocol("a second greeting")),
        }
        Ok(None)
    }

    fn network(&mut self, hash: ContentHash, length: u64) -> Result<Option<(ContentHash, u64)>> {
        let most = self.shared.options.limits.networks_of_client;
        if self.networks.len() >= most {
            let why = format!("a client may use {most} networks at once");
            // Until it gives one back.
            self.answer(&Reply::Failed { passing: true, why });
            return Ok(None);
        }
        if let Some(known) = self.shared.networks.device().find(hash) {
            self.ready(known);
            return Ok(None);
        }
        if !(1..=MAX_FILE_BYTES).contains(&length) {
            let what = format!("a network of {length} bytes, allowed is 1 to {MAX_FILE_BYTES}");
            return Err(ConnectionError::protocol(what));
        }
        self.answer(&Reply::Send);
        Ok(Some((hash, length)))
    }

    /// Receives a network's file. Evaluations of other networks may come between its frames.
    fn receive(&mut self, reader: &mut FrameReader, hash: ContentHash, length: u64) -> Result<()> {
        let networks = &self.shared.networks;
        let mut upload = networks.begin_upload();
        while (upload.bytes.len() as u64) < length {
            let (kind, payload) =
                reader.next(Some(self.shared.options.limits.frame_time), MAX_REQUEST)?;
            let Request::Data(data) = Request::read(kind, payload)? else {
                if let Request::Network { .. } = Request::read(kind, payload)? {
                    return Err(ConnectionError::protocol("two networks at once"));
                }
                self.obey(kind, payload)?;
                continue;
            };
            if data.is_empty() || data.len() as u64 > length - upload.bytes.len() as u64 {
                let what = format!("a network's file that has not its {length} bytes");
                return Err(ConnectionError::protocol(what));
            }
            if !upload.push(data) {
                let why = "too many clients send networks at once; try again later";
                return Err(ConnectionError::Refused(why.to_owned()));
            }
        }
        let loaded = networks.load(hash, &upload.bytes);
        // All clients share the room for uploads, and the answer may wait for this one.
        drop(upload);
        match loaded {
            Ok(used) => self.ready(used),
            Err(error) => {
                tracing::warn!("network {} is not served: {error}", hash.short());
                let passing = matches!(error, BackendError::OutOfMemory(_));
                let why = error.to_string();
                self.answer(&Reply::Failed { passing, why });
            }
        }
        Ok(())
    }

    fn ready(&mut self, used: UsedNetwork) {
        let network = self.next_network;
        self.next_network = network.wrapping_add(1);
        let precision = used.served().network.precision().name().to_owned();
        self.networks.insert(network, used);
        self.answer(&Reply::Ready { network, precision });
    }

    /// Answers a request for a network as soon as there is room for the answer.
    fn answer(&self, reply: &Reply<'_>) {
        let frame = reply.to_frame();
        let permit = self.budget.acquire(frame.len());
        self.queue(frame, Some(permit));
    }

    fn queue(&self, frame: Vec<u8>, permit: Option<Permit>) {
        // If the writer has ended, so has the connection, which the reader notices.
        let _ = self.outgoing.send(Outgoing { frame, permit });
    }
}

fn unknown_network(network: u32) -> ConnectionError {
    ConnectionError::protocol(format!("a network {network} that the client does not use"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::num::NonZeroUsize;

    use rookery_backend_cpu::CpuBackend;
    use rookery_engine::Precision;

    use super::*;
    use crate::server::ServerOptions;
    use crate::tests::{LONG, eventually};

    /// A server that allows a client no network, so that each request for one is answered by a failure.
    fn shared() -> Shared {
        let backend = Arc::new(CpuBackend::new(Precision::F32).unwrap());
        let mut options = ServerOptions::default();
        options.limits.networks_of_client = 0;
        Shared::new(backend, NonZeroUsize::MIN, options)
    }

    #[test]
    fn the_reader_waits_while_answers_are_not_written_and_ends_with_the_writer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Arc::new(listener.accept().unwrap().0);
        let mut reader = FrameReader::new(stream::plain(&socket, LONG).0, LONG);
        let shared = shared();
        let budget = Budget::new(InFlight {
            requests: 3,
            bytes: 1 << 20,
        });
        // Nothing is written, as to a client that reads nothing.
        let (outgoing, frames) = channel();
        let client = Client {
            shared: &shared,
            budget: Arc::clone(&budget),
            outgoing,
            networks: HashMap::new(),
            next_network: 0,
        };
        let (hash, length) = (ContentHash::of(b"x"), 1000);
        let request = Request::Network { hash, length }.to_frame();
        peer.write_all(&request.repeat(20)).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        thread::scope(|scope| {
            let serving = scope.spawn(|| client.serve(&mut reader));
            eventually("there is no room, or all is read", || {
                budget.used().requests == 3 || serving.is_finished()
            });
            // Not an assertion in here: a failed one would wait for the thread.
            let is_held_back = !serving.is_finished();
            drop(frames);
            serving.join().unwrap().unwrap();
            assert!(is_held_back, "20 answers were queued");
        });
        assert_eq!(budget.used(), InFlight::default());
    }
}
