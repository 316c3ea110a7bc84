//! One connection to a server, which all threads of the program share.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rookery_common::ids::ContentHash;
use rookery_engine::{Batch, Evaluations, Precision};

use super::device::{Connected, RemoteDevice};
use crate::error::ConnectionError;
use crate::frame::{FrameReader, MAX_REPLY};
use crate::message::{DATA_BYTES, Offer, Reply, Request};
use crate::positions::{read_evaluations, write_positions};
use crate::stream::WriteHalf;

/// After so long without a frame the server is gone: it says every five seconds that it is there.
const SILENCE: Duration = Duration::from_secs(20);
/// After so long without any answer while batches wait, the device hangs, although its server says that it is there.
const ANSWER_TIME: Duration = Duration::from_secs(300);
/// How long loading a network may take: a GPU may look for its fastest kernels first.
const LOAD_TIME: Duration = Duration::from_secs(900);

/// The answer to a part of a batch: evaluations, or why the device has none.
pub(super) type PartAnswer = Result<Evaluations, String>;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<LinkState>,
    socket: Arc<TcpStream>,
    /// Where one thread at a time writes a frame.
    writer: Mutex<WriteHalf>,
    /// Held while a network is negotiated: one at a time.
    negotiation: Mutex<()>,
}

/// What the thread that reads and those that ask share.
#[derive(Debug, Default)]
struct LinkState(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    next: u32,
    parts: HashMap<u32, PendingPart>,
    /// Where the one reply about a network goes that the server owes now.
    network: Option<Sender<NetworkReply>>,
    /// When a part was answered last.
    answered: Option<Instant>,
    /// Why the connection is lost.
    lost: Option<String>,
}

impl Pending {
    /// Whether parts wait and none was answered for long.
    fn is_stuck(&self, now: Instant) -> bool {
        let oldest = self.parts.values().map(|part| part.sent).min();
        let since = oldest.max(self.answered).filter(|_| oldest.is_some());
        since.is_some_and(|since| now.saturating_duration_since(since) > ANSWER_TIME)
    }

    /// Notes that the connection is lost. Whoever waits learns that nothing comes any more.
    fn lose(&mut self, why: String) {
        self.lost.get_or_insert(why);
        self.parts.clear();
        self.network = None;
    }
}

#[derive(Debug)]
struct PendingPart {
    /// Which part of its batch.
    index: usize,
    positions: usize,
    moves: usize,
    sent: Instant,
    to: Sender<(usize, PartAnswer)>,
}

#[derive(Debug)]
enum NetworkReply {
    Send,
    Ready { network: u32, precision: String },
    Failed { passing: bool, why: String },
}

/// Why a network is not there.
#[derive(Debug)]
pub(super) enum NetworkError {
    /// The connection is lost.
    Lost(String),
    /// The device cannot compute it, or not now.
    Failed { passing: bool, why: String },
}

impl Link {
    /// Connects and greets; gives what the server offers, too.
    pub(super) fn open(device: &RemoteDevice) -> Result<(Self, Offer), ConnectionError> {
        let Connected {
            socket,
            mut reader,
            writer,
            offer,
        } = device.connect()?;
        let shared = Arc::new(LinkState::default());
        let reading = thread::Builder::new().name("device-reader".to_owned());
        reading.spawn({
            let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
            move || {
                let why = read_all(&mut reader, &shared).to_string();
                // Writes fail from now on.
                let _ = socket.shutdown(Shutdown::Both);
                shared.0.lock().lose(why);
            }
        })?;
        let link = Self {
            shared,
            writer: Mutex::new(writer),
            socket,
            negotiation: Mutex::default(),
        };
        Ok((link, offer))
    }

    /// Why the connection is lost, if it is.
    pub(super) fn lost(&self) -> Option<String> {
        self.shared.0.lock().lost.clone()
    }

    fn write(&self, request: Request<'_>) -> Result<(), String> {
        let frame = request.to_frame();
        let mut writer = self.writer.lock();
        writer.write_all(&frame).map_err(|error| {
            let why = self.lost().unwrap_or_else(|| error.to_string());
            self.close(&why);
            why
        })
    }

