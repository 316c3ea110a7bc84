//! The two halves of a connection, in plain or in TLS: one thread reads while another writes.
//!
//! Threads share a TLS session only while they decrypt or encrypt in memory. Neither holds it while it waits for the
//! socket, so that a peer that does not read never keeps this side from reading.

use std::io::{self, Cursor, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustls::Connection;

use crate::error::ConnectionError;

/// Most bytes that are read from the socket at once.
const RECEIVED_BYTES: usize = 16 << 10;

type Session = Arc<Mutex<Connection>>;

/// The half from which bytes are read.
#[derive(Debug)]
pub(crate) struct ReadHalf {
    socket: Arc<TcpStream>,
    tls: Option<Encrypted>,
}

/// The half to which bytes are written.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    socket: Arc<TcpStream>,
    session: Option<Session>,
    /// What is encrypted and not sent yet.
    outgoing: Vec<u8>,
    /// How long one call of [`WriteHalf::write_all`] may take.
    time: Duration,
}

/// What is received by TLS.
#[derive(Debug)]
struct Encrypted {
    session: Session,
    received: Cursor<Vec<u8>>,
}

/// A connection in plain. Each write may take `write_time`.
pub(crate) fn plain(socket: &Arc<TcpStream>, write_time: Duration) -> (ReadHalf, WriteHalf) {
    halves(socket, None, write_time)
}

/// Shakes hands; after that the connection is encrypted. The handshake takes no longer than `time`, however slowly the
/// peer sends or reads. Each later write may take `write_time`.
///
/// # Errors
///
/// [`ConnectionError::Silent`] if the peer has sent nothing at all, [`ConnectionError::Handshake`] if it has not
/// finished in time, [`ConnectionError::Tls`] for what TLS refuses.
pub(crate) fn encrypted(
    socket: &Arc<TcpStream>,
    mut connection: Connection,
    time: Duration,
    write_time: Duration,
) -> Result<(ReadHalf, WriteHalf), ConnectionError> {
    let deadline = Instant::now() + time;
    let mut received = Cursor::default();
    let mut has_begun = false;
    loop {
        let mut outgoing = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut outgoing)?;
        }
        send_all(socket, &outgoing, deadline)?;
        if !connection.is_handshaking() {
            break;
        }
        match refill(&mut received, socket, Some(deadline)) {
            Ok(0) => return Err(ConnectionError::Closed),
            Ok(_) => has_begun = true,
            Err(error) if error.kind() != ErrorKind::TimedOut => return Err(error.into()),
            Err(_) if has_begun => return Err(ConnectionError::Handshake(time)),
            Err(_) => return Err(ConnectionError::Silent(time)),
        }
        if connection.read_tls(&mut received)? == 0 {
            return Err(ConnectionError::Closed);
        }
        if let Err(error) = connection.process_new_packets() {
            // The peer learns why, if it still listens.
            let mut alert = Vec::new();
            let _ = connection.write_tls(&mut alert);
            let _ = send_all(socket, &alert, deadline);
            return Err(error.into());
        }
    }
    let session = Arc::new(Mutex::new(connection));
    let tls = Encrypted { session, received };
    Ok(halves(socket, Some(tls), write_time))
}

fn halves(
    socket: &Arc<TcpStream>,
    tls: Option<Encrypted>,
    write_time: Duration,
) -> (ReadHalf, WriteHalf) {
    let session = tls.as_ref().map(|tls| Arc::clone(&tls.session));
    let write = WriteHalf {
        socket: Arc::clone(socket),
        session,
        outgoing: Vec::new(),
        time: write_time,
    };
    let socket = Arc::clone(socket);
    (ReadHalf { socket, tls }, write)
}

impl ReadHalf {
    /// Reads some bytes; none if the peer has closed the connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TimedOut`] if none has come until the deadline.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        deadline: Option<Instant>,
    ) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return receive(&self.socket, buffer, deadline);
        };
        loop {
            match lock(&tls.session).reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if refill(&mut tls.received, &self.socket, deadline)? == 0 {
                return Ok(0);
            }
            let mut session = lock(&tls.session);
            if session.read_tls(&mut tls.received)? == 0 {
                return Ok(0);
            }
            let processed = session.process_new_packets();
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }
}

impl WriteHalf {
    /// Writes all bytes. The time limit is for all of them together, so a peer that reads a few bytes now and then
    /// does not extend it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TimedOut`] if the peer has not read enough in time.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + self.time;
        let Some(session) = &self.session else {
            return send_all(&self.socket, bytes, deadline);
        };
        while !bytes.is_empty() {
            self.outgoing.clear();
            {
                let mut session = lock(session);
                // It takes so much at once that memory stays bounded.
                let taken = session.writer().write(bytes)?;
                bytes = &bytes[taken..];
                while session.wants_write() {
                    session.write_tls(&mut self.outgoing)?;
                }
            }
            send_all(&self.socket, &self.outgoing, deadline)?;
        }
        Ok(())
    }
}

fn lock(session: &Session) -> MutexGuard<'_, Connection> {
    session.lock()
}

/// Waits for bytes of the socket unless some are left; gives how many are there.
fn refill(
    received: &mut Cursor<Vec<u8>>,
    socket: &TcpStream,
    deadline: Option<Instant>,
) -> io::Result<usize> {
    let left = received.get_ref().len() - received.position() as usize;
    if left > 0 {
        return Ok(left);
    }
    received.set_position(0);
    let bytes = received.get_mut();
    bytes.resize(RECEIVED_BYTES, 0);
    let count = receive(socket, bytes, deadline);
    bytes.truncate(*count.as_ref().unwrap_or(&0));
    count
}

/// Reads what comes from the socket next.
fn receive(socket: &TcpStream, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(left)?;
        let mut stream = socket;
        match stream.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Systems name an expired timeout differently.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            done => return done,
        }
    }
}

/// Writes all bytes to the socket before the deadline.
fn send_all(socket: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    let mut stream = socket;
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Systems name an expired timeout differently.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_peer_that_reads_slowly_does_not_extend_the_time_of_a_write() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Arc::new(listener.accept().unwrap().0);
        let trickling = thread::spawn(move || {
            // At most 16 MB/s.
            while let Ok(1..) = peer.read(&mut [0; 16 << 10]) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        let (_, mut writer) = plain(&socket, Duration::from_millis(50));
        // More than the buffers of both sockets hold, so that the peer decides when it is written.
        let error = writer.write_all(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        trickling.join().unwrap();
    }
}
