//! A device of another machine: how its server is reached and greeted.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::VERSION;
use crate::address::RemoteAddress;
use crate::error::ConnectionError;
use crate::frame::{FrameReader, MAX_GREETING, MAX_REPLY};
use crate::message::{Offer, Reply, Request};
use crate::stream::{self, WriteHalf};
use crate::token::DeviceToken;

/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long the server's greeting may take, and before it the handshake of TLS.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// How long a frame may take.
const FRAME_TIME: Duration = Duration::from_secs(30);
/// How long writing a frame may take: the server reads nothing while too many batches are in flight.
const WRITE_TIME: Duration = Duration::from_secs(300);

/// A device of another machine, and what its clients need.
#[derive(Debug, Clone)]
pub struct RemoteDevice {
    /// Where it is served.
    pub address: RemoteAddress,
    /// What the server may ask for.
    pub token: Option<DeviceToken>,
    /// A PEM file with the certificates that are trusted of a server that speaks TLS: its own, or those of
    /// authorities. Without it the authorities of the system are trusted.
    pub trusted_certificates: Option<PathBuf>,
}

impl RemoteDevice {
    /// A device that asks for no token.
    pub const fn new(address: RemoteAddress) -> Self {
        Self {
            address,
            token: None,
            trusted_certificates: None,
        }
    }

    /// Connects, shakes hands where TLS is spoken, and greets.
    pub(super) fn connect(&self) -> Result<Connected, ConnectionError> {
        // Read anew each time: the certificates may have been renewed with the device's own.
        let tls = if self.address.is_encrypted() {
            let name = ServerName::try_from(self.address.host().to_owned());
            let name = name.map_err(|error| ConnectionError::Refused(error.to_string()))?;
            let trusted = self.trusted_certificates.as_deref();
            Some((rookery_tls::client_config(trusted)?, name))
        } else {
            None
        };
        let socket = Arc::new(connect(&self.address)?);
        socket.set_nodelay(true)?;
        let (read, mut writer) = match tls {
            None => stream::plain(&socket, WRITE_TIME),
            Some((config, name)) => {
                let session = ClientConnection::new(config, name)?;
                stream::encrypted(&socket, session.into(), GREETING_TIME, WRITE_TIME)?
            }
        };
        let mut reader = FrameReader::new(read, FRAME_TIME);
        let offer = greet(&mut writer, &mut reader, self.token.as_ref())?;
        Ok(Connected {
            socket,
            reader,
            writer,
            offer,
        })
    }
}

/// A connection to a server that has greeted.
pub(super) struct Connected {
    pub(super) socket: Arc<TcpStream>,
    pub(super) reader: FrameReader,
    pub(super) writer: WriteHalf,
    pub(super) offer: Offer,
}

/// Connects to the first address of the host that answers.
fn connect(address: &RemoteAddress) -> Result<TcpStream, ConnectionError> {
    let mut last = None;
    for address in address.host_and_port().to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    let none = || ConnectionError::Refused("the host has no address".to_owned());
    Err(last.map_or_else(none, ConnectionError::Io))
}

fn greet(
    writer: &mut WriteHalf,
    reader: &mut FrameReader,
    token: Option<&DeviceToken>,
) -> Result<Offer, ConnectionError> {
    let (kind, payload) = reader.next(Some(GREETING_TIME), MAX_GREETING)?;
    let (version, wants_token, nonce) = match Reply::read(kind, payload)? {
        Reply::Challenge {
            version,
            wants_token,
            nonce,
        } => (version, wants_token, nonce),
        // A server that speaks TLS, which this client does not.
        Reply::Refused(why) => return Err(ConnectionError::Refused(why)),
        _ => return Err(ConnectionError::protocol("the server does not greet")),
    };
    if version != VERSION {
        let why = format!(
            "it speaks version {version} and this program {VERSION}: update the older of the two"
        );
        return Err(ConnectionError::Refused(why));
    }
    if wants_token && token.is_none() {
        let why = "it asks for a token: give the device's own with --device-token-file";
        return Err(ConnectionError::Refused(why.to_owned()));
    }
    let proof = token.map_or([0; 32], |token| token.proof(&nonce));
    writer.write_all(&Request::Hello { version, proof }.to_frame())?;
    let (kind, payload) = reader.next(Some(GREETING_TIME), MAX_REPLY)?;
    match Reply::read(kind, payload)? {
        Reply::Welcome(offer) => Ok(offer),
        Reply::Refused(why) => Err(ConnectionError::Refused(why)),
        _ => Err(ConnectionError::protocol(
            "the server does not answer the greeting",
        )),
    }
}