    /// Gives the connection up for this reason.
    fn close(&self, why: &str) {
        self.shared.0.lock().lose(why.to_owned());
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Brings a network there; gives its number and the precision in which it is computed. Its file is sent only if the
    /// server does not have it.
    pub(super) fn load(
        &self,
        hash: ContentHash,
        file: &[u8],
    ) -> Result<(u32, Precision), NetworkError> {
        let _turn = self.negotiation.lock();
        let length = file.len() as u64;
        let mut expected = self.expect_reply()?;
        self.write(Request::Network { hash, length })
            .map_err(NetworkError::Lost)?;
        let mut reply = self.reply(&expected)?;
        if let NetworkReply::Send = reply {
            expected = self.expect_reply()?;
            for data in file.chunks(DATA_BYTES) {
                self.write(Request::Data(data))
                    .map_err(NetworkError::Lost)?;
            }
            reply = self.reply(&expected)?;
        }
        match reply {
            NetworkReply::Ready { network, precision } => {
                let read = precision.parse();
                let precision = read.map_err(|_| NetworkError::Failed {
                    passing: false,
                    why: format!("it computes in the unknown precision {precision:?}"),
                })?;
                Ok((network, precision))
            }
            NetworkReply::Failed { passing, why } => Err(NetworkError::Failed { passing, why }),
            NetworkReply::Send => {
                let why = "the server asked for the network twice";
                self.close(why);
                Err(NetworkError::Lost(why.to_owned()))
            }
        }
    }

    /// Allows the server one reply about a network. Call this before what the reply answers is written.
    fn expect_reply(&self) -> Result<Receiver<NetworkReply>, NetworkError> {
        let (to, expected) = channel();
        let mut pending = self.shared.0.lock();
        if let Some(why) = &pending.lost {
            return Err(NetworkError::Lost(why.clone()));
        }
        pending.network = Some(to);
        Ok(expected)
    }

    fn reply(&self, expected: &Receiver<NetworkReply>) -> Result<NetworkReply, NetworkError> {
        expected.recv_timeout(LOAD_TIME).map_err(|error| {
            if error == RecvTimeoutError::Timeout {
                self.close(&ConnectionError::Unanswered(LOAD_TIME).to_string());
            }
            let closed = || ConnectionError::Closed.to_string();
            NetworkError::Lost(self.lost().unwrap_or_else(closed))
        })
    }

    /// Tells the server that a network is not used any more.
    pub(super) fn release(&self, network: u32) {
        // On a lost connection, it is not used either.
        let _ = self.write(Request::Release { network });
    }

    /// Sends a part of a batch, the `index`th; its answer goes to `to`.
    pub(super) fn send(
        &self,
        network: u32,
        batch: &Batch,
        (index, part): (usize, Range<usize>),
        to: &Sender<(usize, PartAnswer)>,
    ) -> Result<(), String> {
        let mut positions = Vec::new();
        write_positions(batch, part.clone(), &mut positions);
        let moves = part.clone().map(|position| batch.moves_of(position).len());
        let asked = PendingPart {
            index,
            positions: part.len(),
            moves: moves.sum(),
            sent: Instant::now(),
            to: to.clone(),
        };
        let id = {
            let mut pending = self.shared.0.lock();
            if let Some(why) = &pending.lost {
                return Err(why.clone());
            }
            pending.next = pending.next.wrapping_add(1);
            let id = pending.next;
            pending.parts.insert(id, asked);
            id
        };
        self.write(Request::Evaluate {
            id,
            network,
            positions: &positions,
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Hands out what the server says; gives why that ends.
fn read_all(reader: &mut FrameReader, shared: &LinkState) -> ConnectionError {
    loop {
        let read = reader.next(Some(SILENCE), MAX_REPLY);
        let handed = read.and_then(|(kind, payload)| hand_out(Reply::read(kind, payload)?, shared));
        if let Err(error) = handed {
            return error;
        }
        if shared.0.lock().is_stuck(Instant::now()) {
            return ConnectionError::Unanswered(ANSWER_TIME);
        }
    }
}

fn hand_out(reply: Reply<'_>, shared: &LinkState) -> Result<(), ConnectionError> {
    let unasked = || ConnectionError::protocol("an answer to nothing that was asked");
    let part = |id: u32| {
        let mut pending = shared.0.lock();
        pending.answered = Some(Instant::now());
        pending.parts.remove(&id).ok_or_else(unasked)
    };
    // Each reply uses up the one that was expected, so a server cannot fill this machine's memory with others.
    let about_network = |reply: NetworkReply| {
        let to = shared.0.lock().network.take().ok_or_else(unasked)?;
        let _ = to.send(reply);
        Ok(())
    };
    // The caller may have given up: then the answer is dropped.
    match reply {
        Reply::Evaluations { id, evaluations } => {
            let part = part(id)?;
            let answer = read_evaluations(evaluations, part.positions, part.moves)?;
            let _ = part.to.send((part.index, Ok(answer)));
        }
        Reply::NotEvaluated { id, why } => {
            let part = part(id)?;
            let _ = part.to.send((part.index, Err(why)));
        }
        Reply::Send => return about_network(NetworkReply::Send),
        Reply::Ready { network, precision } => {
            return about_network(NetworkReply::Ready { network, precision });
        }
        Reply::Failed { passing, why } => {
            return about_network(NetworkReply::Failed { passing, why });
        }
        Reply::Refused(why) => return Err(ConnectionError::Refused(why)),
        Reply::Alive => {}
        Reply::Challenge { .. } | Reply::Welcome(_) => {
            return Err(ConnectionError::protocol("a second greeting"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{eventually, liar};

    /// Replies about a network, which the client may not have asked for.
    fn network_replies() -> [Reply<'static>; 3] {
        [
            Reply::Send,
            Reply::Ready {
                network: 7,
                precision: "f32".to_owned(),
            },
            Reply::Failed {
                passing: true,
                why: "w".repeat(1000),
            },
        ]
    }

    /// Why the connection is lost to a server that says this after its greeting, and that after the first request.
    /// `ask` is what the client does meanwhile.
    fn loss(greeted: Vec<u8>, answer: Vec<u8>, ask: impl FnOnce(&Link)) -> String {
        let (address, lying) = liar(vec![greeted, answer]);
        let (link, _) = Link::open(&RemoteDevice::new(address)).unwrap();
        ask(&link);
        eventually("the connection is lost", || link.lost().is_some());
        let why = link.lost().unwrap();
        drop(link);
        lying.join().unwrap();
        why
    }

    #[test]
    fn replies_about_networks_that_were_not_asked_for_end_the_connection() {
        let end = Reply::Refused("the end".to_owned()).to_frame();
        for reply in network_replies() {
            let unasked = [reply.to_frame(), end.clone()].concat();
            let why = loss(unasked, Vec::new(), |_| {});
            assert!(why.contains("nothing that was asked"), "{reply:?}: {why}");
        }
    }

    #[test]
    fn a_request_for_a_network_has_one_reply() {
        let end = Reply::Refused("the end".to_owned()).to_frame();
        let [_, ready, _] = network_replies();
        for reply in network_replies() {
            let two = [ready.to_frame(), reply.to_frame(), end.clone()].concat();
            let why = loss(Vec::new(), two, |link| {
                let (network, precision) = link.load(ContentHash::of(b"file"), b"file").unwrap();
                assert_eq!((network, precision), (7, Precision::F32));
            });
            assert!(why.contains("nothing that was asked"), "{reply:?}: {why}");
        }
    }

    #[test]
    fn a_device_that_answers_nothing_is_stuck_and_a_slow_one_is_not() {
        let begun = Instant::now();
        let part = |sent| PendingPart {
            index: 0,
            positions: 1,
            moves: 1,
            sent,
            to: channel().0,
        };
        let mut pending = Pending::default();
        let late = begun + ANSWER_TIME + Duration::from_secs(1);
        assert!(!pending.is_stuck(late), "nothing waits");
        pending.answered = Some(begun);
        assert!(!pending.is_stuck(late), "nothing waits any more");
        pending.parts.insert(1, part(begun));
        assert!(!pending.is_stuck(begun + ANSWER_TIME));
        assert!(pending.is_stuck(late));
        pending.answered = Some(begun + ANSWER_TIME / 2);
        assert!(!pending.is_stuck(late), "others were answered");
        pending.parts = HashMap::from([(2, part(late))]);
        assert!(!pending.is_stuck(late + ANSWER_TIME));
    }
}
