//! One connection to a server, which all threads of the program share.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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
    /// What the server says of a network. One is negotiated at a time.
    negotiation: Mutex<Receiver<NetworkReply>>,
}

/// What the thread that reads and those that ask share.
#[derive(Debug, Default)]
struct LinkState(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    next: u32,
    parts: HashMap<u32, PendingPart>,
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

impl LinkState {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let (to_negotiation, negotiation) = channel();
        let reading = thread::Builder::new().name("device-reader".to_owned());
        reading.spawn({
            let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
            move || {
                let why = read_all(&mut reader, &shared, &to_negotiation).to_string();
                // Who writes now fails, who waits learns that nothing comes any more.
                let _ = socket.shutdown(Shutdown::Both);
                let mut pending = shared.lock();
                pending.lost.get_or_insert(why);
                pending.parts.clear();
            }
        })?;
        let link = Self {
            shared,
            writer: Mutex::new(writer),
            socket,
            negotiation: Mutex::new(negotiation),
        };
        Ok((link, offer))
    }

    /// Why the connection is lost, if it is.
    pub(super) fn lost(&self) -> Option<String> {
        self.shared.lock().lost.clone()
    }

    fn write(&self, request: Request<'_>) -> Result<(), String> {
        let frame = request.to_frame();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(&frame).map_err(|error| {
            let why = self.lost().unwrap_or_else(|| error.to_string());
            self.close(&why);
            why
        })
    }

    /// Gives the connection up for this reason.
    fn close(&self, why: &str) {
        let mut pending = self.shared.lock();
        pending.lost.get_or_insert_with(|| why.to_owned());
        pending.parts.clear();
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Brings a network there; gives its number and the precision in which it is computed. Its file is sent only if the
    /// server does not have it.
    pub(super) fn load(
        &self,
        hash: ContentHash,
        file: &[u8],
    ) -> Result<(u32, Precision), NetworkError> {
        let replies = self.negotiation.lock();
        let replies = replies.unwrap_or_else(PoisonError::into_inner);
        let length = file.len() as u64;
        self.write(Request::Network { hash, length })
            .map_err(NetworkError::Lost)?;
        let mut reply = self.reply(&replies)?;
        if let NetworkReply::Send = reply {
            for data in file.chunks(DATA_BYTES) {
                self.write(Request::Data(data))
                    .map_err(NetworkError::Lost)?;
            }
            reply = self.reply(&replies)?;
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

    fn reply(&self, replies: &Receiver<NetworkReply>) -> Result<NetworkReply, NetworkError> {
        replies.recv_timeout(LOAD_TIME).map_err(|error| {
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
            let mut pending = self.shared.lock();
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
fn read_all(
    reader: &mut FrameReader,
    shared: &LinkState,
    to_negotiation: &Sender<NetworkReply>,
) -> ConnectionError {
    loop {
        let read = reader.next(Some(SILENCE), MAX_REPLY);
        let handed = read.and_then(|(kind, payload)| {
            hand_out(Reply::read(kind, payload)?, shared, to_negotiation)
        });
        if let Err(error) = handed {
            return error;
        }
        if shared.lock().is_stuck(Instant::now()) {
            return ConnectionError::Unanswered(ANSWER_TIME);
        }
    }
}

fn hand_out(
    reply: Reply<'_>,
    shared: &LinkState,
    to_negotiation: &Sender<NetworkReply>,
) -> Result<(), ConnectionError> {
    let part = |id: u32| {
        let mut pending = shared.lock();
        pending.answered = Some(Instant::now());
        let part = pending.parts.remove(&id);
        part.ok_or_else(|| ConnectionError::protocol("an answer to nothing that was asked"))
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
        Reply::Send => drop(to_negotiation.send(NetworkReply::Send)),
        Reply::Ready { network, precision } => {
            drop(to_negotiation.send(NetworkReply::Ready { network, precision }));
        }
        Reply::Failed { passing, why } => {
            drop(to_negotiation.send(NetworkReply::Failed { passing, why }));
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
